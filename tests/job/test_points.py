from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from queuectl.job.buckets import Times, times_of
from queuectl.job.lifecycle import State
from queuectl.job.names import is_valid_queue
from queuectl.job.points import ALL, MOST_QUEUES, OTHERS, Counts, Look, Point, Span, is_due, merge, points

NOON = 1_800_000_000_000
assert NOON % 3_600_000 == 0


def look(now: dict[str, Counts], then: dict[str, Counts] | None = None, **given: object) -> Look:
    facts = {"now_ms": NOON + 61_000, "last_ms": NOON, "tally": {}, "oldest_ms": {}, "times": {}, **given}
    return Look(totals=now, then=then or {}, **facts)  # type: ignore[arg-type]


def by_queue(found: list[Point]) -> dict[str, Point]:
    assert len({point.queue for point in found}) == len(found)
    return {point.queue: point for point in found}


def test_no_queue_can_be_called_as_all_or_as_the_others() -> None:
    assert not is_valid_queue(ALL)
    assert not is_valid_queue(OTHERS)


def test_a_point_is_how_much_the_counters_have_grown() -> None:
    found = by_queue(points(look({"a": Counts(10, 9, 8)}, {"a": Counts(4, 4, 4)})))
    assert found["a"].counts == found[ALL].counts == Counts(6, 5, 4)
    assert (found["a"].at_ms, found["a"].covers_ms) == (NOON + 60_000, 61_000)


def test_how_things_stand_is_that_of_the_moment() -> None:
    run, wait = times_of([(3, 2, 150)]), times_of([(0, 2, 4)])
    found = by_queue(
        points(
            look(
                {"a": Counts(), "b": Counts()},
                tally={"a": {State.PENDING: 2, State.FAILED: 1, State.PROCESSING: 4}, "b": {State.PROCESSING: 1}},
                oldest_ms={"a": 7000},
                times={"a": (run, wait)},
            )
        )
    )
    assert found["a"] == Point(NOON + 60_000, "a", 61_000, Counts(), 3, 4, 7000, run, wait)
    assert found[ALL] == found["a"]._replace(queue=ALL, running=5)


def test_where_nothing_happens_there_is_one_point_that_says_so() -> None:
    quiet = look({"a": Counts(5)}, {"a": Counts(5)}, tally={"a": {State.COMPLETED: 5}})
    assert points(quiet) == [Point(NOON + 60_000, ALL, 61_000, Counts())]


def test_time_that_went_back_covers_nothing() -> None:
    assert points(look({}, now_ms=NOON - 500))[0].covers_ms == 0


def test_the_busiest_are_kept_by_name_and_the_others_together() -> None:
    many = {f"q{number:03}": Counts(number) for number in range(MOST_QUEUES + 10)}
    found = by_queue(points(look(many)))
    assert len(found) == MOST_QUEUES + 2
    assert "q010" in found
    assert "q009" not in found
    assert found[OTHERS].counts.enqueued == sum(range(10))
    assert found[ALL].counts.enqueued == sum(range(MOST_QUEUES + 10))


def test_of_those_equally_busy_it_goes_by_what_waits() -> None:
    many = {f"q{number:03}": Counts(1) for number in range(MOST_QUEUES + 1)}
    found = by_queue(points(look(many, tally={"q050": {State.PENDING: 1}})))
    assert "q050" in found
    assert "q049" not in found


def test_an_hour_is_the_sum_of_its_minutes_and_the_most_of_how_things_stood() -> None:
    one = Point(NOON, "a", 60_000, Counts(1), waiting=5, running=1, oldest_ms=None, run=times_of([(0, 1, 5)]))
    two = Point(NOON + 60_000, "a", 61_000, Counts(2, 1), waiting=2, running=3, oldest_ms=9, run=times_of([(1, 1, 15)]))
    (hour,) = merge([one], [two], Span.HOUR)
    assert hour == Point(NOON, "a", 121_000, Counts(3, 1), 5, 3, 9, times_of([(0, 1, 5), (1, 1, 15)]), Times())
    assert merge([hour], [], Span.HOUR) == []


def test_a_queue_too_many_for_an_hour_goes_to_the_others() -> None:
    there = [Point(NOON, f"q{number}", 1, Counts(1)) for number in range(MOST_QUEUES - 1)]
    new = [Point(NOON, name, 1, Counts(1), waiting=2) for name in (ALL, "a", "b", "c", "q0", OTHERS)]
    found = by_queue(merge(there, new, Span.HOUR))
    assert set(found) == {ALL, "a", "q0", OTHERS}
    assert (found[OTHERS].counts.enqueued, found[OTHERS].waiting) == (3, 6)
    assert found["q0"].counts.enqueued == 2


@given(st.lists(st.dictionaries(st.sampled_from([f"q{n}" for n in range(60)]), st.integers(0, 5)), max_size=5))
def test_nothing_is_lost_on_the_way_to_the_hour(minutes: list[dict[str, int]]) -> None:
    totals: dict[str, Counts] = {}
    hour: dict[str, Point] = {}
    for number, grown in enumerate(minutes):
        then = dict(totals)
        for queue, jobs in grown.items():
            totals[queue] = Counts(then.get(queue, Counts()).enqueued + jobs)
        at = NOON + number * 60_000
        hour |= by_queue(merge(hour.values(), points(look(totals, then, now_ms=at, last_ms=at - 60_000)), Span.HOUR))
    wanted = sum(counts.enqueued for counts in totals.values())
    assert sum(point.counts.enqueued for queue, point in hour.items() if queue != ALL) == wanted
    assert (hour[ALL].counts.enqueued if hour else 0) == wanted
    assert len(hour) <= MOST_QUEUES + 2


def test_a_look_is_due_once_in_every_minute_whichever_way_the_clock_went() -> None:
    assert is_due(None, NOON)
    assert not is_due(NOON, NOON + 59_999)
    assert is_due(NOON + 59_999, NOON + 60_000)
    assert is_due(NOON, NOON - 1)
    assert not is_due(NOON + 59_999, NOON)


def test_minutes_are_kept_for_a_day_and_hours_for_ninety() -> None:
    assert [span.kept_ms // 3_600_000 for span in Span] == [24, 90 * 24]
    assert [span.begin(NOON + 3_599_999) - NOON for span in Span] == [3_540_000, 0]
