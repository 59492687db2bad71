from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuectl.jobs.states import State
from queuectl.jobs.stats import (
    ALL_QUEUES,
    BOUNDS,
    BOUNDS_MS,
    MAX_NAMED_QUEUES,
    OTHER_QUEUES,
    Counts,
    Point,
    Snapshot,
    Span,
    Spread,
    TimeBuckets,
    add_histograms,
    bucket_of,
    build_histogram,
    build_points,
    is_due,
    merge_points,
    pack_histogram,
    percentile_ms,
    spread,
    unpack_histogram,
)
from queuectl.text import is_valid_queue

times = st.builds(
    TimeBuckets,
    st.lists(st.integers(0, 1000), min_size=len(BOUNDS) + 1, max_size=len(BOUNDS) + 1).map(tuple),
    st.integers(0, 10**12),
    st.integers(0, 10**9),
)


def measured(*took_ms: int) -> TimeBuckets:
    return build_histogram((bucket_of(ms), 1, ms, ms) for ms in took_ms)


def test_bounds_grow_and_are_whole_milliseconds() -> None:
    assert list(BOUNDS) == sorted(set(BOUNDS))
    assert [ms / 1000 for ms in BOUNDS_MS] == list(BOUNDS)


def test_a_time_is_in_the_first_bucket_whose_bound_it_does_not_exceed() -> None:
    assert measured(0, 10).counts[:2] == (2, 0)
    assert measured(11, 25).counts[:3] == (0, 2, 0)
    assert measured(86_400_000).counts[-2:] == (1, 0)
    assert measured(86_400_001).counts[-2:] == (0, 1)


def test_an_empty_histogram_has_no_percentile() -> None:
    assert percentile_ms(TimeBuckets(), 0.5) is None


@pytest.mark.parametrize(
    "part, wanted",
    [(0.0, 100.0), (0.5, 150.0), (1.0, 200.0)],
)
def test_a_percentile_is_interpolated_within_its_bucket_up_to_the_longest_time(part: float, wanted: float) -> None:
    assert percentile_ms(measured(*[200] * 10), part) == wanted


def test_a_percentile_lies_in_the_bucket_of_the_job_that_it_is_about() -> None:
    took = measured(*[5] * 50, *[200] * 45, *[40_000] * 5)
    assert percentile_ms(took, 0.50) == 10
    assert percentile_ms(took, 0.95) == 250
    assert percentile_ms(took, 0.99) == 30_000 + 10_000 * 4 / 5


def test_a_percentile_beyond_the_last_bound_lies_between_that_and_the_longest_time() -> None:
    assert percentile_ms(measured(90_000_000), 0.5) == 88_200_000


def test_without_a_longest_time_a_bucket_ends_at_its_bound() -> None:
    assert percentile_ms(build_histogram([(4, 10, 2000)]), 0.5) == 175
    assert percentile_ms(build_histogram([(len(BOUNDS), 1, 90_000_000)]), 0.5) == 86_400_000


@given(st.lists(st.integers(0, 90_000_000), min_size=1), st.sampled_from([0.5, 0.95, 0.99]))
def test_a_percentile_is_in_the_bucket_of_the_exact_one_and_never_beyond_the_longest_time(
    took: list[int], part: float
) -> None:
    exact = sorted(took)[max(0, math.ceil(part * len(took)) - 1)]
    found = percentile_ms(measured(*took), part)
    assert found is not None
    low, high = ([0, *BOUNDS_MS, max(took)][bucket_of(exact) + step] for step in (0, 1))
    assert low <= found <= min(high, max(took))


@given(times)
def test_a_packed_histogram_is_unpacked_unchanged(one: TimeBuckets) -> None:
    assert unpack_histogram(pack_histogram(one)) == (one if one.jobs else TimeBuckets())


@given(times, times)
def test_two_histograms_are_added(one: TimeBuckets, other: TimeBuckets) -> None:
    both = add_histograms(one, other)
    assert both.jobs == one.jobs + other.jobs
    assert both.total_ms == one.total_ms + other.total_ms


def test_an_empty_histogram_is_packed_as_an_empty_list() -> None:
    assert pack_histogram(TimeBuckets()) == "[]"
    assert pack_histogram(measured(5, 7)) == "[12,7,2]"


