from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuectl.errors import InvalidInput
from queuectl.jobs.priority import (
    Ageing,
    ByEnqueues,
    ByTime,
    Standing,
    Strict,
    effective_priority,
    format_ageing,
    parse_ageing,
    rank,
)
from queuectl.units import MAX_DURATION_MS

NOW = 1_767_323_045_000

ageings = st.one_of(st.just(Strict()), st.builds(ByTime, st.integers(1, MAX_DURATION_MS)), st.just(ByEnqueues()))
priorities = st.integers(-1_000_000, 1_000_000) | st.integers(-3, 3)
# A job that missed n enqueues has at least n later jobs.
standings = st.builds(
    lambda priority, seq, age, missed: Standing(priority, seq, NOW - age, min(missed, 10_000 - seq)),
    priorities,
    st.integers(1, 10_000),
    st.integers(0, MAX_DURATION_MS // 100) | st.integers(0, 5),
    st.integers(0, 10_000) | st.just(0),
)


@given(ageings, standings, standings, st.integers(0, MAX_DURATION_MS), st.integers(0, 10**9))
def test_the_first_by_rank_never_has_a_lower_effective_priority(
    ageing: Ageing, one: Standing, other: Standing, later_ms: int, enqueues: int
) -> None:
    first, second = sorted((one, other), key=lambda job: rank(ageing, job))
    at = {"now_ms": NOW + later_ms, "last_seq": 10_000 + enqueues}
    assert effective_priority(ageing, first, **at) >= effective_priority(ageing, second, **at)


@given(ageings, standings, st.integers(0, MAX_DURATION_MS), st.integers(0, 10**6))
def test_waiting_never_costs_priority(ageing: Ageing, job: Standing, later_ms: int, enqueues: int) -> None:
    before = effective_priority(ageing, job, now_ms=NOW, last_seq=10_000)
    assert before >= job.priority
    assert effective_priority(ageing, job, now_ms=NOW + later_ms, last_seq=10_000 + enqueues) >= before


@given(ageings, standings)
def test_a_rank_fits_into_a_column(ageing: Ageing, job: Standing) -> None:
    assert -(2**63) <= rank(ageing, job) < 2**63


@pytest.mark.parametrize("ageing", [Strict(), ByTime(1_000), ByEnqueues()])
def test_of_equal_jobs_the_higher_priority_runs_first(ageing: Ageing) -> None:
    low, high = Standing(0, 1, NOW, 0), Standing(1, 1, NOW, 0)
    assert rank(ageing, high) < rank(ageing, low)


def test_each_step_of_time_adds_a_point_rounded_down() -> None:
    job = Standing(5, 1, NOW, 0)
    earned = [
        effective_priority(ByTime(1_000), job, now_ms=NOW + ms, last_seq=1) for ms in (-5_000, 0, 999, 1_000, 2_500)
    ]
    assert earned == [5, 5, 5, 6, 7]


def test_each_enqueue_adds_a_point_except_those_during_a_run() -> None:
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


@pytest.mark.parametrize(
    "text, ageing",
    [
        ("off", Strict()),
        (" OFF ", Strict()),
        ("enqueues", ByEnqueues()),
        ("10m", ByTime(600_000)),
        ("1", ByTime(1_000)),
    ],
)
def test_ageing_is_off_or_enqueues_or_a_duration(text: str, ageing: Ageing) -> None:
    assert parse_ageing(text, subject="ageing") == ageing


@pytest.mark.parametrize("text", ["", "on", "0", "0s", "-1s", "enqueue"])
def test_an_invalid_ageing_is_rejected_with_the_valid_values(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"^ageing: ") as caught:
        parse_ageing(text, subject="ageing")
    assert caught.value.hint.startswith("off, enqueues, or")


@given(st.one_of(st.just(Strict()), st.just(ByEnqueues()), st.builds(ByTime, st.integers(1, MAX_DURATION_MS))))
def test_a_formatted_ageing_is_parsed_unchanged(ageing: Ageing) -> None:
    assert parse_ageing(format_ageing(ageing), subject="x") == ageing
