from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuectl.jobs.dependencies import (
    Dependency,
    DependencyState,
    Need,
    Otherwise,
    child_event,
    evaluate,
    find_cycle,
    format_parents,
    needs_met_again_by,
    orphan_error,
    parse_dependencies,
)
from queuectl.jobs.states import FINAL, TRANSITIONS, Event, State

# ── one edge ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "parent, met",
    [
        (State.COMPLETED, {Need.COMPLETED, Need.ENDED}),
        (State.DEAD, {Need.FAILED, Need.ENDED}),
        (State.CANCELLED, {Need.ENDED}),
    ],
)
def test_the_end_of_a_parent_meets_or_breaks_a_dependency(parent: State, met: set[Need]) -> None:
    for need in Need:
        expected = DependencyState.MET if need in met else DependencyState.BROKE
        assert evaluate(need, Otherwise.CANCEL, parent) is expected


@pytest.mark.parametrize("parent", sorted(set(State) - FINAL))
def test_a_dependency_waits_until_its_parent_is_in_a_final_state(parent: State) -> None:
    assert {evaluate(need, otherwise, parent) for need in Need for otherwise in Otherwise} == {DependencyState.WAITING}


@pytest.mark.parametrize("parent", sorted(FINAL))
def test_a_child_that_runs_anyway_is_unblocked_by_any_end(parent: State) -> None:
    assert {evaluate(need, Otherwise.RUN, parent) for need in Need} == {DependencyState.MET}


@pytest.mark.parametrize("parent", sorted(State))
def test_a_broken_dependency_is_repaired_exactly_if_the_parent_would_not_break_it_now(parent: State) -> None:
    breakable = {
        need for need in Need if any(evaluate(need, Otherwise.CANCEL, end) is DependencyState.BROKE for end in FINAL)
    }
    mended = {need for need in breakable if evaluate(need, Otherwise.CANCEL, parent) is not DependencyState.BROKE}
    assert needs_met_again_by(parent) == mended


@pytest.mark.parametrize(
    "was, now, is_last, event",
    [
        (DependencyState.WAITING, DependencyState.MET, True, Event.UNBLOCK),
        (DependencyState.WAITING, DependencyState.MET, False, None),
        (DependencyState.WAITING, DependencyState.BROKE, False, Event.ORPHAN),
        (DependencyState.WAITING, DependencyState.BROKE, True, Event.ORPHAN),
        (DependencyState.BROKE, DependencyState.WAITING, False, Event.REBLOCK),
        (DependencyState.BROKE, DependencyState.MET, True, Event.REBLOCK),
    ],
)
def test_a_child_is_unblocked_by_its_last_dependency_and_cancelled_by_any(
    was: DependencyState, now: DependencyState, is_last: bool, event: Event | None
) -> None:
    assert child_event(was, now, is_last=is_last) is event


def test_the_error_of_a_cancelled_child_names_its_parent() -> None:
    assert orphan_error("build", State.DEAD) == "cancelled: build, for which it waited, is dead"


# ── words ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "parents, words",
    [
        ([], "other jobs"),
        ([("a", "dead")], "a (dead)"),
        ([("a", "dead"), ("b", "pending")], "a (dead) and b (pending)"),
        ([("a", "dead"), ("b", "pending"), ("c", "failed")], "a (dead), b (pending) and others"),
    ],
)
def test_some_parents_are_named_with_their_states(parents: Sequence[tuple[str, str]], words: str) -> None:
    assert format_parents(parents, named=2) == words


@given(st.lists(st.builds(Dependency, st.text(min_size=1), st.sampled_from(Need), st.sampled_from(Otherwise))))
def test_dependencies_are_parsed_back_from_json(parents: list[Dependency]) -> None:
    assert parse_dependencies([parent.to_json() for parent in parents]) == tuple(parents)


