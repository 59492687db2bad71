"""Dependencies: those of new jobs, and how they are resolved when a parent ends. The rules are in jobs/dependencies.py."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from queuectl.errors import InvalidInput, Unavailable
from queuectl.errors.jobs import ParentEnded, ParentNotFound
from queuectl.jobs.dependencies import Dependency, DependencyState, evaluate, find_cycle, orphan_error
from queuectl.jobs.priority import Ageing, Standing, effective_priority, rank
from queuectl.jobs.spec import NewJob
from queuectl.jobs.states import TRANSITIONS, Event, State
from queuectl.store.transactions import Transactions
from queuectl.store.types import Row

MAX_CHILDREN_PER_STEP: Final = 200  # some ten milliseconds
MAX_CHILDREN_WITH_ENDS: Final = 20  # in an exchange that settles runs, so that it does not delay them
MAX_PARENTS_PER_STEP: Final = 50
STATEMENTS: Final = {Event.UNBLOCK: "unblock", Event.ORPHAN: "orphan", Event.REBLOCK: "reblock"}
_FROM: Final = {Event.UNBLOCK: State.BLOCKED, Event.ORPHAN: State.BLOCKED, Event.REBLOCK: State.CANCELLED}

# parent, child, need, otherwise, state: the parameters of `link`, in its order.
EdgeRow = tuple[int, int, str, str, str]


class ParentState(NamedTuple):
    seq: int
    state: State


def read_parents(rows: Iterable[Row]) -> dict[str, ParentState]:
    """From the rows of `new_parents`, by ID."""
    return {id_: ParentState(seq, State(state)) for id_, seq, state in rows}


class NewLink(NamedTuple):
    child: str
    parents: list[tuple[Dependency, DependencyState]]

    @property
    def is_blocked(self) -> bool:
        return any(state is DependencyState.WAITING for _, state in self.parents)


class NewLinks(NamedTuple):
    """The dependencies of new jobs."""

    links: list[NewLink]
    parents: Mapping[str, ParentState]  # those that existed before

    def blocked(self) -> frozenset[str]:
        """The IDs of jobs that have to wait."""
        return frozenset(link.child for link in self.links if link.is_blocked)

    def edges(self, new: Mapping[str, int]) -> list[EdgeRow]:
        """The parameters of `link`. `new`: the sequence numbers of the new jobs."""
        return [
            (
                new[parent.id] if parent.id in new else self.parents[parent.id].seq,
                new[link.child],
                parent.when.value,
                parent.otherwise.value,
                state.value,
            )
            for link in self.links
            for parent, state in link.parents
        ]

    def depends_on(self, new: Mapping[str, int]) -> list[tuple[int, bool, str]]:
        """The sequence number of each job, whether it is blocked, and its dependencies as JSON."""
        return [
            (new[link.child], link.is_blocked, json.dumps([parent.to_json() for parent, _ in link.parents]))
            for link in self.links
        ]


class Entering(NamedTuple):
    """New jobs that are about to be inserted. Unique jobs may be skipped, see store/unique.py."""

    jobs: Sequence[NewJob]
    ids: Sequence[str]
    instead: Mapping[str, str] = MappingProxyType({})  # by the ID of a skipped job, the existing one
    replaced: frozenset[str] = frozenset()  # cancelled by one of these, in the same transaction

    def outside(self) -> list[str]:
        """The IDs of parents that are not new jobs themselves."""
        named = {parent.id for job in self.jobs for parent in job.depends_on}
        return sorted({self.instead.get(id_, id_) for id_ in named} - set(self.ids))


def refuse_cycles(parents: Mapping[str, Sequence[str]]) -> None:
    """Raise InvalidInput if new jobs depend on each other in a cycle; existing jobs cannot depend on new ones."""
    if cycle := find_cycle(parents):
        problem = "a job cannot wait for itself" if len(cycle) == 2 else "these jobs wait for each other"
        raise InvalidInput("depends_on", f"{problem}: {' → '.join(cycle)}", hint="leave one of them out")


def link(batch: Entering, parents: Mapping[str, ParentState]) -> NewLinks:
    """`parents`: those of `outside` that exist. Raises ParentNotFound, ParentEnded or InvalidInput."""
    inside, links = set(batch.ids), []
    for job, id_ in zip(batch.jobs, batch.ids, strict=True):
        if job.depends_on:
            found = [_judged(wanted, batch, inside, parents, child=job.id) for wanted in job.depends_on]
            links.append(NewLink(id_, _once(found, is_cancelled=id_ in batch.replaced)))
    refuse_cycles({link.child: [parent.id for parent, _ in link.parents] for link in links})
    return NewLinks(links, parents)


def _judged(
    given: Dependency, batch: Entering, inside: set[str], parents: Mapping[str, ParentState], *, child: str | None
) -> tuple[Dependency, DependencyState]:
    wanted = given._replace(id=batch.instead.get(given.id, given.id))
    if wanted.id in batch.replaced:
        parent_state = State.CANCELLED
    elif wanted.id in inside:
        parent_state = State.PENDING
    elif (parent := parents.get(wanted.id)) is not None:
        parent_state = parent.state
    else:
        raise ParentNotFound(given.id, child=child)
    state = evaluate(wanted.when, wanted.otherwise, parent_state)
    if state is DependencyState.BROKE:
        when = {"completed": "completed", "failed": "dead", "ended": "ended"}[wanted.when]
        raise ParentEnded(wanted.id, parent_state, when=when, child=child, ref=given.id)
    return wanted, state


def _once(
    parents: Sequence[tuple[Dependency, DependencyState]], *, is_cancelled: bool
) -> list[tuple[Dependency, DependencyState]]:
    """Each parent once: two IDs may stand for one job, see `Entering.instead`."""
    found: dict[str, tuple[Dependency, DependencyState]] = {}
    for parent, state in parents:
        one = parent, DependencyState.VOID if is_cancelled else state
        if found.setdefault(parent.id, one) != one:
            raise InvalidInput("depends_on", f"waits for {parent.id!r} in two ways", hint="name each parent once")
    return list(found.values())


class Moment(NamedTuple):
    """The time of a transaction, as far as the rank of jobs depends on it."""

    now: int
    last_seq: int
    ageing: Ageing


class Resolution(NamedTuple):
    """The result of some steps of `decide`."""

    freed: bool  # some jobs may be claimed now, or when they come due
    more: bool  # there are more to resolve


NOTHING_RESOLVED: Final = Resolution(freed=False, more=False)


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


class ChildChange(NamedTuple):
    """A transition of a child, and the parameters of the statement that writes it."""

    event: Event
    was: State
    now: State
    values: dict[str, Any]


def change_child(event: Event, child: Child, parent: Parent, at: Moment) -> ChildChange:
    values: dict[str, Any] = {"seq": child.seq, "now": at.now}
    standing = Standing(child.priority, child.seq, child.eligible_at, child.missed)
    match event:
        case Event.UNBLOCK:
            run_at = max(child.run_at, at.now)
            values |= {"run_at": run_at, "rank": rank(at.ageing, standing._replace(eligible_ms=run_at))}
        case Event.ORPHAN:
            standing = standing._replace(eligible_ms=at.now)  # blocked jobs do not age
            shown = effective_priority(at.ageing, standing, now_ms=at.now, last_seq=at.last_seq)
            values |= {"error": orphan_error(parent.id, parent.state), "effective_priority": shown}
        case _:
            assert event is Event.REBLOCK
            values["rank"] = rank(at.ageing, standing)
    was = _FROM[event]
    return ChildChange(event, was, TRANSITIONS[was, event], values)


class Resolver(ABC):
    """Base of the two dialects: resolves dependencies on jobs that have ended or were retried."""

    def __init__(self, tx: Transactions) -> None:
        self._tx = tx

    @abstractmethod
    def decide(self) -> bool:
        """Resolve some dependencies on jobs that have ended, in a bounded transaction. Whether there are more.

        Operations that end or retry a job leave its children to this. Those for users resolve all of them before they
        return; `exchange` resolves some each time.
        """

    def is_undecided(self) -> bool:
        return bool(self._tx.value("is_undecided"))

    def resolve_all(self) -> None:
        if self.is_undecided():
            while self.decide():
                pass

    def try_to_resolve_all(self) -> None:
        """After a transaction that has ended jobs: there may be no worker to do it. The transaction is committed, so an unavailable
        database is no error here; a later call resolves the rest."""
        with suppress(Unavailable):
            self.resolve_all()
