"""Telling jobs what became of those they wait for: the seam, and what is written, the same for every dialect."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, Protocol

from queuectl.job.graph import orphan_error
from queuectl.job.lifecycle import TRANSITIONS, Event, State
from queuectl.job.rank import Ageing, Standing, effective_priority, rank

AT_ONCE: Final = 200  # children in one transaction: some ten milliseconds
BESIDE_ENDS: Final = 20  # in an exchange that writes ends: those shall not take longer for it than anybody notices
PARENTS_AT_ONCE: Final = 50
_FROM: Final = {Event.UNBLOCK: State.BLOCKED, Event.ORPHAN: State.BLOCKED, Event.REBLOCK: State.CANCELLED}


class Decides(Protocol):
    def decide(self) -> bool:
        """Tell some of the jobs that wait for others what became of those, in a bounded transaction. Whether there are more.

        Whoever ends a job or gives it another chance, by whatever verb, leaves its children to be told by this; the verbs
        that people use see to it that all are told before they return, and `exchange` tells some each time.
        """
        ...


class Moment(NamedTuple):
    """When a transaction happens, by all that counts as time here."""

    now: int
    last_seq: int
    ageing: Ageing


class Told(NamedTuple):
    """What some steps of `decide` have come to."""

    freed: bool  # some may be claimed now, or when they come due
    more: bool  # there are more to tell


NOTHING_TOLD: Final = Told(freed=False, more=False)


class Parent(NamedTuple):
    seq: int
    id: str
    state: State


class Child(NamedTuple):
    seq: int
    queue: str
    priority: int
    eligible_at: int
    missed: int
    run_at: int
    unique_key: str | None


class Change(NamedTuple):
    """The statement is named after the event."""

    event: Event
    was: State
    now: State
    values: dict[str, Any]


def change(event: Event, child: Child, parent: Parent, at: Moment) -> Change:
    values: dict[str, Any] = {"seq": child.seq, "now": at.now}
    standing = Standing(child.priority, child.seq, child.eligible_at, child.missed)
    match event:
        case Event.UNBLOCK:
            run_at = max(child.run_at, at.now)
            values |= {"run_at": run_at, "rank": rank(at.ageing, standing._replace(eligible_ms=run_at))}
        case Event.ORPHAN:
            standing = standing._replace(eligible_ms=at.now)  # being blocked earns nothing
            shown = effective_priority(at.ageing, standing, now_ms=at.now, last_seq=at.last_seq)
            values |= {"error": orphan_error(parent.id, parent.state), "effective_priority": shown}
        case _:
            assert event is Event.REBLOCK
            values["rank"] = rank(at.ageing, standing)
    was = _FROM[event]
    return Change(event, was, TRANSITIONS[was, event], values)
