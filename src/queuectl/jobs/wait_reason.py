"""The reasons why a job is not running, and the first of them as one line."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, assert_never

from queuectl.jobs.dependencies import format_parents
from queuectl.jobs.queue_limits import QueueLoad
from queuectl.jobs.states import WAITING, State
from queuectl.text import shortened
from queuectl.units import from_ms, is_array_key, iso

MAX_NAMED_PARENTS: Final = 3


class Wait(StrEnum):
    """A reason for waiting. The values are codes of `explain`."""

    BLOCKED = "blocked"
    HELD = "held"
    RETRY = "retry-not-due"
    NOT_DUE = "not-due"
    PAUSED = "queue-paused"
    UNSERVED = "queue-not-served"
    FULL = "queue-full"
    KEY = "key-full"
    RATE = "queue-rate"
    SLOT = "waits-for-slot"


def waits(
    state: State,
    *,
    run_at_ms: int,
    now_ms: int,
    held: bool,
    served: bool | None,
    load: QueueLoad | None = None,
    of_key: int = 0,
    places: int | None = None,
) -> list[Wait]:
    """All reasons why a job waits, the decisive one first; empty for a job that does not wait.

    `served`: whether a live worker serves its queue, None if unknown; `load`: that of its queue, None without limits; `of_key`: the
    number of running jobs with its key; `places`: the limit of its key that the job itself sets.
    """
    if state not in WAITING:
        return []
    found = [Wait.BLOCKED] if state is State.BLOCKED else []
    if held:
        found.append(Wait.HELD)
    if run_at_ms > now_ms and state is not State.BLOCKED:  # a blocked job has no due time yet
        found.append(Wait.RETRY if state is State.FAILED else Wait.NOT_DUE)
    if load is not None and load.paused:
        found.append(Wait.PAUSED)
    if served is False:
        found.append(Wait.UNSERVED)
    # Limits are irrelevant for a job that could not run anyway: they may have changed by the time it can.
    if not found:
        most = limit_of_key(places, load)
        found += [Wait.FULL] if load is not None and load.is_full else []
        found += [Wait.KEY] if most is not None and of_key >= most else []
        found += [Wait.RATE] if load is not None and load.opens_at is not None else []
    return found or [Wait.SLOT]


def limit_of_key(places: int | None, load: QueueLoad | None) -> int | None:
    """The concurrency of its key: set by the job itself, else by its queue."""
    return places if places is not None or load is None else load.per_key


def reason(
    state: State,
    *,
    run_at_ms: int,
    now_ms: int,
    attempts: int,
    allowed: int,
    held: bool,
    served: bool | None,
    cron: str | None = None,
    load: QueueLoad | None = None,
    key: str | None = None,
    of_key: Sequence[str] = (),
    parents: Sequence[tuple[str, str]] = (),
    places: int | None = None,
) -> str | None:
    """The decisive reason on one line; None for a job that does not wait.

    `allowed`: the number of failed attempts after which it is dead; `cron`: the schedule that added it; `of_key`: the running jobs
    with its key; `parents`: the first of its unfinished parents, with their states. The rest is as for `waits`.
    """
    found = waits(
        state,
        run_at_ms=run_at_ms,
        now_ms=now_ms,
        held=held,
        served=served,
        load=load,
        of_key=len(of_key),
        places=places,
    )
    if not found:
        return None
    match found[0]:
        case Wait.BLOCKED:
            return f"waits for {format_parents(parents, named=MAX_NAMED_PARENTS)}"
        case Wait.HELD:
            return "held" if cron is None else f"waits until the job before it of the schedule {cron} has ended"
        case Wait.RETRY:
            return f"retry at {iso(from_ms(run_at_ms))}, attempt {attempts + 1} of {allowed}"
        case Wait.NOT_DUE:
            return f"not due until {iso(from_ms(run_at_ms))}"
        case Wait.PAUSED:
            return "queue paused"
        case Wait.FULL:
            return f"limit of the queue reached: {load.running} of {load.concurrency} run" if load else None
        case Wait.KEY:
            return key_full(key, of_key, limit_of_key(places, load))
        case Wait.RATE:
            opens_at = None if load is None or load.opens_at is None else from_ms(load.opens_at)
            return f"rate of the queue reached: next at {iso(opens_at)}"
        case Wait.UNSERVED:
            return "no live worker serves its queue"
        case Wait.SLOT:
            return "waits for a free slot"
        case unreachable:
            assert_never(unreachable)


def key_full(key: str | None, running: Sequence[str], most: int | None) -> str:
    owner = "array" if is_array_key(key) else f"key {key}"
    return f"the {owner} has its {len(running)} of {most} running: {shortened(running)}"
