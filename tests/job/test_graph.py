from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuectl.job.graph import (
    Dependency,
    EdgeState,
    Need,
    Otherwise,
    decide,
    find_cycle,
    judge,
    mended_by,
    orphan_error,
    read_dependencies,
    waits_for,
)
from queuectl.job.lifecycle import FINAL, TRANSITIONS, Event, State

# ── one edge ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "parent, met",
    [
        (State.COMPLETED, {Need.COMPLETED, Need.ENDED}),
        (State.DEAD, {Need.FAILED, Need.ENDED}),
        (State.CANCELLED, {Need.ENDED}),
    ],
)
def test_an_end_meets_what_asked_for_it_and_breaks_the_rest(parent: State, met: set[Need]) -> None:
    for need in Need:
        expected = EdgeState.MET if need in met else EdgeState.BROKE
        assert judge(need, Otherwise.CANCEL, parent) is expected


@pytest.mark.parametrize("parent", sorted(set(State) - FINAL))
def test_an_edge_waits_until_its_parent_has_ended_for_good(parent: State) -> None:
    assert {judge(need, otherwise, parent) for need in Need for otherwise in Otherwise} == {EdgeState.WAITING}


@pytest.mark.parametrize("parent", sorted(FINAL))
def test_who_runs_all_the_same_is_freed_by_any_end(parent: State) -> None:
    assert {judge(need, Otherwise.RUN, parent) for need in Need} == {EdgeState.MET}


@pytest.mark.parametrize("parent", sorted(State))
def test_what_broke_is_mended_exactly_if_it_would_not_break_now(parent: State) -> None:
    breakable = {need for need in Need if any(judge(need, Otherwise.CANCEL, end) is EdgeState.BROKE for end in FINAL)}
    mended = {need for need in breakable if judge(need, Otherwise.CANCEL, parent) is not EdgeState.BROKE}
    assert mended_by(parent) == mended


@pytest.mark.parametrize(
    "was, now, is_last, event",
    [
        (EdgeState.WAITING, EdgeState.MET, True, Event.UNBLOCK),
        (EdgeState.WAITING, EdgeState.MET, False, None),
        (EdgeState.WAITING, EdgeState.BROKE, False, Event.ORPHAN),
        (EdgeState.WAITING, EdgeState.BROKE, True, Event.ORPHAN),
        (EdgeState.BROKE, EdgeState.WAITING, False, Event.REBLOCK),
        (EdgeState.BROKE, EdgeState.MET, True, Event.REBLOCK),
    ],
)
def test_a_child_is_freed_by_its_last_edge_and_called_off_by_any(
    was: EdgeState, now: EdgeState, is_last: bool, event: Event | None
) -> None:
    assert decide(was, now, is_last=is_last) is event


def test_who_is_called_off_is_told_by_whom() -> None:
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
def test_some_parents_are_named_with_what_they_do(parents: Sequence[tuple[str, str]], words: str) -> None:
    assert waits_for(parents, named=2) == words


@given(st.lists(st.builds(Dependency, st.text(min_size=1), st.sampled_from(Need), st.sampled_from(Otherwise))))
def test_what_a_job_says_of_its_parents_is_read_back(parents: list[Dependency]) -> None:
    assert read_dependencies([parent.to_json() for parent in parents]) == tuple(parents)


def test_the_usual_edge_is_its_id_alone() -> None:
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


def test_a_long_chain_is_no_matter() -> None:
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
    """Jobs that end one after the other, and their children, by the rules alone."""

    def __init__(self, size: int) -> None:
        self.states = [State.PENDING] * size
        self.edges: dict[tuple[int, int], tuple[Need, Otherwise]] = {}
        self.fate: dict[tuple[int, int], EdgeState] = {}

    def link(self, parent: int, child: int, edge: tuple[Need, Otherwise]) -> None:
        self.edges[parent, child], self.fate[parent, child] = edge, EdgeState.WAITING
        self.states[child] = State.BLOCKED

    def end(self, job: int, state: State) -> None:
        self.states[job] = state
        for (parent, child), edge in self.edges.items():
            if parent != job or self.fate[parent, child] is not EdgeState.WAITING:
                continue
            verdict = self.fate[parent, child] = judge(*edge, state)
            is_last = EdgeState.WAITING not in {fate for (_, to), fate in self.fate.items() if to == child}
            event = decide(EdgeState.WAITING, verdict, is_last=is_last)
            if event is Event.ORPHAN:
                for key, fate in self.fate.items():
                    if key[1] == child and fate is EdgeState.WAITING:
                        self.fate[key] = EdgeState.VOID
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
