"""Jobs that wait for each other in the simulator: parents before children, and every job ends, whatever happens."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest

from queuectl.jobs.dependencies import Dependency, DependencyState, Need, Otherwise, child_event
from queuectl.jobs.spec import NewJob
from queuectl.jobs.states import FINAL, Event, State
from queuectl.store.sqlite import dependencies
from queuectl.store.sqlite.connection import SQL
from tests.needs import FULL
from tests.sim.defects import put
from tests.sim.people import People
from tests.sim.pool import Pool
from tests.sim.records import Row
from tests.sim.scene import Scene
from tests.sim.store import SimStore
from tests.sim.witness import Witness
from tests.swift import swift_folder

SEEDS: Final = 400 if FULL else 150
PORTION: Final = 50
BOUND: Final = 100  # within so many seeds each defect has to be found

# By what is promised, and not by how the store decides it.
SATISFIES: Final = {
    Need.COMPLETED: {State.COMPLETED},
    Need.ENDED: {State.COMPLETED, State.DEAD, State.CANCELLED},
    Need.FAILED: {State.DEAD},
}


class OfGraphs(Witness):
    first_states = frozenset({State.PENDING, State.BLOCKED})
    parents: dict[str, tuple[Dependency, ...]]
    was_met: set[tuple[str, str]]  # parent and child: it has been so once, and may have been revived since
    has_broken: set[tuple[str, str]]
    given_up: set[str]  # cancelled by a user: no parent brings it back

    def begin(self) -> None:
        self.parents, self.was_met, self.has_broken, self.given_up = {}, set(), set(), set()

    def committed(self, store: SimStore) -> bool:
        self._note_ends()
        return super().committed(store)

    def _note_ends(self) -> None:
        states = {row.id: State(row.state) for row in self._read().values()}
        for child, parents in self.parents.items():
            for parent in parents:
                if (state := states.get(parent.id)) in FINAL:
                    is_met = state in SATISFIES[parent.when] or parent.otherwise is Otherwise.RUN
                    (self.was_met if is_met else self.has_broken).add((parent.id, child))

    def _compare(self, old: Row, row: Row, store: SimStore) -> None:
        """What parents do to their children, whichever process writes it; the rest as for any job."""
        is_asked_for = store.verb == ("cancel" if row.state == State.CANCELLED else "retry")
        by_person = is_asked_for and row.id in store.named
        is_taken = row.token is not None and row.token != old.token
        was = old.state
        if was == State.CANCELLED != row.state and not by_person:
            self.must(row.id not in self.given_up, f"{row.id} was cancelled by a user and is {row.state} again")
        if old.state == State.BLOCKED and row.state == State.CANCELLED:
            cancelled = any((parent.id, row.id) in self.has_broken for parent in self.parents[row.id])
            self.must(cancelled or by_person, f"{row.id} is cancelled without a reason, by {store.verb}")
            if not by_person:
                old = old._replace(state=row.state)
        elif old.state == State.CANCELLED and row.state == State.BLOCKED:
            came_back = any((parent.id, row.id) in self.has_broken for parent in self.parents[row.id])
            self.must(came_back, f"{row.id} is blocked again by {store.verb}")
            old = old._replace(state=row.state)
        elif old.state != row.state and (
            old.state == State.BLOCKED or (old.state == State.CANCELLED and not by_person)
        ):
            left = [parent.id for parent in self.parents[row.id] if (parent.id, row.id) not in self.was_met]
            self.must(not left, f"{row.id} is {row.state} before {left}")
            old = old._replace(state=State.PENDING if is_taken else row.state)
        if row.state != State.CANCELLED:
            self.given_up.discard(row.id)
        elif by_person or was not in (State.BLOCKED, State.CANCELLED):
            self.given_up.add(row.id)
        super()._compare(old, row, store)

    def check_end(self) -> None:
        super().check_end()
        undecided = self.db.execute("select count(*) from undecided").fetchone()
        self.must(undecided == (0,), "a child has not been notified of the end of a parent")


class GraphPeople(People):
    def _linked(self, jobs: list[NewJob]) -> list[NewJob]:
        chance, witness = self._scene.chance, self._scene.witness
        assert isinstance(witness, OfGraphs)
        names = [str(job.id) for job in jobs]
        linked = []
        for place, job in enumerate(jobs):
            # Of the batch those before it, and any that came before; the batch itself is handed over in any order.
            known = [*names[:place], *(self._some_id() for _ in range(2))]
            chosen = [name for name in dict.fromkeys(known) if name != job.id and chance() < 0.4]
            parents = tuple(Dependency(name, self._need(), self._otherwise()) for name in chosen)
            witness.parents[str(job.id)] = parents
            linked.append(job._replace(depends_on=parents))
        return sorted(linked, key=lambda _: chance())

    def _need(self) -> Need:
        chance = self._scene.chance()
        return Need.COMPLETED if chance < 0.5 else Need.ENDED if chance < 0.8 else Need.FAILED

    def _otherwise(self) -> Otherwise:
        return Otherwise.CANCEL if self._scene.chance() < 0.7 else Otherwise.RUN


class GraphScene(Scene):
    people = GraphPeople
    let_go: ClassVar[str | None] = None  # another one in place of this trigger

    def __init__(self, seed: int, folder: Path, pool: Pool) -> None:
        super().__init__(seed, folder, pool)
        self.witness.__class__ = OfGraphs
        assert isinstance(self.witness, OfGraphs)
        self.witness.begin()
        if self.let_go is not None:
            self.witness.db.execute("drop trigger jobs_let_go")
            self.witness.db.execute(self.let_go)


def first_failure(seeds: Iterable[int], *, about: str = "") -> str | None:
    with swift_folder() as folder:
        pool = Pool(Path(folder) / "queue.db")
        try:
            for seed in seeds:
                pool.clear()
                scene = GraphScene(seed, Path(folder), pool)
                try:
                    scene.play()
                except Exception as exc:  # noqa: BLE001 - a traceback of ours is a failure as well
                    if re.search(about, str(exc)):
                        return f"seed {seed}: {exc}\n" + "\n".join(scene.stage.trace)
                    pool.forget()
                finally:
                    for host in scene.hosts:
                        shutil.rmtree(host.home)
        finally:
            pool.forget()
    return None


@pytest.mark.timeout(180)
@pytest.mark.parametrize("first", range(0, SEEDS, PORTION))
def test_parents_come_before_their_children_and_every_job_ends(first: int) -> None:
    failure = first_failure(range(first, first + PORTION))
    assert failure is None, failure


# ── deliberate mistakes ───────────────────────────────────────────────────────────────────────────────


def _judge_met(need: Need, otherwise: Otherwise, parent: State) -> DependencyState:
    return DependencyState.MET if parent in FINAL else DependencyState.WAITING


def _judge_broke(need: Need, otherwise: Otherwise, parent: State) -> DependencyState:
    return DependencyState.BROKE if parent in FINAL else DependencyState.WAITING


def _free_none(was: DependencyState, now: DependencyState, *, is_last: bool) -> Event | None:
    event = child_event(was, now, is_last=is_last)
    return None if event is Event.UNBLOCK else event


# A job that a user has cancelled is kept by its parents; one that a parent has cancelled is handled as it should be.
KEPT_IN_HAND: Final = """
    create trigger jobs_let_go after update of state on jobs
    when (old.state = 'blocked' and new.state <> 'blocked') or (old.state = 'cancelled' and new.state = 'pending')
    begin
        update edges
           set state = iif(new.error = 'cancelled', 'broke', 'void')
         where child = new.seq
           and state = iif(old.state = 'blocked', 'waiting', 'broke');
    end
"""

# Each is to be found by the check that is there for it.
DEFECTS: Final[dict[str, tuple[Any, str, Any, str]]] = {
    "the first parent frees it": (SQL, "is_waiting", "select 0 where ? > 0", r"is \w+ before \["),
    "a parent that failed frees it": (dependencies, "evaluate", _judge_met, r"is \w+ before \["),
    "a parent that completed cancels it": (dependencies, "evaluate", _judge_broke, "is cancelled without a reason"),
    "no child is notified": (SQL, "undecided", "select 1, 2, 3 where 0", "is blocked|has not been notified"),
    "a job stays blocked whose parents have ended": (dependencies, "child_event", _free_none, r"j\d+ is blocked"),
    "a parent brings back what a user has cancelled": (GraphScene, "let_go", KEPT_IN_HAND, "cancelled by a user"),
}


@pytest.mark.timeout(180)
@pytest.mark.parametrize("defect", DEFECTS)
def test_a_deliberate_defect_of_a_graph_is_found(defect: str) -> None:
    owner, name, instead, told = DEFECTS[defect]
    with put(owner, name, instead):
        failure = first_failure(range(BOUND), about=told)
    assert failure is not None, f"not found in {BOUND} seeds"
