"""Add, list and remove alerts. Input is validated before anything is created or written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from queuectl.alerts.rules import Alert, Kind, pause, redefine, resume
from queuectl.errors import InvalidInput, UsageError
from queuectl.jobs import fields
from queuectl.jobs.model import BulkResult
from queuectl.store.alerts import last_notifications, stored_notifications
from queuectl.store.reads import Reads
from queuectl.store.store import Store
from queuectl.text import short_repr
from queuectl.units import parse_duration_ms
from queuectl.webhooks.rules import parse_url

MAX_DEAD_JOBS: Final = 1_000_000_000
NO_VALUE: Final = "none"  # removes a value
NOTIFICATIONS_SHOWN: Final = 20


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


class Context(NamedTuple):
    """What a change works with. `open_store` may create the data directory, so it is called last; `reads` creates nothing."""

    reads: Callable[[], Reads]
    open_store: Callable[[], Store]


def edit(request: AlertRequest, context: Context, *, cwd: str) -> Alert:
    """Change what is given; the text "none" removes `within`, `queue`, `repeat` or `for`. A condition replaces the other one, and so does
    a webhook or a command. Raises AlertNotFound, InvalidInput or UsageError."""
    name = fields.alert(request.name, "name")
    given = [value for field, value in request._asdict().items() if field not in ("name", "spelled")]
    if all(value is None for value in given):
        hint = f"for example, {request.spelled('repeat')} 1h"
        raise UsageError(f"nothing to change in the alert {name!r}", hint=hint)
    parse_alert(_merged(request, context.reads().alerts.get(name)), cwd=cwd, now_ms=0)  # before open_store

    def change(alert: Alert) -> Alert:
        where = cwd if request.command is not None else alert.cwd
        return redefine(alert, parse_alert(_merged(request, alert), cwd=where, now_ms=store.now_ms()))

    store = context.open_store()
    return store.alerts.change(name, change, action="alert edit")


def _merged(request: AlertRequest, alert: Alert) -> AlertRequest:
    """The request, with the present values of the alert for what it does not change."""
    present = alert.to_dict()
    kinds = {kind.name.lower(): getattr(request, kind.name.lower()) for kind in Kind}
    if all(value is None for value in kinds.values()):
        kinds[alert.kind.name.lower()] = present["threshold"]
    if request.webhook is None and request.command is None:
        target: dict[str, object] = {"webhook": alert.url, "command": alert.command}
    else:
        target = {"webhook": request.webhook, "command": request.command}
    keeps_period = kinds[Kind.DEAD.name.lower()] is not None
    rest: dict[str, object] = {}
    for field, old in (("within", "within"), ("queue", "queue"), ("hold", "for"), ("repeat", "repeat")):
        value = getattr(request, field)
        if value is None and (field != "within" or keeps_period):
            value = present[old]
        rest[field] = None if value == NO_VALUE else value
    return AlertRequest(request.name, **kinds, **target, **rest, spelled=request.spelled)


def pause_all(names: Iterable[str], context: Context) -> BulkResult:
    return _change_each(names, context, lambda store, name: store.alerts.change(name, pause, action="alert pause"))


def resume_all(names: Iterable[str], context: Context) -> BulkResult:
    def resumed(store: Store, name: str) -> None:
        store.alerts.change(name, lambda alert: resume(alert, store.now_ms()), action="alert resume")

    return _change_each(names, context, resumed)


def _change_each(names: Iterable[str], context: Context, act: Callable[[Store, str], object]) -> BulkResult:
    def change(name: str) -> None:
        context.reads().alerts.get(name)  # before open_store, which creates a database
        act(context.open_store(), name)

    return BulkResult.of_each(names, change)


def remove_all(names: Iterable[str], context: Context) -> BulkResult:
    return _change_each(names, context, lambda store, name: store.alerts.remove(name))


def firing(reads: Reads) -> list[Alert]:
    return [alert for alert in reads.alerts.all() if alert.is_firing]


def show(reads: Reads, name: str) -> dict[str, Any]:
    """Serialize an alert with its latest notifications. Raises AlertNotFound."""
    (found,) = to_dicts(reads, [reads.alerts.get(name)])
    return {
        **found,
        "notifications": [one.to_dict() for one in stored_notifications(reads, name, limit=NOTIFICATIONS_SHOWN)],
    }


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
