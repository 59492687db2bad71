"""Queues: what there is of them, what is said about them, and jobs that go from one to another."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from queuectl.errors import InvalidInput, NotMovable, UnknownName, UsageError
from queuectl.job import fields as read
from queuectl.job.hooks import parse_url
from queuectl.job.limits import MOST, Brake, Rules, parse_rate, rules_to_dict
from queuectl.job.model import from_ms, iso
from queuectl.job.nearest import nearest
from queuectl.job.reserved import queue_for_jobs
from queuectl.job.resources import LIMITS, parse_limits
from queuectl.job.shown import shown
from queuectl.queue.inspect import States, all_states
from queuectl.queue.pick import Answer, Refusal, find, pick
from queuectl.store.protocol import Reads, Store

NOTHING = "none"  # takes a rule away


class QueueView(NamedTuple):
    """A queue with its jobs, its rules, and what they mean now."""

    name: str
    states: States
    rules: Rules
    brake: Brake | None
    rate_now: int | None  # starts in the window that ends now; None: it has no rate

    def to_dict(self) -> dict[str, Any]:
        opens_at = None if self.brake is None or self.brake.opens_at is None else from_ms(self.brake.opens_at)
        return {
            "name": self.name,
            "paused": self.rules.paused,
            "states": self.states,
            **rules_to_dict(self.rules),
            "rate_now": self.rate_now,
            "next_start_at": iso(opens_at),
        }


def list_queues(store: Reads) -> list[QueueView]:
    """Every queue that has, or ever had, a job, or about which something is said."""
    tally, rules, brakes, rates = store.tally(), store.rules(), store.brakes(), store.rates()
    return [
        QueueView(name, all_states(tally.get(name, {})), rules.get(name, Rules()), brakes.get(name), rates.get(name))
        for name in sorted({*tally, *rules})
    ]


def view(store: Reads, queue: str) -> QueueView:
    """One of them, also if there is nothing of it."""
    found = next((one for one in list_queues(store) if one.name == queue), None)
    return found or QueueView(queue, all_states({}), Rules(), None, None)


def set_rules(
    open_store: Callable[[], Store], queue: str, said: Mapping[str, object], *, by_option: bool = False
) -> QueueView:
    """Change the rules that are `said`, in the words of people; None: not said. Raises before anything is made or written, in
    terms of the field, or `by_option`."""
    check_queue(queue)
    changes = _read(said, by_option=by_option)
    if not changes:
        raise UsageError("nothing to set", hint="say what: queuectl queue set NAME --concurrency 2 --rate 10/m")
    store = open_store()
    store.set_rules(queue, changes)
    return view(store, queue)


def read_rules(said: Mapping[str, object]) -> Rules:
    """As `rules_to_dict` and `paused` write them; what is null is not said."""
    return Rules(**_read(said))


def _read(said: Mapping[str, object], *, by_option: bool = False) -> dict[str, Any]:
    """What is said, by the names of Rules."""
    for name in said:
        if name not in _READERS and name != "limits":
            raise UnknownName("rule", name, nearest=nearest(name, _READERS), known=list(_READERS))
    found: dict[str, Any] = {}
    for name, value in said.items():
        try:
            found |= {} if value is None else {name: _read_rule(name, value)}
        except InvalidInput as error:
            if by_option:
                raise
            raise InvalidInput(name, error.problem, hint=error.hint.replace(error.subject, name)) from error
    of_runs = {name: found.pop(name) for name in LIMITS if name in found}
    by_rule = {("timeout_ms" if name == "timeout" else name): value for name, value in found.items()}
    return {**by_rule, "limits": of_runs} if of_runs else by_rule


def _read_rule(name: str, value: object) -> object:
    return parse_limits(value, name) if name == "limits" else _READERS[name](value)


def set_paused(
    queues: Iterable[str], *, paused: bool, reads: Callable[[], Reads], open_store: Callable[[], Store]
) -> list[str]:
    """Those of these queues for which that is new. Nothing is made to say what holds anyhow."""
    wanted = list(dict.fromkeys(check_queue(queue) for queue in queues))
    before = reads().rules()
    changed = [queue for queue in wanted if before.get(queue, Rules()).paused is not paused]
    for queue in changed:
        open_store().set_rules(queue, {"paused": paused})
    return changed


def move(
    queue: str, to: str, refs: Iterable[str] = (), *, reads: Callable[[], Reads], open_store: Callable[[], Store]
) -> Answer:
    """The jobs of a queue that wait go to another one: all, or those that `refs` name. Nothing is made if there are none."""
    for name in (queue, to):
        queue_for_jobs(name, "queue")
    if queue == to:
        raise UsageError(f"from {queue} to {to}: that is the same queue", hint="name another queue as the second")
    wanted = list(refs)
    if not wanted:
        waits = sum(reads().tally().get(queue, {}).values())
        return Answer(list(open_store().move(queue, to)) if waits else [], [])
    named, refused = pick(reads(), wanted)
    if not named:
        return Answer([], refused)
    store = open_store()
    moved = store.move(queue, to, ids=named)
    for job_id, job in find(store, [job_id for job_id in named if job_id not in moved]).items():
        problem = f"is {job.state.value}" if job.queue == queue else f"is in the queue {job.queue}"
        refused.append(Refusal(job_id, NotMovable(job_id, problem)))
    return Answer([job_id for job_id in named if job_id in moved], refused)


def paused_of(store: Reads, ids: Iterable[str]) -> list[str]:
    """The queues of these jobs that are paused."""
    paused = {queue for queue, rules in store.rules().items() if rules.paused}
    return sorted(paused & {job.queue for job in find(store, ids).values()}) if paused else []


def check_queue(name: str) -> str:
    return read.queue(name, "queue")


# ── what people say ─────────────────────────────────────────────────────────────────────────────────────────────────


def _count(value: object, name: str) -> int:
    return _integer(value, name, low=1, high=MOST)


def _integer(value: object, name: str, *, low: int, high: int) -> int:
    if isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]{1,18}", value):
        value = int(value)
    if type(value) is int and low <= value <= high:
        return value
    problem = f"expected an integer from {low} to {high} or {NOTHING}, got {shown(value)}"
    raise InvalidInput(name, problem, hint=f"like {name} {max(low, 2)}; {NOTHING} takes it away")


def _timeout(value: object, name: str) -> int:
    return read.timeout(value, name) or 0


def _limit(limit: str, value: object, name: str) -> int:
    # A text may be a number, too; one of those that are no numbers is refused by its own reader.
    is_number = limit in ("nice", "open_files", "processes") and isinstance(value, str)
    return LIMITS[limit].read(_number(value) if is_number else value, name)


def _number(value: object) -> object:
    text = str(value)
    return int(text) if len(text) <= 18 and text.removeprefix("-").isdecimal() and text.isascii() else value


def _or_nothing(name: str, reader: Callable[[Any, str], object]) -> Callable[[object], object]:
    spelled = f"--{name.replace('_', '-')}"

    def parse(value: object) -> object:
        is_nothing = isinstance(value, str) and value.strip().lower() == NOTHING
        return None if is_nothing else reader(value, spelled)

    return parse


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise InvalidInput("paused", f"expected true or false, got {shown(value)}", hint="like paused=True")


_READERS: Mapping[str, Callable[[object], object]] = {
    "paused": _flag,
    "concurrency": _or_nothing("concurrency", _count),
    "per_key": _or_nothing("per_key", _count),
    "rate": _or_nothing("rate", lambda value, name: parse_rate(str(value), subject=name)),
    "priority": _or_nothing(
        "priority", lambda value, name: _integer(value, name, low=-read.HIGHEST_PRIORITY, high=read.HIGHEST_PRIORITY)
    ),
    "max_retries": _or_nothing("max_retries", lambda value, name: _integer(value, name, low=0, high=read.MOST_RETRIES)),
    "timeout": _or_nothing("timeout", _timeout),
    **{name: _or_nothing(name, partial(_limit, name)) for name in LIMITS},
    "on_success": _or_nothing("on_success", parse_url),
    "on_failure": _or_nothing("on_failure", parse_url),
    "on_dead": _or_nothing("on_dead", parse_url),
}
