"""Any graph, and anything that may happen to its jobs, against a few lines of Python that know nothing of edges and triggers."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from queuectl.errors import ParentEnded
from queuectl.jobs.dependencies import Dependency, Need, Otherwise
from queuectl.jobs.states import FINAL, State
from tests.factories import new_job
from tests.needs import FULL
from tests.store.backends import BACKENDS
from tests.store.hands import BAD, OK
from tests.store.machine import StoreMachine, play

ANY = frozenset(State)
MOST = 8


@dataclass
class Node:
    state: State
    parents: list[Dependency] = field(default_factory=list)
    told: set[str] = field(default_factory=set)  # parents that have satisfied it
    by: str | None = None  # the parent that called it off


class Model:
    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self._before: dict[str, State] = {}

    def settle(self) -> None:
        """Until nothing changes any more. In each step, all children are decided by what their parents were before it: a child
        that two ancestors cancel at once is cancelled by its parent, and has not seen the end of the other one."""
        changed: list[Node] | None = None
        while changed is None or changed:
            self._before = {name: node.state for name, node in self.nodes.items()}
            changed = [node for node in self.nodes.values() if self._look(node)]

    def _look(self, node: Node) -> bool:
        if node.by is not None and node.by not in self.nodes:
            node.by = None  # who called it off is gone, and cannot take it back
        if node.state is State.CANCELLED and node.by is not None:
            wanted = next(parent for parent in node.parents if parent.id == node.by)
            if self._end(wanted) is not False:
                node.state, node.by = State.BLOCKED, None
                return True
        if node.state is not State.BLOCKED:
            return False
        order = list(self.nodes)  # of those that break at the same moment, the first that was enqueued counts
        for wanted in sorted(node.parents, key=lambda one: order.index(one.id) if one.id in self.nodes else -1):
            if wanted.id in node.told:
                continue
            if wanted.id not in self.nodes or self._end(wanted) is True:
                node.told.add(wanted.id)
            elif self._end(wanted) is False:
                node.state, node.by = State.CANCELLED, wanted.id
                return True
        if node.told >= {parent.id for parent in node.parents}:
            node.state = State.PENDING
            return True
        return False

    def _end(self, wanted: Dependency) -> bool | None:
        """Whether it has ended as it should; None: it has not ended."""
        state = self._before[wanted.id]
        if state not in FINAL:
            return None
        wants = {
            Need.COMPLETED: {State.COMPLETED},
            Need.FAILED: {State.DEAD},
            Need.ENDED: set(FINAL),
        }[wanted.when]
        return state in wants or wanted.otherwise is Otherwise.RUN


class Graphs(StoreMachine):
    @initialize()
    def begin(self) -> None:
        self.open("w1")
        self.model = Model()
        self.count = 0

    @precondition(lambda self: len(self.model.nodes) < MOST)
    @rule(data=st.data(), size=st.integers(1, 3))
    def enqueue(self, data: st.DataObject, size: int) -> None:
        known = list(self.model.nodes)
        made: dict[str, list[Dependency]] = {}
        for _ in range(size):
            self.count += 1
            some = st.sets(st.sampled_from([*known, *made]), max_size=3) if known or made else st.just(set[str]())
            made[f"j{self.count}"] = [
                Dependency(parent, data.draw(st.sampled_from(Need)), data.draw(st.sampled_from(Otherwise)))
                for parent in sorted(data.draw(some, label="parents"))
            ]
        order = data.draw(st.permutations(list(made)), label="order")
        jobs = [new_job(name, max_retries=1, depends_on=tuple(made[name])) for name in order]
        hopeless = any(
            parent.id in known and self.model._end(parent) is False for parents in made.values() for parent in parents
        )
        if hopeless:
            with pytest.raises(ParentEnded):
                self.store.enqueue(jobs)
            return
        self.store.enqueue(jobs)
        for name in order:
            self.model.nodes[name] = Node(State.BLOCKED, made[name])
        self.model.settle()

    @rule(limit=st.integers(1, 2))
    def claim(self, limit: int) -> None:
        for claim in self.hands["w1"].claim(limit):
            assert self.model.nodes[claim.id].state is State.PENDING
            assert list(claim.parents) == [parent.id for parent in self.model.nodes[claim.id].parents]
            self.model.nodes[claim.id].state = State.PROCESSING
            self.held.append(claim)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), is_good=st.booleans())
    def end(self, data: st.DataObject, is_good: bool) -> None:
        claim = data.draw(st.sampled_from(self.held), label="ends")
        self.held.remove(claim)
        self.hands["w1"].end(claim, OK if is_good else BAD)
        self.model.nodes[claim.id].state = State.COMPLETED if is_good else State.DEAD
        self.model.settle()

    @precondition(lambda self: self.model.nodes)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        name = self.draw(data)
        node = self.model.nodes[name]
        if node.state in (State.BLOCKED, State.PENDING):
            self.store.cancel([name])
            node.state, node.by = State.CANCELLED, None
            self.model.settle()

    @precondition(lambda self: self.model.nodes)
    @rule(data=st.data())
    def revive(self, data: st.DataObject) -> None:
        name = self.draw(data)
        node = self.model.nodes[name]
        self.store.retry([name], states=ANY)
        if node.state in (State.DEAD, State.CANCELLED):
            node.state, node.by, node.told = State.PENDING, None, {parent.id for parent in node.parents}
            self.model.settle()

    @precondition(lambda self: self.model.nodes)
    @rule(data=st.data())
    def prune(self, data: st.DataObject) -> None:
        name = self.draw(data)
        self.store.prune([name], before_ms=self.clock.now_ms())
        if self.model.nodes[name].state in FINAL:
            del self.model.nodes[name]
            for node in self.model.nodes.values():
                node.told.add(name)

    @rule(seconds=st.integers(0, 3))
    def advance(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @invariant()
    def they_show_the_same_states(self) -> None:
        while self.store.dependencies.decide():
            pass
        shown = {job.id: job.state for job in self.store.jobs()}
        assert shown == {name: node.state for name, node in self.model.nodes.items()}

    def draw(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(list(self.model.nodes)), label="job")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("backend_name", BACKENDS)
def test_the_store_and_a_model_of_graphs_never_disagree(backend_name: str) -> None:
    examples = 40 if FULL or backend_name == "sqlite" else 10  # there a step takes ten times as long
    play(Graphs, backend_name, examples=examples, steps=30)
