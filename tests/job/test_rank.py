from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuectl.job.duration import LONGEST_MS
from queuectl.job.rank import Ageing, ByEnqueues, ByTime, Standing, Strict, effective_priority, rank

NOW = 1_767_323_045_000

ageings = st.one_of(st.just(Strict()), st.builds(ByTime, st.integers(1, LONGEST_MS)), st.just(ByEnqueues()))
priorities = st.integers(-1_000_000, 1_000_000) | st.integers(-3, 3)
# Whoever has missed n enqueues has seen n come after it.
standings = st.builds(
    lambda priority, seq, age, missed: Standing(priority, seq, NOW - age, min(missed, 10_000 - seq)),
    priorities,
    st.integers(1, 10_000),
    st.integers(0, LONGEST_MS // 100) | st.integers(0, 5),
    st.integers(0, 10_000) | st.just(0),
)


@given(ageings, standings, standings, st.integers(0, LONGEST_MS), st.integers(0, 10**9))
def test_who_ranks_first_never_has_less_effective_priority(
    ageing: Ageing, one: Standing, other: Standing, later_ms: int, enqueues: int
) -> None:
    first, second = sorted((one, other), key=lambda job: rank(ageing, job))
    at = {"now_ms": NOW + later_ms, "last_seq": 10_000 + enqueues}
    assert effective_priority(ageing, first, **at) >= effective_priority(ageing, second, **at)


@given(ageings, standings, st.integers(0, LONGEST_MS), st.integers(0, 10**6))
def test_waiting_never_costs_priority(ageing: Ageing, job: Standing, later_ms: int, enqueues: int) -> None:
    before = effective_priority(ageing, job, now_ms=NOW, last_seq=10_000)
    assert before >= job.priority
    assert effective_priority(ageing, job, now_ms=NOW + later_ms, last_seq=10_000 + enqueues) >= before


@given(ageings, standings)
def test_a_rank_fits_into_a_column(ageing: Ageing, job: Standing) -> None:
    assert -(2**63) <= rank(ageing, job) < 2**63


@pytest.mark.parametrize("ageing", [Strict(), ByTime(1_000), ByEnqueues()])
def test_alike_but_for_the_priority_the_higher_goes_first(ageing: Ageing) -> None:
    low, high = Standing(0, 1, NOW, 0), Standing(1, 1, NOW, 0)
    assert rank(ageing, high) < rank(ageing, low)


def test_time_is_worth_a_point_a_step_rounded_down() -> None:
    job = Standing(5, 1, NOW, 0)
    earned = [
        effective_priority(ByTime(1_000), job, now_ms=NOW + ms, last_seq=1) for ms in (-5_000, 0, 999, 1_000, 2_500)
    ]
    assert earned == [5, 5, 5, 6, 7]


def test_enqueues_are_worth_a_point_each_but_those_it_ran_through() -> None:
    assert effective_priority(ByEnqueues(), Standing(5, 10, NOW, 0), now_ms=NOW, last_seq=17) == 12
    assert effective_priority(ByEnqueues(), Standing(5, 10, NOW, 3), now_ms=NOW, last_seq=17) == 9


def test_the_example_of_seed_000_picks_the_oldest_of_low_priority() -> None:
    # priority and waiting_time: 3+5, 5+3, 8+0, 2+7
    last = 100
    jobs = {name: Standing(p, last - w, NOW, 0) for name, p, w in [("1", 3, 5), ("2", 5, 3), ("3", 8, 0), ("4", 2, 7)]}
    order = sorted(jobs, key=lambda name: (rank(ByEnqueues(), jobs[name]), jobs[name].seq))
    assert order == ["4", "1", "2", "3"]


def test_no_kind_of_ageing_is_equal_to_another() -> None:
    kinds: list[Ageing] = [Strict(), ByTime(1), ByTime(2), ByEnqueues()]
    assert [[one == other for other in kinds] for one in kinds] == [
        [at == place for place in range(4)] for at in range(4)
    ]
    assert len(set(kinds)) == 4