def test_a_default_dependency_is_only_its_id_in_json() -> None:
    assert Dependency("a").to_json() == "a"
    assert Dependency("a", Need.ENDED).to_json() == {"id": "a", "when": "ended", "else": "cancel"}


# ── whole graphs ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "parents, cycle",
    [
        ({}, None),
        ({"a": []}, None),
        ({"a": ["gone"]}, None),
        ({"a": ["a"]}, ["a", "a"]),
        ({"b": ["a"], "c": ["a", "b"], "a": []}, None),
        ({"a": ["b"], "b": ["a"]}, ["b", "a", "b"]),
        ({"x": ["a"], "a": ["c"], "b": ["a"], "c": ["b"]}, ["b", "c", "a", "b"]),
    ],
)
def test_a_cycle_is_named_from_parent_to_child(parents: dict[str, list[str]], cycle: list[str] | None) -> None:
    assert find_cycle(parents) == cycle


def test_a_long_chain_needs_no_recursion() -> None:
    chain = {str(n): [str(n + 1)] for n in range(100_000)}
    assert find_cycle(chain) is None
    assert find_cycle({**chain, "100000": ["0"]}) is not None


GRAPHS = st.dictionaries(st.sampled_from("abcdefgh"), st.lists(st.sampled_from("abcdefgh"), max_size=3, unique=True))


@given(GRAPHS)
def test_a_graph_has_a_cycle_or_an_order_with_parents_before_children(parents: dict[str, list[str]]) -> None:
    cycle = find_cycle(parents)
    if cycle is not None:
        assert all(parent in parents[child] for parent, child in itertools.pairwise(cycle))
        return
    left = dict(parents)
    while left:
        free = [job for job, names in left.items() if not any(name in left for name in names)]
        assert free
        for job in free:
            del left[job]


EDGES = st.tuples(st.sampled_from(Need), st.sampled_from(Otherwise))


class Play:
    """Jobs that end one after the other, with their children, without a store."""

    def __init__(self, size: int) -> None:
        self.states = [State.PENDING] * size
        self.edges: dict[tuple[int, int], tuple[Need, Otherwise]] = {}
        self.fate: dict[tuple[int, int], DependencyState] = {}

    def link(self, parent: int, child: int, edge: tuple[Need, Otherwise]) -> None:
        self.edges[parent, child], self.fate[parent, child] = edge, DependencyState.WAITING
        self.states[child] = State.BLOCKED

    def end(self, job: int, state: State) -> None:
        self.states[job] = state
        for (parent, child), edge in self.edges.items():
            if parent != job or self.fate[parent, child] is not DependencyState.WAITING:
                continue
            verdict = self.fate[parent, child] = evaluate(*edge, state)
            is_last = DependencyState.WAITING not in {fate for (_, to), fate in self.fate.items() if to == child}
            event = child_event(DependencyState.WAITING, verdict, is_last=is_last)
            if event is Event.ORPHAN:
                for key, fate in self.fate.items():
                    if key[1] == child and fate is DependencyState.WAITING:
                        self.fate[key] = DependencyState.VOID
                self.end(child, TRANSITIONS[self.states[child], event])
            elif event is not None:
                self.states[child] = TRANSITIONS[self.states[child], event]


@given(st.data(), st.integers(1, 8))
def test_every_job_of_a_graph_ends_and_none_before_its_parents(data: st.DataObject, size: int) -> None:
    play = Play(size)
    for child in range(1, size):
        for parent in data.draw(st.sets(st.integers(0, child - 1), max_size=3), label=f"parents of {child}"):
            play.link(parent, child, data.draw(EDGES, label=f"{parent} to {child}"))
    for _ in range(size):
        free = [job for job, state in enumerate(play.states) if state is State.PENDING]
        if not free:
            break
        job = data.draw(st.sampled_from(free), label="ends")
        assert all(play.states[parent] in FINAL for parent, child in play.edges if child == job)
        play.end(job, data.draw(st.sampled_from(sorted(FINAL)), label="how"))
    assert set(play.states) <= FINAL
