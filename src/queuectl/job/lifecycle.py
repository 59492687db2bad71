"""The states of a job and everything that may move it from one to another, as one table.

New state or event? Also: the CHECK constraint of each schema, docs/reference/lifecycle.md, cli/style.py.
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


class Event(StrEnum):
    UNBLOCK = "unblock"  # its parents have ended as it needs
    ORPHAN = "orphan"  # a parent can no longer satisfy it
    REBLOCK = "reblock"  # the parent that called it off was given another chance
    CLAIM = "claim"  # a worker takes it
    SUCCEED = "succeed"  # exit code 0
    FAIL = "fail"  # the run failed and there is a next one
    EXHAUST = "exhaust"  # the run failed and it was the last one
    CANCEL = "cancel"  # a person or a rule called it off
    REFUSE = "refuse"  # the policy of its worker's host is against it
    RELEASE = "release"  # its worker was told to end at once
    LOSE = "lose"  # its worker died
    POISON = "poison"  # its worker died, once too often
    REVIVE = "revive"  # a person gives it another chance


TRANSITIONS: Final[dict[tuple[State, Event], State]] = {
    (State.BLOCKED, Event.UNBLOCK): State.PENDING,
    (State.BLOCKED, Event.ORPHAN): State.CANCELLED,
    (State.BLOCKED, Event.CANCEL): State.CANCELLED,
    (State.PENDING, Event.CLAIM): State.PROCESSING,
    (State.PENDING, Event.CANCEL): State.CANCELLED,
    (State.FAILED, Event.CLAIM): State.PROCESSING,
    (State.FAILED, Event.CANCEL): State.CANCELLED,
    (State.FAILED, Event.REVIVE): State.PENDING,
    (State.PROCESSING, Event.SUCCEED): State.COMPLETED,
    (State.PROCESSING, Event.FAIL): State.FAILED,
    (State.PROCESSING, Event.EXHAUST): State.DEAD,
    (State.PROCESSING, Event.CANCEL): State.CANCELLED,
    (State.PROCESSING, Event.REFUSE): State.DEAD,
    (State.PROCESSING, Event.RELEASE): State.PENDING,
    (State.PROCESSING, Event.LOSE): State.PENDING,
    (State.PROCESSING, Event.POISON): State.DEAD,
    (State.DEAD, Event.REVIVE): State.PENDING,
    (State.CANCELLED, Event.REVIVE): State.PENDING,
    (State.CANCELLED, Event.REBLOCK): State.BLOCKED,
}

WAITING: Final = frozenset({State.BLOCKED, State.PENDING, State.FAILED})
FINAL: Final = frozenset({State.COMPLETED, State.DEAD, State.CANCELLED})


def after(state: State, event: Event) -> State | None:
    """The state that `event` leads to, or None where it cannot happen."""
    return TRANSITIONS.get((state, event))


def states_that_take(event: Event) -> tuple[State, ...]:
    return tuple(state for state, taken in TRANSITIONS if taken is event)


def is_final(state: State) -> bool:
    return state in FINAL
