"""Alerts where no worker lives: telling somebody from here, without a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from queuectl import __version__
from queuectl.config import here, job_environment_base
from queuectl.hooks.command import run
from queuectl.job.alert import Alert, Telling, Word, look, variables
from queuectl.job.hooks import shown_url
from queuectl.job.settings import Settings
from queuectl.queue.deliver import deliver_alert
from queuectl.store.ids import new_job_ids
from queuectl.store.protocol import Reads, Store
from queuectl.upkeep.alert import Told, check, measure


class Teller:
    """From this process, with its environment. `settings`: as they are when something is told."""

    def __init__(self, reads: Reads, settings: Callable[[], Settings], environ: Mapping[str, str]) -> None:
        self._reads = reads
        self._settings = settings
        self._environ = environ

    def check(self, store: Store) -> list[Told]:
        """Decide about all alerts: with a worker by jobs, else from here."""
        return check(store, here=here(self._environ), settings=self._settings, tell=self.tell)

    def test(self, name: str) -> str:
        """Tell somebody now, whatever is the case, and change nothing. What came back. Raises AlertNotFound, CallRefused,
        CallUnanswered or CommandFailed."""
        alert = self._reads.alert(name)
        figures = measure(self._reads, [alert], here=here(self._environ), settings=self._settings)
        value = look(alert, figures).value or 0
        return self.tell(alert, Telling(new_job_ids(1)[0], Word.TEST, value, figures.now_ms))

    def tell(self, alert: Alert, telling: Telling) -> str:
        facts = variables(alert, telling)
        if alert.url is not None:
            answer = deliver_alert(self._reads, facts, self._settings(), url=alert.url, version=__version__)
            return f"called {shown_url(alert.url)}: {answer.status} {answer.text}".rstrip()
        said = run(
            alert.command or "", alert=alert.name, cwd=alert.cwd, env={**job_environment_base(self._environ), **facts}
        )
        return f"ran {alert.command}" + (f": {said}" if said else "")
