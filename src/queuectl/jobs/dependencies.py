"""Dependencies between jobs: how a parent has to end, and what happens to a child when it does.

A dependency waits until its parent has reached a final state; then it is met or broken. A child is blocked exactly while one of its
dependencies waits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from queuectl.jobs.states import Event, State, is_final


class Need(StrEnum):
    """How a parent has to end."""

    COMPLETED = "completed"
    ENDED = "ended"  # in any final state
    FAILED = "failed"  # dead


class Otherwise(StrEnum):
    """What happens to the child if the parent ends in another way."""

    CANCEL = "cancel"
    RUN = "run"


class DependencyState(StrEnum):
    WAITING = "waiting"
    MET = "met"
    BROKE = "broke"  # it cancelled the child; if the parent is retried, so is the child
    VOID = "void"  # without effect: the child was cancelled, or was made to run without it


class Dependency(NamedTuple):
    """A parent of a job, and how it has to end."""

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


def evaluate(need: Need, otherwise: Otherwise, parent: State) -> DependencyState:
    """The state of a dependency, given the state of the parent."""
    if not is_final(parent):
        return DependencyState.WAITING
    is_met = need in _SATISFIES[parent] or otherwise is Otherwise.RUN
    return DependencyState.MET if is_met else DependencyState.BROKE


def needs_met_again_by(parent: State) -> frozenset[Need]:
    """The needs that a parent in this state does not break."""
    return _SATISFIES[parent] - {Need.ENDED} if is_final(parent) else frozenset({Need.COMPLETED, Need.FAILED})


def child_event(was: DependencyState, now: DependencyState, *, is_last: bool) -> Event | None:
    """The event of a child when one of its dependencies changes from waiting or broken. `is_last`: no other one waits.

    A child whose parent was retried is blocked again, also if the parent has ended since: then it is evaluated again.
    """
    if was is DependencyState.BROKE:
        return Event.REBLOCK
    if now is DependencyState.BROKE:
        return Event.ORPHAN
    return Event.UNBLOCK if now is DependencyState.MET and is_last else None


def orphan_error(parent: str, state: State) -> str:
    return f"cancelled: {parent}, for which it waited, is {state}"


def format_parents(parents: Sequence[tuple[str, str]], *, named: int) -> str:
    """The parents and their states: `build (processing), test (pending) and others`."""
    if not parents:
        return "other jobs"
    names = [f"{id_} ({state})" for id_, state in parents[:named]] + ["others"] * (len(parents) > named)
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def find_cycle(parents: Mapping[str, Sequence[str]]) -> list[str] | None:
    """A cycle as a path from parent to child that ends where it begins; None if there is none.

    `parents` maps each job to its parents. Jobs without an entry cannot be part of a cycle.
    """
    done: set[str] = set()
    for start in parents:
        path: list[str] = []  # from child to parent
        at: dict[str, int] = {}
        left = [(start, False)]
        while left:
            job, is_left = left.pop()
            if is_left:
                done.add(job)
                at.pop(path.pop())
            elif job in at:
                return [*reversed(path[at[job] :]), path[-1]]
            elif job not in done and job in parents:
                at[job] = len(path)
                path.append(job)
                left.append((job, True))
                left.extend((parent, False) for parent in parents[job])
    return None


def parse_dependencies(values: Sequence[Any]) -> tuple[Dependency, ...]:
    """The inverse of `Dependency.to_json`."""
    return tuple(
        Dependency(value)
        if isinstance(value, str)
        else Dependency(value["id"], Need(value["when"]), Otherwise(value["else"]))
        for value in values
    )
