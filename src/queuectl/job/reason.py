"""Why is it not running yet? All that keeps a job waiting, and the first of it as one line for whoever waits for it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, assert_never

from queuectl.job.array import is_of_array
from queuectl.job.graph import waits_for
from queuectl.job.lifecycle import WAITING, State
from queuectl.job.limits import Brake
from queuectl.job.model import from_ms, iso

PARENTS_NAMED: Final = 3  # on one line


class Wait(StrEnum):
    """What a job waits for. The values are codes of `explain`."""

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


NAMED: Final = 5  # of those that have the places of a key


def waits(
    state: State,
    *,
    run_at_ms: int,
    now_ms: int,
    held: bool,
    served: bool | None,
    brake: Brake | None = None,
    of_key: int = 0,
    places: int | None = None,
) -> list[Wait]:
    """All that a job waits for, first what decides; nothing for one that does not wait.

    `served` says whether a live worker serves its queue, None if nobody has looked; `brake` is that of its queue, None if
    there is none; `of_key` is how many run that have its key, `places` how many of them may, as it says itself.
    """
    if state not in WAITING:
        return []
    found = [Wait.BLOCKED] if state is State.BLOCKED else []
    if held:
        found.append(Wait.HELD)
    if run_at_ms > now_ms and state is not State.BLOCKED:  # one that is blocked has no time of its own yet
        found.append(Wait.RETRY if state is State.FAILED else Wait.NOT_DUE)
    if brake is not None and brake.paused:
        found.append(Wait.PAUSED)
    if served is False:
        found.append(Wait.UNSERVED)
    # What a limit has to say to one that could not run anyhow will have changed by the time that it could.
    if not found:
        most = limit_of_key(places, brake)
        found += [Wait.FULL] if brake is not None and brake.is_full else []
        found += [Wait.KEY] if most is not None and of_key >= most else []
        found += [Wait.RATE] if brake is not None and brake.opens_at is not None else []
    return found or [Wait.SLOT]


def limit_of_key(places: int | None, brake: Brake | None) -> int | None:
    """How many of its key may run: as the job says itself, else as its queue does."""
    return places if places is not None or brake is None else brake.per_key


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
    brake: Brake | None = None,
    key: str | None = None,
    of_key: Sequence[str] = (),
    parents: Sequence[tuple[str, str]] = (),
    places: int | None = None,
) -> str | None:
    """What a waiting job waits for, on one line; None for a job that does not wait.

    `allowed` is the number of failed runs that makes it dead, `cron` the schedule that it is of, `of_key` who runs that has
    its key, `places` how many of them may, as it says itself; `parents`, with their states, are the first of those that it is
    blocked by.
    """
    found = waits(
        state,
        run_at_ms=run_at_ms,
        now_ms=now_ms,
        held=held,
        served=served,
        brake=brake,
        of_key=len(of_key),
        places=places,
    )
    if not found:
        return None
    match found[0]:
        case Wait.BLOCKED:
            return f"waits for {waits_for(parents, named=PARENTS_NAMED)}"
        case Wait.HELD:
            return "held" if cron is None else f"waits until the job before it of the schedule {cron} has ended"
        case Wait.RETRY:
            return f"retry at {iso(from_ms(run_at_ms))}, attempt {attempts + 1} of {allowed}"
        case Wait.NOT_DUE:
            return f"not due until {iso(from_ms(run_at_ms))}"
        case Wait.PAUSED:
            return "queue paused"
        case Wait.FULL:
            return f"limit of the queue reached: {brake.running} of {brake.concurrency} run" if brake else None
        case Wait.KEY:
            return key_full(key, of_key, limit_of_key(places, brake))
        case Wait.RATE:
            opens_at = None if brake is None or brake.opens_at is None else from_ms(brake.opens_at)
            return f"rate of the queue reached: next at {iso(opens_at)}"
        case Wait.UNSERVED:
            return "no live worker serves its queue"
        case Wait.SLOT:
            return "waits for a free slot"
        case unreachable:
            assert_never(unreachable)


def key_full(key: str | None, running: Sequence[str], most: int | None) -> str:
    who = "array" if is_of_array(key) else f"key {key}"
    more = f" and {len(running) - NAMED:,} more" if len(running) > NAMED else ""
    return f"the {who} has its {len(running)} of {most} running: {', '.join(running[:NAMED])}{more}"
