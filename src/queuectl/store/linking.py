"""New jobs that wait for others: what is refused, and the rows of their edges, the same for every dialect."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from queuectl.errors import InvalidInput
from queuectl.errors.flow import ParentEnded, ParentNotFound
from queuectl.job.graph import Dependency, EdgeState, find_cycle, judge
from queuectl.job.lifecycle import State
from queuectl.job.newjob import NewJob

# parent, child, need, otherwise, state: the parameters of `link`, in its order.
EdgeRow = tuple[int, int, str, str, str]


class Parent(NamedTuple):
    seq: int
    state: State


class Link(NamedTuple):
    child: str
    parents: list[tuple[Dependency, EdgeState]]

    @property
    def is_blocked(self) -> bool:
        return any(state is EdgeState.WAITING for _, state in self.parents)


class Links(NamedTuple):
    """Of those jobs of a batch that have parents."""

    links: list[Link]
    parents: Mapping[str, Parent]  # those that were there before

    def blocked(self) -> frozenset[str]:
        """Those that have to wait."""
        return frozenset(link.child for link in self.links if link.is_blocked)

    def edges(self, new: Mapping[str, int]) -> list[EdgeRow]:
        """`new`: the sequence numbers of the batch."""
        return [
            (self._seq(parent.id, new), new[link.child], parent.when.value, parent.otherwise.value, state.value)
            for link in self.links
            for parent, state in link.parents
        ]

    def said(self, new: Mapping[str, int]) -> list[tuple[int, bool, str]]:
        """Of each job its sequence number, whether it is blocked, and what it said of its parents."""
        return [
            (new[link.child], link.is_blocked, json.dumps([parent.to_json() for parent, _ in link.parents]))
            for link in self.links
        ]

    def _seq(self, parent: str, new: Mapping[str, int]) -> int:
        return new[parent] if parent in new else self.parents[parent].seq


class Entering(NamedTuple):
    """A batch on its way in. With keys, not all of it: see store/unique.py."""

    jobs: Sequence[NewJob]
    ids: Sequence[str]
    instead: Mapping[str, str] = MappingProxyType({})  # for those that stay outside, the job that is there
    replaced: frozenset[str] = frozenset()  # called off by one of these, in the same transaction

    def outside(self) -> list[str]:
        """The parents that are not of the batch themselves."""
        named = {parent.id for job in self.jobs for parent in job.depends_on}
        return sorted({self.instead.get(id_, id_) for id_ in named} - set(self.ids))


def refuse_cycles(parents: Mapping[str, Sequence[str]]) -> None:
    """Of the jobs of a batch: those that are there already cannot wait for new ones. Raises InvalidInput that names one."""
    if cycle := find_cycle(parents):
        problem = "a job cannot wait for itself" if len(cycle) == 2 else "these jobs wait for each other"
        raise InvalidInput("depends_on", f"{problem}: {' → '.join(cycle)}", hint="leave one of them out")


def link(batch: Entering, parents: Mapping[str, Parent]) -> Links:
    """`parents` are those of `outside` that the store has, as they are now. Raises ParentNotFound, ParentEnded or InvalidInput."""
    inside, links = set(batch.ids), []
    for job, id_ in zip(batch.jobs, batch.ids, strict=True):
        if job.depends_on:
            found = [_judged(wanted, batch, inside, parents, child=job.id) for wanted in job.depends_on]
            links.append(Link(id_, _once(found, is_called_off=id_ in batch.replaced)))
    refuse_cycles({link.child: [parent.id for parent, _ in link.parents] for link in links})
    return Links(links, parents)


def _judged(
    said: Dependency, batch: Entering, inside: set[str], parents: Mapping[str, Parent], *, child: str | None
) -> tuple[Dependency, EdgeState]:
    wanted = said._replace(id=batch.instead.get(said.id, said.id))
    if wanted.id in batch.replaced:
        parent_state = State.CANCELLED
    elif wanted.id in inside:
        parent_state = State.PENDING
    elif (parent := parents.get(wanted.id)) is not None:
        parent_state = parent.state
    else:
        raise ParentNotFound(said.id, child=child)
    state = judge(wanted.when, wanted.otherwise, parent_state)
    if state is EdgeState.BROKE:
        when = {"completed": "completed", "failed": "dead", "ended": "ended"}[wanted.when]
        raise ParentEnded(wanted.id, parent_state, when=when, child=child, said=said.id)
    return wanted, state


def _once(
    parents: Sequence[tuple[Dependency, EdgeState]], *, is_called_off: bool
) -> list[tuple[Dependency, EdgeState]]:
    """Two names may have come to mean one job."""
    found: dict[str, tuple[Dependency, EdgeState]] = {}
    for parent, state in parents:
        one = parent, EdgeState.VOID if is_called_off else state
        if found.setdefault(parent.id, one) != one:
            raise InvalidInput("depends_on", f"waits for {parent.id!r} in two ways", hint="name each parent once")
    return list(found.values())
