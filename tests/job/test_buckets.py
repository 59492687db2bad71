from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuectl.job.buckets import BOUNDS, BOUNDS_MS, Times, add, bucket_of, pack, percentile_ms, times_of, unpack

times = st.builds(
    Times,
    st.lists(st.integers(0, 1000), min_size=len(BOUNDS) + 1, max_size=len(BOUNDS) + 1).map(tuple),
    st.integers(0, 10**12),
)


def measured(*took_ms: int) -> Times:
    return times_of((bucket_of(ms), 1, ms) for ms in took_ms)


def test_bounds_grow_and_are_whole_milliseconds() -> None:
    assert list(BOUNDS) == sorted(set(BOUNDS))
    assert [ms / 1000 for ms in BOUNDS_MS] == list(BOUNDS)


def test_a_time_is_in_the_first_bucket_whose_bound_it_does_not_exceed() -> None:
    assert measured(0, 10).counts[:2] == (2, 0)
    assert measured(11, 25).counts[:3] == (0, 2, 0)
    assert measured(86_400_000).counts[-2:] == (1, 0)
    assert measured(86_400_001).counts[-2:] == (0, 1)


def test_nothing_has_no_percentile() -> None:
    assert percentile_ms(Times(), 0.5) is None


@pytest.mark.parametrize(
    "part, wanted",
    [(0.0, 100.0), (0.5, 175.0), (1.0, 250.0)],
)
def test_those_of_a_bucket_count_as_spread_evenly_over_it(part: float, wanted: float) -> None:
    assert percentile_ms(measured(*[200] * 10), part) == wanted


def test_a_percentile_lies_in_the_bucket_of_the_job_that_it_is_about() -> None:
    took = measured(*[5] * 50, *[200] * 45, *[40_000] * 5)
    assert percentile_ms(took, 0.50) == 10
    assert percentile_ms(took, 0.95) == 250
    assert percentile_ms(took, 0.99) == 30_000 + 30_000 * 4 / 5


def test_beyond_the_last_bound_nothing_more_is_known() -> None:
    assert percentile_ms(measured(90_000_000), 0.5) == 86_400_000


@given(st.lists(st.integers(0, 90_000_000), min_size=1), st.sampled_from([0.5, 0.95, 0.99]))
def test_a_percentile_is_in_the_bucket_of_the_exact_one(took: list[int], part: float) -> None:
    exact = sorted(took)[max(0, math.ceil(part * len(took)) - 1)]
    found = percentile_ms(measured(*took), part)
    assert found is not None
    low, high = ([0, *BOUNDS_MS, BOUNDS_MS[-1]][bucket_of(exact) + step] for step in (0, 1))
    assert low <= found <= high


@given(times)
def test_what_is_packed_is_unpacked(one: Times) -> None:
    assert unpack(pack(one)) == (one if one.jobs else Times())


@given(times, times)
def test_times_of_two_add_up(one: Times, other: Times) -> None:
    both = add(one, other)
    assert both.jobs == one.jobs + other.jobs
    assert both.total_ms == one.total_ms + other.total_ms


def test_nothing_takes_no_room() -> None:
    assert pack(Times()) == "[]"
    assert pack(measured(5, 7)) == "[12,2]"
