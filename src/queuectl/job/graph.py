"""Jobs that wait for other jobs: what each edge of the graph asks for, and what becomes of a job when a parent ends.

An edge leads from a parent to the child that waits for it. It waits until the parent has ended for good; then it is met, or
it broke. A child is blocked exactly while one of its edges waits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from queuectl.job.lifecycle import Event, State, is_final


class Need(StrEnum):
    """How a parent has to end."""

    COMPLETED = "completed"
    ENDED = "ended"  # however
    FAILED = "failed"  # for good: dead


class Otherwise(StrEnum):
    """What becomes of the child of a parent that has ended in another way."""

    CANCEL = "cancel"
    RUN = "run"


class EdgeState(StrEnum):
    WAITING = "waiting"
    MET = "met"
    BROKE = "broke"  # it called the child off; if the parent is given another chance, so is the child
    VOID = "void"  # nobody waits for it any more: the child was called off, or was told to run all the same


class Dependency(NamedTuple):
    """What a job says of one of its parents."""

    id: str
    when: Need = Need.COMPLETED
    otherwise: Otherwise = Otherwise.CANCEL

    def to_json(self) -> str | dict[str, str]:
        if (self.when, self.otherwise) == (Need.COMPLETED, Otherwise.CANCEL):
            return self.id
        return {"id": self.id, "when": self.when.value, "else": self.otherwise.value}


_SATISFIES = {
    State.COMPLETED: frozenset({Need.COMPLETED, Need.ENDED}),
    State.DEAD: frozenset({Need.FAILED, Need.ENDED}),
    State.CANCELLED: frozenset({Need.ENDED}),
}


def judge(need: Need, otherwise: Otherwise, parent: State) -> EdgeState:
    """What an edge is, seen from its parent alone."""
    if not is_final(parent):
        return EdgeState.WAITING
    is_met = need in _SATISFIES[parent] or otherwise is Otherwise.RUN
    return EdgeState.MET if is_met else EdgeState.BROKE


def mended_by(parent: State) -> frozenset[Need]:
    """Of the edges that broke, those whose parent, being in this state now, would not break them."""
    return _SATISFIES[parent] - {Need.ENDED} if is_final(parent) else frozenset({Need.COMPLETED, Need.FAILED})


def decide(was: EdgeState, now: EdgeState, *, is_last: bool) -> Event | None:
    """What happens to a child when one of its edges, which waited or broke, has come to be judged so. `is_last`: it has no
    other edge that waits.

    One whose parent was given another chance waits again, also if that has ended meanwhile: then it is judged anew.
    """
    if was is EdgeState.BROKE:
        return Event.REBLOCK
    if now is EdgeState.BROKE:
        return Event.ORPHAN
    return Event.UNBLOCK if now is EdgeState.MET and is_last else None


def orphan_error(parent: str, state: State) -> str:
    return f"cancelled: {parent}, for which it waited, is {state}"


def waits_for(parents: Sequence[tuple[str, str]], *, named: int) -> str:
    """Which parents a job waits for and what they do now, in words: `build (processing), test (pending) and others`."""
    if not parents:
        return "other jobs"
    words = [f"{id_} ({state})" for id_, state in parents[:named]] + ["others"] * (len(parents) > named)
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def find_cycle(parents: Mapping[str, Sequence[str]]) -> list[str] | None:
    """A way from a job to itself, from parent to child, its first job once more at the end; None if there is none.

    `parents` names those of each job. Who is not in it cannot be part of a cycle.
    """
    done: set[str] = set()
    for start in parents:
        way: list[str] = []  # from child to parent, each waiting for the one behind it
        at: dict[str, int] = {}
        left = [(start, False)]
        while left:
            job, is_left = left.pop()
            if is_left:
                done.add(job)
                at.pop(way.pop())
            elif job in at:
                return [*reversed(way[at[job] :]), way[-1]]
            elif job not in done and job in parents:
                at[job] = len(way)
                way.append(job)
                left.append((job, True))
                left.extend((parent, False) for parent in parents[job])
    return None


def read_dependencies(values: Sequence[Any]) -> tuple[Dependency, ...]:
    """As `Dependency.to_json` has them."""
    return tuple(
        Dependency(value)
        if isinstance(value, str)
        else Dependency(value["id"], Need(value["when"]), Otherwise(value["else"]))
        for value in values
    )