NOON = 1_800_000_000_000
assert NOON % 3_600_000 == 0


def look(now: dict[str, Counts], then: dict[str, Counts] | None = None, **given: object) -> Snapshot:
    facts = {"now_ms": NOON + 61_000, "last_ms": NOON, "tally": {}, "oldest_ms": {}, "times": {}, **given}
    return Snapshot(totals=now, then=then or {}, **facts)  # type: ignore[arg-type]


def by_queue(found: list[Point]) -> dict[str, Point]:
    assert len({point.queue for point in found}) == len(found)
    return {point.queue: point for point in found}


def test_the_names_for_all_and_other_queues_are_not_valid_queue_names() -> None:
    assert not is_valid_queue(ALL_QUEUES)
    assert not is_valid_queue(OTHER_QUEUES)


def test_a_point_is_the_growth_of_the_counters() -> None:
    found = by_queue(build_points(look({"a": Counts(10, 9, 8)}, {"a": Counts(4, 4, 4)})))
    assert found["a"].counts == found[ALL_QUEUES].counts == Counts(6, 5, 4)
    assert (found["a"].at_ms, found["a"].covers_ms) == (NOON + 60_000, 61_000)


def test_gauges_are_those_of_the_sample() -> None:
    run, wait = build_histogram([(3, 2, 150)]), build_histogram([(0, 2, 4)])
    found = by_queue(
        build_points(
            look(
                {"a": Counts(), "b": Counts()},
                tally={"a": {State.PENDING: 2, State.FAILED: 1, State.PROCESSING: 4}, "b": {State.PROCESSING: 1}},
                oldest_ms={"a": 7000},
                times={"a": (run, wait)},
            )
        )
    )
    assert found["a"] == Point(NOON + 60_000, "a", 61_000, Counts(), 3, 4, 7000, run, wait)
    assert found[ALL_QUEUES] == found["a"]._replace(queue=ALL_QUEUES, running=5)


def test_an_idle_store_has_one_point() -> None:
    quiet = look({"a": Counts(5)}, {"a": Counts(5)}, tally={"a": {State.COMPLETED: 5}})
    assert build_points(quiet) == [Point(NOON + 60_000, ALL_QUEUES, 61_000, Counts())]


def test_a_clock_that_was_set_back_covers_no_time() -> None:
    assert build_points(look({}, now_ms=NOON - 500))[0].covers_ms == 0


def test_the_busiest_queues_are_stored_by_name_and_the_others_together() -> None:
    many = {f"q{number:03}": Counts(number) for number in range(MAX_NAMED_QUEUES + 10)}
    found = by_queue(build_points(look(many)))
    assert len(found) == MAX_NAMED_QUEUES + 2
    assert "q010" in found
    assert "q009" not in found
    assert found[OTHER_QUEUES].counts.enqueued == sum(range(10))
    assert found[ALL_QUEUES].counts.enqueued == sum(range(MAX_NAMED_QUEUES + 10))


def test_of_equally_busy_queues_those_with_more_waiting_jobs_are_named() -> None:
    many = {f"q{number:03}": Counts(1) for number in range(MAX_NAMED_QUEUES + 1)}
    found = by_queue(build_points(look(many, tally={"q050": {State.PENDING: 1}})))
    assert "q050" in found
    assert "q049" not in found


def test_an_hour_has_the_sums_and_the_maxima_of_its_minutes() -> None:
    one = Point(NOON, "a", 60_000, Counts(1), waiting=5, running=1, oldest_ms=None, run=build_histogram([(0, 1, 5)]))
    two = Point(
        NOON + 60_000, "a", 61_000, Counts(2, 1), waiting=2, running=3, oldest_ms=9, run=build_histogram([(1, 1, 15)])
    )
    (hour,) = merge_points([one], [two], Span.HOUR)
    assert hour == Point(
        NOON, "a", 121_000, Counts(3, 1), 5, 3, 9, build_histogram([(0, 1, 5), (1, 1, 15)]), TimeBuckets()
    )
    assert merge_points([hour], [], Span.HOUR) == []


