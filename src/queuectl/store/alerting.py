"""The seam for alerts: what there are, what they go by, and how a decision about one is written.

Whoever looks decides by what it has seen without a lock. The row counts how often it was written, and the statement that writes names
the count that was seen: of all who decide at the same time one writes, with the job that tells, and the others know that
they have not.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, Protocol

from queuectl.job.alert import Alert, Kind, Telling, Word, variables
from queuectl.job.hooks import DELIVER, EVENT_OF_ALERT, SAID, URL, Said
from queuectl.job.names import WEBHOOKS
from queuectl.job.newjob import NewJob

Row = tuple[Any, ...]

TAG: Final = "alert"
PRIORITY: Final = 100  # before the webhooks of jobs, which are in the same queue and may be many
RETRIES: Final = 10  # as of a webhook
CALL_TIMEOUT_MS: Final = 30_000
COMMAND_TIMEOUT_MS: Final = 300_000


class AlertReads(Protocol):
    def alerts(self) -> list[Alert]:
        """All of them, by name."""
        ...

    def alert(self, name: str) -> Alert:
        """Raises AlertNotFound."""
        ...

    def died_since(self, since_ms: int) -> dict[str, int]:
        """For each queue, how many of its dead jobs died after this moment."""
        ...


class Alerts(Protocol):
    def add_alert(self, alert: Alert) -> None:
        """Raises AlertExists if the name is taken."""
        ...

    def turn_alert(self, alert: Alert, jobs: Sequence[NewJob] = ()) -> bool:
        """Write how an alert stands, and add the jobs that tell of it, in one transaction. `alert` has the turn that was seen: if
        somebody has written since, or removed it, nothing is written and this is False."""
        ...

    def remove_alert(self, name: str) -> None:
        """Raises AlertNotFound."""
        ...


def telling_job(alert: Alert, telling: Telling) -> NewJob:
    """The job that tells. URLs are often secrets: they go where nobody is shown them."""
    env = variables(alert, telling)
    if alert.url is not None:
        # An operator has said it: it may lead to where only operators may have us call.
        env |= {URL: alert.url, SAID: Said.CONFIG.value}
    return NewJob(
        command=alert.command,
        argv=None if alert.url is None else (DELIVER, EVENT_OF_ALERT, alert.name, telling.word.value),
        id=telling.id,
        queue=WEBHOOKS,
        priority=PRIORITY,
        max_retries=RETRIES,
        first_is_free=False,
        backoff_base=2.0,
        timeout_ms=COMMAND_TIMEOUT_MS if alert.url is None else CALL_TIMEOUT_MS,
        run_at_ms=None,
        delay_ms=None,
        cwd=alert.cwd,
        env=env,
        tags=(TAG,),
    )


def alert_of(row: Row) -> Alert:
    """From the columns of `alert`."""
    found = Alert._make(row)
    untold = tuple(Telling(id_, Word(word), value, at) for id_, word, value, at in json.loads(row[_UNTOLD]))
    return found._replace(kind=Kind(found.kind), is_firing=bool(found.is_firing), untold=untold)


def alert_values(alert: Alert) -> dict[str, Any]:
    """The parameters of `add_alert` and `turn_alert`."""
    untold = json.dumps([list(telling) for telling in alert.untold])
    return {**alert._asdict(), "kind": alert.kind.value, "untold": untold}


_UNTOLD: Final = Alert._fields.index("untold")
