"""List queues, change their settings, pause them, and move jobs between them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from queuectl.errors import InvalidInput, NotMovable, UsageError
from queuectl.jobs import fields as read
from queuectl.jobs.model import BulkResult, Refusal, Worker
from queuectl.jobs.queue_limits import MAX_QUEUE_LIMIT, QueueLoad, QueueSettings, parse_rate, rules_to_dict
from queuectl.jobs.resources import LIMITS, parse_limits
from queuectl.jobs.spec import parse_user_queue
from queuectl.jobs.states import State
from queuectl.jobs.wait_reason import Wait, reason, waits
from queuectl.operations.bulk import find_jobs, resolve_ids
from queuectl.operations.inspect import States, all_states
from queuectl.store.reads import Reads
from queuectl.store.store import Store
from queuectl.text import WEBHOOK_QUEUE, short_repr, unknown_name
from queuectl.units import from_ms, iso
from queuectl.webhooks.rules import parse_url

NO_VALUE: Final = "none"  # removes a setting


class QueueView(NamedTuple):
    """A queue with its jobs, its settings and their current effect."""

    name: str
    states: States
    rules: QueueSettings
    brake: QueueLoad | None
    rate_now: int | None  # starts in the current window; None: no rate limit

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
    """Every queue that has or had a job, or has settings."""
    tally, rules, brakes, rates = store.tally(), store.queues.rules(), store.queues.loads(), store.queues.rates()
    return [
        QueueView(
            name, all_states(tally.get(name, {})), rules.get(name, QueueSettings()), brakes.get(name), rates.get(name)
        )
        for name in sorted({*tally, *rules})
    ]


def view(store: Reads, queue: str) -> QueueView:
    """One queue, which need not exist."""
    found = next((one for one in list_queues(store) if one.name == queue), None)
    return found or QueueView(queue, all_states({}), QueueSettings(), None, None)


MAX_DUE_COUNTED: Final = 100_000


class Waiting(NamedTuple):
    """Jobs of a queue that wait for the same reason. `code`: as of explain."""

    code: Wait
    jobs: int  # at most MAX_DUE_COUNTED, if they are due
    message: str
    is_cut: bool = False  # there are more

    def to_dict(self) -> dict[str, Any]:
        return {"code": self.code.value, "jobs": self.jobs, "more": self.is_cut, "message": self.message}


def waiting(store: Reads, queue: str, *, alive: Iterable[Worker], now_ms: int) -> list[Waiting]:
    """Why the jobs of a queue wait, the due ones first. The due ones are counted, not read."""
    one = view(store, queue)
    due, free = store.queues.count_due(queue, most=MAX_DUE_COUNTED)
    served = any(worker.state == "running" and serves(worker, queue) for worker in alive)
    found = []
    if free:
        # The decisive reason of a job that is due, in the order of `waits`.
        load = one.brake
        args: dict[str, Any] = {"run_at_ms": now_ms, "now_ms": now_ms, "held": False, "served": served, "load": load}
        code, *_ = waits(State.PENDING, **args)
        message = reason(State.PENDING, **args, attempts=0, allowed=1) or ""
        found.append(Waiting(code, free, message, is_cut=free == MAX_DUE_COUNTED))
    if due > free:
        found.append(Waiting(Wait.KEY, due - free, "the limit of their concurrency key is reached"))
    not_due = one.states["pending"] + one.states["failed"] - due
    if not_due > 0 and due < MAX_DUE_COUNTED:
        found.append(Waiting(Wait.NOT_DUE, not_due, "not due yet, held, or waiting for a retry"))
    if blocked := one.states["blocked"]:
        found.append(Waiting(Wait.BLOCKED, blocked, "waiting for other jobs"))
    return found


def serves(worker: Worker, queue: str) -> bool:
    return worker.queues is None or queue in (*worker.queues, WEBHOOK_QUEUE)


def set_rules(
    open_store: Callable[[], Store], queue: str, given: Mapping[str, object], *, by_option: bool = False
) -> QueueView:
    """Change the settings that are `given`; None: unchanged. Raises InvalidInput before anything is created or written; the message
    names the field, or the option with `by_option`."""
    check_queue(queue)
    changes = _read(given, by_option=by_option)
    if not changes:
        raise UsageError("nothing to set", hint="say what: queuectl queue set NAME --concurrency 2 --rate 10/m")
    store = open_store()
    store.queues.set_rules(queue, changes)
    return view(store, queue)


def parse_rules(given: Mapping[str, object]) -> QueueSettings:
    """Parse the output of `rules_to_dict`, plus `paused`; null means not set."""
    return QueueSettings(**_read(given))


def _read(given: Mapping[str, object], *, by_option: bool = False) -> dict[str, Any]:
    """The values by the names of QueueSettings."""
    for name in given:
        if name not in _READERS and name != "limits":
            raise unknown_name("rule", name, _READERS)
    found: dict[str, Any] = {}
    for name, value in given.items():
        try:
            if value is not None:
                found[name] = parse_limits(value, name) if name == "limits" else _READERS[name](value)
        except InvalidInput as error:
            if by_option:
                raise
            raise InvalidInput(name, error.problem, hint=error.hint.replace(error.subject, name)) from error
    of_runs = {name: found.pop(name) for name in LIMITS if name in found}
    by_rule = {("timeout_ms" if name == "timeout" else name): value for name, value in found.items()}
    return {**by_rule, "limits": of_runs} if of_runs else by_rule


def set_paused(
    queues: Iterable[str], *, paused: bool, reads: Callable[[], Reads], open_store: Callable[[], Store]
) -> list[str]:
    """Pause or resume queues. Returns those that changed; creates nothing if there are none."""
    wanted = list(dict.fromkeys(check_queue(queue) for queue in queues))
    before = reads().queues.rules()
    changed = [queue for queue in wanted if before.get(queue, QueueSettings()).paused is not paused]
    for queue in changed:
        open_store().queues.set_rules(queue, {"paused": paused})
    return changed


def move(
    queue: str, to: str, refs: Iterable[str] = (), *, reads: Callable[[], Reads], open_store: Callable[[], Store]
) -> BulkResult:
    """Move the waiting jobs of a queue to another one: all, or those that `refs` name. Creates nothing if there are none."""
    for name in (queue, to):
        parse_user_queue(name, "queue")
    if queue == to:
        raise UsageError(f"from {queue} to {to}: that is the same queue", hint="name another queue as the second")
    wanted = list(refs)
    if not wanted:
        waits = sum(reads().tally().get(queue, {}).values())
        return BulkResult(list(open_store().move(queue, to)) if waits else [], [])
    named, refused = resolve_ids(reads(), wanted)
    if not named:
        return BulkResult([], refused)
    store = open_store()
    moved = store.move(queue, to, ids=named)
    for job_id, job in find_jobs(store, [job_id for job_id in named if job_id not in moved]).items():
        problem = f"is {job.state.value}" if job.queue == queue else f"is in the queue {job.queue}"
        refused.append(Refusal(job_id, NotMovable(job_id, problem)))
    return BulkResult([job_id for job_id in named if job_id in moved], refused)


def paused_of(store: Reads, ids: Iterable[str]) -> list[str]:
    """The queues of these jobs that are paused."""
    paused = {queue for queue, rules in store.queues.rules().items() if rules.paused}
    return sorted(paused & {job.queue for job in find_jobs(store, ids).values()}) if paused else []


def check_queue(name: str) -> str:
    return read.queue(name, "queue")


# ── input ─────────────────────────────────────────────────────────────────────────────────────────────────


def _count(value: object, name: str) -> int:
    return _integer(value, name, low=1, high=MAX_QUEUE_LIMIT)


def _integer(value: object, name: str, *, low: int, high: int) -> int:
    if isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]{1,18}", value):
        value = int(value)
    if type(value) is int and low <= value <= high:
        return value
    problem = f"expected an integer from {low} to {high} or {NO_VALUE}, got {short_repr(value)}"
    raise InvalidInput(name, problem, hint=f"for example, {name} {max(low, 2)}; {NO_VALUE} removes it")


def _limit(limit: str, value: object, name: str) -> int:
    # A text may be a number; any other text is rejected by the parser of the setting.
    is_number = limit in ("nice", "open_files", "processes") and isinstance(value, str)
    return LIMITS[limit].read(_number(value) if is_number else value, name)


def _number(value: object) -> object:
    text = str(value)
    return int(text) if len(text) <= 18 and text.removeprefix("-").isdecimal() and text.isascii() else value


def _or_nothing(name: str, reader: Callable[[Any, str], object]) -> Callable[[object], object]:
    spelled = f"--{name.replace('_', '-')}"

    def parse(value: object) -> object:
        is_nothing = isinstance(value, str) and value.strip().lower() == NO_VALUE
        return None if is_nothing else reader(value, spelled)

    return parse


_READERS: Mapping[str, Callable[[object], object]] = {
    "paused": lambda value: read.flag(value, "paused"),
    "concurrency": _or_nothing("concurrency", _count),
    "per_key": _or_nothing("per_key", _count),
    "rate": _or_nothing("rate", lambda value, name: parse_rate(str(value), subject=name)),
    "priority": _or_nothing(
        "priority", lambda value, name: _integer(value, name, low=-read.MAX_PRIORITY, high=read.MAX_PRIORITY)
    ),
    "max_retries": _or_nothing("max_attempts", lambda value, name: _integer(value, name, low=0, high=read.MAX_RETRIES)),
    "timeout": _or_nothing("timeout", lambda value, name: read.timeout(value, name) or 0),
    **{name: _or_nothing(name, partial(_limit, name)) for name in LIMITS},
    "on_success": _or_nothing("on_success", parse_url),
    "on_failure": _or_nothing("on_failure", parse_url),
    "on_dead": _or_nothing("on_dead", parse_url),
}
