"""Add, list and remove alerts. Input is validated before anything is created or written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from queuectl.alerts.rules import Alert, Kind
from queuectl.errors import InvalidInput, UsageError
from queuectl.jobs import fields
from queuectl.jobs.model import BulkResult
from queuectl.store.alerts import last_notifications
from queuectl.store.reads import Reads
from queuectl.store.store import Store
from queuectl.text import short_repr
from queuectl.units import parse_duration_ms
from queuectl.webhooks.rules import parse_url

MAX_DEAD_JOBS: Final = 1_000_000_000


class AlertRequest(NamedTuple):
    """An alert before validation. `spelled` turns the name of a field into that of an option, for errors."""

    name: object
    dead: object = None
    within: object = None
    oldest: object = None
    no_worker: object = None
    queue: object = None
    hold: object = None  # the field `for`, which is a keyword of Python
    repeat: object = None
    webhook: object = None
    command: object = None
    spelled: Callable[[str], str] = str


def parse_alert(request: AlertRequest, *, cwd: str, now_ms: int) -> Alert:
    """Raises InvalidInput or UsageError."""
    kind, threshold = _condition(request)
    named = request.spelled
    within = None if request.within is None else _duration(request.within, named("within"))
    if within is not None and kind is not Kind.DEAD:
        hint = f"omit it; {named('for')} sets how long the condition has to last"
        raise InvalidInput(named("within"), f"is allowed with {named('dead')} only", hint=hint)
    if (request.webhook is None) is (request.command is None):
        hint = f"give either {named('webhook')} URL or {named('command')} CMD"
        problem = "neither a webhook nor a command" if request.webhook is None else "both a webhook and a command"
        raise UsageError(f"{problem} for an alert", hint=hint)
    return Alert(
        name=fields.alert(request.name, "name"),
        kind=kind,
        threshold=threshold,
        within_ms=within,
        queue=None if request.queue is None else fields.queue(request.queue, named("queue")),
        for_ms=0 if request.hold is None else parse_duration_ms(request.hold, subject=named("for")),
        repeat_ms=None if request.repeat is None else _duration(request.repeat, named("repeat")),
        url=None if request.webhook is None else parse_url(request.webhook, named("webhook")),
        command=None if request.command is None else fields.command(request.command, named("command")),
        cwd=cwd,
        created_ms=now_ms,
        seen_ms=now_ms,
    )


def add(request: AlertRequest, *, cwd: str, reads: Callable[[], Reads], open_store: Callable[[], Store]) -> Alert:
    """Raises AlertExists for a name that is taken."""
    parse_alert(request, cwd=cwd, now_ms=reads().now_ms())
    store = open_store()
    # With the clock of the database, which may differ from that of this host.
    alert = parse_alert(request, cwd=cwd, now_ms=store.now_ms())
    store.alerts.add(alert)
    return alert


def remove_all(names: Iterable[str], *, reads: Callable[[], Reads], open_store: Callable[[], Store]) -> BulkResult:
    def remove(name: str) -> None:
        reads().alerts.get(name)  # before open_store, which creates a database
        open_store().alerts.remove(name)

    return BulkResult.of_each(names, remove)


def firing(reads: Reads) -> list[Alert]:
    return [alert for alert in reads.alerts.all() if alert.is_firing]


def to_dicts(reads: Reads, alerts: Sequence[Alert]) -> list[dict[str, Any]]:
    """Serialize alerts, with the delivery status of their last notification."""
    messages = last_notifications(reads, alerts)
    return [alert.to_dict(messages[alert.name].status if alert.name in messages else None) for alert in alerts]


def _condition(request: AlertRequest) -> tuple[Kind, int]:
    values = {Kind.DEAD: request.dead, Kind.OLDEST: request.oldest, Kind.NO_WORKER: request.no_worker}
    given = [kind for kind, value in values.items() if value is not None]
    names = {kind: request.spelled(kind.name.lower()) for kind in Kind}
    if len(given) != 1:
        what = "no condition" if not given else f"{' and '.join(names[kind] for kind in given)} are two conditions"
        hint = f"give one of {names[Kind.DEAD]} N, {names[Kind.OLDEST]} TIME, {names[Kind.NO_WORKER]} TIME"
        raise UsageError(f"{what} for an alert", hint=hint)
    (kind,) = given
    if kind is Kind.DEAD:
        return kind, _number(values[kind], names[kind])
    return kind, _duration(values[kind], names[kind])


def _number(value: object, subject: str) -> int:
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 12:
        value = int(value)
    if type(value) is not int or not 1 <= value <= MAX_DEAD_JOBS:
        problem = f"expected a number of jobs from 1 to {MAX_DEAD_JOBS:,}, got {short_repr(value)}"
        raise InvalidInput(subject, problem, hint=f"for example, {subject} 10")
    return value


def _duration(value: object, subject: str) -> int:
    ms = parse_duration_ms(value, subject=subject)
    if ms == 0:
        raise InvalidInput(subject, "must be longer than 0", hint=f"for example, {subject} 10m")
    return ms
