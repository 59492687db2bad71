"""Alerts: adding, looking, removing. What is wrong is found before anything is made or written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from queuectl.errors import AlertNotFound, InvalidInput, UsageError
from queuectl.job import fields
from queuectl.job.alert import Alert, Kind
from queuectl.job.duration import parse_duration_ms
from queuectl.job.hooks import parse_url
from queuectl.job.names import is_valid_queue
from queuectl.job.shown import shown
from queuectl.queue.pick import Answer, Refusal
from queuectl.store.messages import last_messages
from queuectl.store.protocol import Reads, Store

MOST_DEAD: Final = 1_000_000_000


class Wish(NamedTuple):
    """An alert as somebody asks for it, in words. `spelled` makes the name of an option of the name of a field."""

    name: object
    dead: object = None
    within: object = None
    oldest: object = None
    no_worker: object = None
    queue: object = None
    hold: object = None  # `for`, which is a word of Python's
    repeat: object = None
    webhook: object = None
    command: object = None
    spelled: Callable[[str], str] = str


def read(wish: Wish, *, cwd: str, now_ms: int) -> Alert:
    """Raises InvalidInput or UsageError."""
    kind, threshold = _condition(wish)
    named = wish.spelled
    within = None if wish.within is None else _some_time(wish.within, named("within"))
    if within is not None and kind is not Kind.DEAD:
        hint = f"leave it away; {named('for')} says for how long it has to be so"
        raise InvalidInput(named("within"), f"goes with {named('dead')} only", hint=hint)
    if (wish.webhook is None) is (wish.command is None):
        hint = f"{named('webhook')} URL is called, {named('command')} CMD is run: give one of the two"
        raise UsageError("whom to tell? " + ("nobody is named" if wish.webhook is None else "here are two"), hint=hint)
    return Alert(
        name=_name(wish.name),
        kind=kind,
        threshold=threshold,
        within_ms=within,
        queue=None if wish.queue is None else fields.queue(wish.queue, named("queue")),
        for_ms=0 if wish.hold is None else parse_duration_ms(wish.hold, subject=named("for")),
        repeat_ms=None if wish.repeat is None else _some_time(wish.repeat, named("repeat")),
        url=None if wish.webhook is None else parse_url(wish.webhook, named("webhook")),
        command=None if wish.command is None else fields.command(wish.command, named("command")),
        cwd=cwd,
        created_ms=now_ms,
        seen_ms=now_ms,
    )


def add(wish: Wish, *, cwd: str, reads: Callable[[], Reads], open_store: Callable[[], Store]) -> Alert:
    """Raises AlertExists for a name that is taken."""
    read(wish, cwd=cwd, now_ms=reads().now_ms())
    store = open_store()
    # By the clock of the store, which may be another.
    alert = read(wish, cwd=cwd, now_ms=store.now_ms())
    store.add_alert(alert)
    return alert


def remove_all(names: Iterable[str], *, reads: Callable[[], Reads], open_store: Callable[[], Store]) -> Answer:
    answer = Answer([], [])
    for name in dict.fromkeys(names):
        try:
            reads().alert(name)  # where there is none, no store is made to say so
            open_store().remove_alert(name)
        except AlertNotFound as error:
            answer.refused.append(Refusal(name, error))
        else:
            answer.done.append(name)
    return answer


def firing(reads: Reads) -> list[Alert]:
    return [alert for alert in reads.alerts() if alert.is_firing]


def to_dicts(reads: Reads, alerts: Sequence[Alert]) -> list[dict[str, Any]]:
    """For programs: with what became of the last message of each."""
    messages = last_messages(reads, alerts)
    return [alert.to_dict(messages[alert.name].fate if alert.name in messages else None) for alert in alerts]


def _condition(wish: Wish) -> tuple[Kind, int]:
    said = {Kind.DEAD: wish.dead, Kind.OLDEST: wish.oldest, Kind.NO_WORKER: wish.no_worker}
    given = [kind for kind, value in said.items() if value is not None]
    names = {kind: wish.spelled(kind.name.lower()) for kind in Kind}
    if len(given) != 1:
        what = "no condition" if not given else f"{' and '.join(names[kind] for kind in given)} are two conditions"
        hint = f"give one of {names[Kind.DEAD]} N, {names[Kind.OLDEST]} TIME, {names[Kind.NO_WORKER]} TIME"
        raise UsageError(f"{what} for an alert", hint=hint)
    (kind,) = given
    if kind is Kind.DEAD:
        return kind, _number(said[kind], names[kind])
    return kind, _some_time(said[kind], names[kind])


def _number(value: object, subject: str) -> int:
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 12:
        value = int(value)
    if type(value) is not int or not 1 <= value <= MOST_DEAD:
        problem = f"expected a number of jobs from 1 to {MOST_DEAD:,}, got {shown(value)}"
        raise InvalidInput(subject, problem, hint=f"like {subject} 10")
    return value


def _some_time(value: object, subject: str) -> int:
    ms = parse_duration_ms(value, subject=subject)
    if ms == 0:
        raise InvalidInput(subject, "no time at all", hint=f"like {subject} 10m")
    return ms


def _name(value: object) -> str:
    if isinstance(value, str) and is_valid_queue(value):
        return value
    hint = "1 to 64 letters, digits and . _ - beginning with a letter or digit"
    raise InvalidInput("name", f"not the name of an alert: {shown(value)}", hint=hint)
