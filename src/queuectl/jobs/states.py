"""The states of a job, the events, and the transitions between states, as one table.

A new state or event also needs: the CHECK constraint of each schema, docs/reference/lifecycle.md, cli/tables.py.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class State(StrEnum):
    BLOCKED = "blocked"
    PENDING = "pending"
    PROCESSING = "processing"
    FAILED = "failed"
    COMPLETED = "completed"
    DEAD = "dead"
    CANCELLED = "cancelled"


# Names of other tools, accepted in filters.
STATE_ALIASES: Final = {
    "queued": State.PENDING,
    "running": State.PROCESSING,
    "done": State.COMPLETED,
    "succeeded": State.COMPLETED,
}


class Event(StrEnum):
    UNBLOCK = "unblock"  # its parents have ended as required
    ORPHAN = "orphan"  # a parent ended in another way than required
    REBLOCK = "reblock"  # the parent whose end cancelled it was retried
    CLAIM = "claim"  # a worker claimed it
    SUCCEED = "succeed"  # exit code 0
    FAIL = "fail"  # the run failed and will be retried
    EXHAUST = "exhaust"  # the run failed and no attempt is left
    CANCEL = "cancel"  # a user or a rule cancelled it
    REFUSE = "refuse"  # the policy of its worker's host rejects it
    RELEASE = "release"  # its worker was stopped without waiting for it
    LOSE = "lose"  # its worker died
    POISON = "poison"  # its worker died, and max-crashes is reached
    RETRY = "retry"  # a user retries it


TRANSITIONS: Final[dict[tuple[State, Event], State]] = {
    (State.BLOCKED, Event.UNBLOCK): State.PENDING,
    (State.BLOCKED, Event.ORPHAN): State.CANCELLED,
    (State.BLOCKED, Event.CANCEL): State.CANCELLED,
    (State.PENDING, Event.CLAIM): State.PROCESSING,
    (State.PENDING, Event.CANCEL): State.CANCELLED,
    (State.FAILED, Event.CLAIM): State.PROCESSING,
    (State.FAILED, Event.CANCEL): State.CANCELLED,
    (State.FAILED, Event.RETRY): State.PENDING,
    (State.PROCESSING, Event.SUCCEED): State.COMPLETED,
    (State.PROCESSING, Event.FAIL): State.FAILED,
    (State.PROCESSING, Event.EXHAUST): State.DEAD,
    (State.PROCESSING, Event.CANCEL): State.CANCELLED,
    (State.PROCESSING, Event.REFUSE): State.DEAD,
    (State.PROCESSING, Event.RELEASE): State.PENDING,
    (State.PROCESSING, Event.LOSE): State.PENDING,
    (State.PROCESSING, Event.POISON): State.DEAD,
    (State.DEAD, Event.RETRY): State.PENDING,
    (State.CANCELLED, Event.RETRY): State.PENDING,
    (State.CANCELLED, Event.REBLOCK): State.BLOCKED,
}

WAITING: Final = frozenset({State.BLOCKED, State.PENDING, State.FAILED})
FINAL: Final = frozenset({State.COMPLETED, State.DEAD, State.CANCELLED})


def after(state: State, event: Event) -> State | None:
    """The state after `event`; None if the event is not possible."""
    return TRANSITIONS.get((state, event))


def states_that_take(event: Event) -> tuple[State, ...]:
    return tuple(state for state, taken in TRANSITIONS if taken is event)


def is_final(state: State) -> bool:
    return state in FINAL
