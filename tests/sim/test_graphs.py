"""Jobs that wait for each other in the simulator: parents before children, and every job ends, whatever happens."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

from queuectl.job.graph import Dependency, Need, Otherwise
from queuectl.job.lifecycle import FINAL, State
from queuectl.job.newjob import NewJob
from queuectl.store.sqlite.base import SQL
from tests.needs import FULL
from tests.sim.people import People
from tests.sim.pool import Pool
from tests.sim.records import Row
from tests.sim.scene import Scene
from tests.sim.wire import SimStore
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

    def begin(self) -> None:
        self.parents, self.was_met, self.has_broken = {}, set(), set()

    def committed(self, store: SimStore) -> None:
        self._note_ends()
        super().committed(store)

    def _note_ends(self) -> None:
        states = {row.id: State(row.state) for row in self._read().values()}
        for child, parents in self.parents.items():
            for parent in parents:
                if (state := states.get(parent.id)) in FINAL:
                    is_met = state in SATISFIES[parent.when] or parent.otherwise is Otherwise.RUN
                    (self.was_met if is_met else self.has_broken).add((parent.id, child))

    def _compare(self, old: Row, row: Row, store: SimStore) -> None:
        """What parents do to their children, whoever writes it; the rest as for any job."""
        by_person = store.verb == ("cancel" if row.state == State.CANCELLED else "revive")
        is_taken = row.token is not None and row.token != old.token
        if old.state == State.BLOCKED and row.state == State.CANCELLED:
            called_off = any((parent.id, row.id) in self.has_broken for parent in self.parents[row.id])
            self.must(called_off or by_person, f"{row.id} is called off by nobody, by {store.verb}")
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
        super()._compare(old, row, store)

    def check_end(self) -> None:
        super().check_end()
        undecided = self.db.execute("select count(*) from undecided").fetchone()
        self.must(undecided == (0,), "somebody has not been told what became of a parent")


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

    def __init__(self, seed: int, folder: Path, pool: Pool) -> None:
        super().__init__(seed, folder, pool)
        self.witness.__class__ = OfGraphs
        assert isinstance(self.witness, OfGraphs)
        self.witness.begin()


def first_failure(seeds: Iterable[int]) -> str | None:
    with swift_folder() as folder:
        pool = Pool(Path(folder) / "queue.db")
        try:
            for seed in seeds:
                pool.clear()
                scene = GraphScene(seed, Path(folder), pool)
                try:
                    scene.play()
                except Exception as exc:  # noqa: BLE001 - a traceback of ours is a failure as well
                    return f"seed {seed}: {exc}\n" + "\n".join(scene.stage.trace)
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


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    "statement, defect",
    [
        ("is_waiting", "select 0 where ? > 0"),  # the first parent frees it
        ("undecided", "select 1, 2, 3 where 0"),  # nobody is told
    ],
)
def test_a_deliberate_defect_is_found(monkeypatch: pytest.MonkeyPatch, statement: str, defect: str) -> None:
    monkeypatch.setitem(SQL, statement, defect)
    assert first_failure(range(BOUND)) is not None, f"{defect}: nobody noticed in {BOUND} seeds"