def test_a_queue_beyond_the_maximum_of_an_hour_is_merged_into_the_others() -> None:
    there = [Point(NOON, f"q{number}", 1, Counts(1)) for number in range(MAX_NAMED_QUEUES - 1)]
    new = [Point(NOON, name, 1, Counts(1), waiting=2) for name in (ALL_QUEUES, "a", "b", "c", "q0", OTHER_QUEUES)]
    found = by_queue(merge_points(there, new, Span.HOUR))
    assert set(found) == {ALL_QUEUES, "a", "q0", OTHER_QUEUES}
    assert (found[OTHER_QUEUES].counts.enqueued, found[OTHER_QUEUES].waiting) == (3, 6)
    assert found["q0"].counts.enqueued == 2


@given(st.lists(st.dictionaries(st.sampled_from([f"q{n}" for n in range(60)]), st.integers(0, 5)), max_size=5))
def test_hourly_points_have_all_counts_of_the_minutes(minutes: list[dict[str, int]]) -> None:
    totals: dict[str, Counts] = {}
    hour: dict[str, Point] = {}
    for number, grown in enumerate(minutes):
        then = dict(totals)
        for queue, jobs in grown.items():
            totals[queue] = Counts(then.get(queue, Counts()).enqueued + jobs)
        at = NOON + number * 60_000
        hour |= by_queue(
            merge_points(hour.values(), build_points(look(totals, then, now_ms=at, last_ms=at - 60_000)), Span.HOUR)
        )
    wanted = sum(counts.enqueued for counts in totals.values())
    assert sum(point.counts.enqueued for queue, point in hour.items() if queue != ALL_QUEUES) == wanted
    assert (hour[ALL_QUEUES].counts.enqueued if hour else 0) == wanted
    assert len(hour) <= MAX_NAMED_QUEUES + 2


def test_a_sample_is_due_once_in_every_minute_in_either_direction_of_the_clock() -> None:
    assert is_due(None, NOON)
    assert not is_due(NOON, NOON + 59_999)
    assert is_due(NOON + 59_999, NOON + 60_000)
    assert is_due(NOON, NOON - 1)
    assert not is_due(NOON + 59_999, NOON)


def test_minutes_are_kept_for_a_day_and_hours_for_ninety() -> None:
    assert [span.kept_ms // 3_600_000 for span in Span] == [24, 90 * 24]
    assert [span.begin(NOON + 3_599_999) - NOON for span in Span] == [3_540_000, 0]


def test_a_prometheus_histogram_is_cumulative() -> None:
    counts = (1, 2, *(0,) * (len(BOUNDS) - 2), 3)
    found = TimeBuckets(counts, total_ms=1500)
    assert found.cumulative[:3] == [(0.01, 1), (0.025, 3), (0.05, 3)]
    assert (len(found.cumulative), found.jobs) == (len(BOUNDS), 6)


def test_without_values_there_is_no_distribution() -> None:
    assert spread([]) == Spread(0, None, None, None, None, None, None)


@given(st.lists(st.integers(0, 50), min_size=1))
def test_the_percentile_of_exact_values_is_the_nearest_rank(values: list[int]) -> None:
    found, ordered = spread([(value, 1) for value in values]), sorted(values)
    assert (found.count, found.min, found.max) == (len(values), ordered[0], ordered[-1])
    assert found.avg == round(sum(values) / len(values), 3)
    assert found.p95 == ordered[math.ceil(0.95 * len(values)) - 1]


def test_a_point_has_its_counts_gauges_and_percentiles() -> None:
    run = build_histogram([(0, 2, 10)])
    point = Point(60_000, "mail", 60_000, Counts(enqueued=3), waiting=1, oldest_ms=7, run=run)
    found = point.to_dict()
    assert (found["at"], found["enqueued"], found["waiting"]) == ("1970-01-01T00:01:00.000Z", 3, 1)
    assert found["oldest_waiting_ms"] == 7
    assert found["duration_ms"] == {"count": 2, "avg": 5.0, "p50": 5.0, "p95": 9.5, "p99": 9.9}
    assert found["wait_ms"] == {"count": 0, "avg": None, "p50": None, "p95": None, "p99": None}
