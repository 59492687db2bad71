"""Samples: the source of charts, once a minute, whatever is removed meanwhile."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from queuectl.jobs.dependencies import Dependency
from queuectl.jobs.states import State
from queuectl.jobs.stats import (
    ALL_QUEUES,
    BOUNDS,
    BOUNDS_MS,
    MAX_NAMED_QUEUES,
    OTHER_QUEUES,
    Counts,
    Span,
    build_histogram,
)
from queuectl.store.counters import LATE_MS
from queuectl.store.dependencies import MAX_CHILDREN_PER_STEP
from queuectl.store.store import Store
from tests.clock import FakeClock
from tests.factories import new_job
from tests.store.backends import Backend
from tests.store.crowd import at_once
from tests.store.hands import BAD, OK, Hands

HOUR = 3600


def minute(store: Store, clock: FakeClock, *, seconds: float = 60) -> None:
    """A minute later a sample is written."""
    clock.advance(seconds)
    assert store.samples.record()


@pytest.fixture
def sampled(store: Store, clock: FakeClock) -> Store:
    """A sample was written just now, at the beginning of an hour."""
    clock.advance(HOUR - clock.now_ms() / 1000 % HOUR)
    store.samples.record()
    return store


def test_the_first_look_covers_the_time_since_the_first_job(store: Store, clock: FakeClock) -> None:
    store.enqueue([new_job("a"), new_job("b", queue="q")])
    clock.advance(20)
    assert store.samples.record()
    (point,) = store.samples.points(Span.MINUTE, since_ms=0)
    assert (point.covers_ms, point.counts, point.waiting, point.oldest_ms) == (20_000, Counts(enqueued=2), 2, 20_000)


def test_there_is_one_sample_per_minute(store: Store, other: Store, clock: FakeClock) -> None:
    assert store.samples.record()
    assert not store.samples.record()
    assert not other.samples.record()
    clock.advance(60)
    assert other.samples.record()
    assert not store.samples.record()
    assert len(store.samples.points(Span.MINUTE, since_ms=0)) == 2


def test_of_many_that_look_at_the_same_moment_one_writes(backend: Backend, store: Store, clock: FakeClock) -> None:
    store.enqueue([new_job() for _ in range(7)])
    wrote: list[bool] = []

    def look() -> None:
        mine = backend.open(clock)
        try:
            wrote.append(mine.samples.record())
        finally:
            mine.close()

    for _ in range(3):
        clock.advance(60)
        at_once(look, look, look)
    assert sorted(wrote) == [False] * 6 + [True] * 3
    found = store.samples.points(Span.MINUTE, since_ms=0)
    assert [point.counts.enqueued for point in found] == [7, 0, 0]


def test_a_point_says_what_happened_in_each_queue(sampled: Store, worker: Hands, clock: FakeClock) -> None:
    store = sampled
    store.enqueue([new_job("a"), new_job("b", queue="mail"), new_job("c", queue="mail", max_retries=1), new_job("d")])
    clock.advance(2)
    worker.run(OK, duration=0.04)
    worker.run(OK, duration=3)
    worker.run(BAD)
    worker.claim_one()
    minute(store, clock)
    (mail,) = store.samples.points(Span.MINUTE, since_ms=clock.now_ms() - 60_000, queue="mail")
    assert mail.counts == Counts(enqueued=2, started=2, completed=1, failed=1, dead=1)
    assert (mail.waiting, mail.running, mail.oldest_ms) == (0, 0, None)
    assert mail.run == build_histogram([(8, 1, 3000, 3000)])
    assert mail.wait.jobs == 1
    (everything,) = store.samples.points(Span.MINUTE, since_ms=clock.now_ms() - 60_000)
    assert everything.counts == Counts(enqueued=4, started=4, completed=2, failed=1, dead=1)
    assert (everything.running, everything.covers_ms) == (1, 62_000)
    assert everything.run == build_histogram([(2, 1, 40, 40), (8, 1, 3000, 3000)])


def test_the_time_since_the_last_sample_is_known_before_it_is_sampled(
    sampled: Store, worker: Hands, clock: FakeClock
) -> None:
    sampled.enqueue([new_job(queue="mail") for _ in range(3)])
    clock.advance(5)
    worker.run(OK)
    clock.advance(5)
    now = {point.queue: point for point in sampled.samples.unsampled()}
    assert set(now) == {ALL_QUEUES, "mail"}
    assert now["mail"].covers_ms == 10_000
    assert (now["mail"].counts.enqueued, now["mail"].counts.completed, now["mail"].wait.jobs) == (3, 1, 1)
    assert sampled.samples.points(Span.MINUTE, since_ms=clock.now_ms() - 5000, queue="mail") == []
    minute(sampled, clock)
    (written,) = sampled.samples.points(Span.MINUTE, since_ms=clock.now_ms() - 60_000, queue="mail")
    assert written.counts == now["mail"].counts
    assert [point.queue for point in sampled.samples.unsampled() if any(point.counts)] == []


def test_a_gap_is_covered_by_the_next_look(sampled: Store, clock: FakeClock) -> None:
    sampled.enqueue([new_job()])
    minute(sampled, clock, seconds=5 * 3600 + 7)
    found = sampled.samples.points(Span.MINUTE, since_ms=0)
    assert [(point.covers_ms, point.counts.enqueued) for point in found[-1:]] == [(18_007_000, 1)]
    assert len(found) == 2


def test_a_minute_without_anything_is_a_point_of_zeros_for_every_queue(sampled: Store, clock: FakeClock) -> None:
    minute(sampled, clock)
    assert [point.counts for point in sampled.samples.points(Span.MINUTE, since_ms=0, queue="any")] == [Counts()] * 2


def test_hours_are_the_sums_of_their_minutes(sampled: Store, clock: FakeClock) -> None:
    for jobs in (1, 2, 0, 3):
        sampled.enqueue([new_job() for _ in range(jobs)])
        minute(sampled, clock, seconds=20 * 60)
    hours = sampled.samples.points(Span.HOUR, since_ms=0, queue="default")
    assert [(point.counts.enqueued, point.waiting, point.covers_ms) for point in hours] == [
        (3, 3, 2_400_000),
        (3, 6, 2_400_000),
    ]
    assert hours[1].at_ms - hours[0].at_ms == 3_600_000
    assert sampled.samples.points(Span.HOUR, since_ms=hours[1].at_ms, queue="default") == hours[1:]


def test_minutes_go_after_a_day_and_hours_after_ninety(sampled: Store, clock: FakeClock, backend: Backend) -> None:
    minute(sampled, clock)
    minute(sampled, clock, seconds=23 * HOUR)
    assert len(sampled.samples.points(Span.MINUTE, since_ms=0)) == 3
    minute(sampled, clock, seconds=2 * HOUR)
    assert len(sampled.samples.points(Span.MINUTE, since_ms=0)) == 2
    assert len(sampled.samples.points(Span.HOUR, since_ms=0)) == 3
    minute(sampled, clock, seconds=90 * 24 * HOUR)
    assert [row["span"] for row in backend.rows("points")] == ["hour", "minute"]


def test_many_queues_are_kept_by_name_as_far_as_they_are_the_busiest(sampled: Store, clock: FakeClock) -> None:
    store = sampled
    store.enqueue([new_job(queue=f"q{number:02}") for number in range(MAX_NAMED_QUEUES + 5) for _ in range(number + 1)])
    minute(store, clock)
    since = clock.now_ms()
    named = [f"q{number:02}" for number in range(5, MAX_NAMED_QUEUES + 5)]
    assert all(store.samples.points(Span.MINUTE, since_ms=since, queue=name)[0].counts.enqueued for name in named)
    (others,) = store.samples.points(Span.MINUTE, since_ms=since, queue=OTHER_QUEUES)
    assert (others.queue, others.counts.enqueued) == (OTHER_QUEUES, 1 + 2 + 3 + 4 + 5)
    # It was among the others, and its share of them is unknown.
    assert store.samples.points(Span.MINUTE, since_ms=since, queue="q00") == []
    (everything,) = store.samples.points(Span.MINUTE, since_ms=since, queue=ALL_QUEUES)
    assert everything.counts.enqueued == sum(range(1, MAX_NAMED_QUEUES + 6))


def test_an_end_that_is_written_down_late_is_counted_and_has_no_time(
    sampled: Store, worker: Hands, clock: FakeClock
) -> None:
    sampled.enqueue([new_job(), new_job()])
    soon, late = worker.claim(2)
    minute(sampled, clock, seconds=60)
    worker.end(soon, age=LATE_MS / 1000 - 0.001, duration=0)
    worker.end(late, age=LATE_MS / 1000 + 2, duration=0)
    minute(sampled, clock)
    point = sampled.samples.points(Span.MINUTE, since_ms=0)[-1]
    assert (point.counts.completed, point.run.jobs) == (2, 1)


def test_a_clock_that_was_put_back_neither_stops_the_points_nor_counts_twice(
    sampled: Store, worker: Hands, clock: FakeClock
) -> None:
    store = sampled
    store.enqueue([new_job()])
    worker.run()
    minute(store, clock)
    clock.jump(-1800)
    store.enqueue([new_job()])
    assert store.samples.record()
    minute(store, clock)
    found = store.samples.points(Span.MINUTE, since_ms=0)
    assert sum(point.counts.enqueued for point in found) == 2
    assert sum(point.run.jobs for point in found) == 1
    assert store.samples.histograms()["default"][0].jobs == 1


def test_a_clock_that_was_far_ahead_is_forgotten(sampled: Store, worker: Hands, clock: FakeClock) -> None:
    minute(sampled, clock, seconds=10_000 * HOUR)
    clock.jump(-10_000 * HOUR)
    assert sampled.samples.record()
    clock.advance(10)
    sampled.enqueue([new_job()])
    worker.run()
    minute(sampled, clock)
    assert sampled.samples.histograms()["default"][0].jobs == 1


def test_times_of_a_long_past_are_not_looked_for(sampled: Store, worker: Hands, clock: FakeClock) -> None:
    for _ in range(2):
        sampled.enqueue([new_job()])
        worker.run()
        clock.advance(HOUR / 2)
    assert sampled.samples.histograms()["default"][0].jobs == 2
    minute(sampled, clock, seconds=10)
    point = sampled.samples.points(Span.MINUTE, since_ms=0)[-1]
    assert (point.counts.completed, point.run.jobs) == (2, 1)


# ── histograms ──────────────────────────────────────────────────────────────────────────────────────────────────────


def counts(store: Store) -> dict[str, int]:
    return {queue: run.jobs for queue, (run, _) in store.samples.histograms().items()}


@pytest.mark.parametrize("ms", [*BOUNDS_MS, *(bound + 1 for bound in BOUNDS_MS), 0, 1])
def test_every_time_is_in_its_bucket_before_and_after_a_sample(
    sampled: Store, worker: Hands, clock: FakeClock, ms: int
) -> None:
    sampled.enqueue([new_job()])
    clock.advance(ms / 1000)
    worker.run(OK, duration=ms / 1000)
    wanted = tuple((bound, int(ms <= bound * 1000)) for bound in BOUNDS)
    for _ in range(2):
        run, wait = sampled.samples.histograms()["default"]
        assert (tuple(run.cumulative), run.total_ms, run.jobs) == (wanted, ms, 1)
        assert wait.jobs == 1
        minute(sampled, clock)


@pytest.mark.parametrize("looks", [False, True])
def test_what_was_measured_stays_when_jobs_are_removed(
    sampled: Store, worker: Hands, clock: FakeClock, looks: bool
) -> None:
    store = sampled
    store.enqueue([new_job(f"j{n}", queue="ab"[n % 2]) for n in range(10)])
    for _ in range(10):
        worker.run(OK, duration=0.2)
    seen = store.samples.histograms()
    assert counts(store) == {"a": 5, "b": 5}
    if looks:
        minute(store, clock)
    assert len(store.prune(["j0", "j1", "j2"], before_ms=clock.now_ms())) == 3
    assert store.samples.histograms() == seen
    assert store.prune(["j3"], before_ms=clock.now_ms() - HOUR * 1000) == {}
    assert store.samples.histograms() == seen
    store.reset()
    assert store.samples.histograms() == seen
    minute(store, clock)
    minute(store, clock)
    assert store.samples.histograms() == seen


class Meddler(FakeClock):
    """Something happens each time it is asked for the time."""

    def __init__(self, now_ms: int, meddle: Callable[[], object]) -> None:
        super().__init__(now_ms)
        self._meddle = meddle

    def now_ms(self) -> int:
        self._meddle()
        return super().now_ms()


def test_times_are_told_as_they_are_at_one_moment_while_jobs_are_removed(
    backend: Backend, sampled: Store, worker: Hands, clock: FakeClock
) -> None:
    ids = sampled.enqueue([new_job() for _ in range(5)])
    for _ in ids:
        worker.run(OK, duration=0.2)
    seen, left = sampled.samples.histograms(), list(ids)

    def remove_one() -> None:
        sampled.prune([left.pop()], before_ms=clock.now_ms())

    reader = backend.open(Meddler(clock.now_ms(), remove_one))
    before = len(left)
    assert reader.samples.histograms() == seen
    assert len(left) == before - 1
    reader.close()


def test_a_reset_counts_the_times_of_those_that_others_wait_for(sampled: Store, worker: Hands) -> None:
    sampled.enqueue([new_job("parent")])
    children = [new_job(depends_on=(Dependency("parent"),)) for _ in range(MAX_CHILDREN_PER_STEP + 1)]
    sampled.enqueue(children)
    worker.run(OK, duration=0.2)
    seen = sampled.samples.histograms()
    assert counts(sampled) == {"default": 1}
    sampled.reset()
    assert sampled.samples.histograms() == seen


@pytest.mark.parametrize("seed", range(6))
def test_points_and_histograms_add_up_to_what_is_counted_whatever_happens(
    backend: Backend, store: Store, other: Store, worker: Hands, clock: FakeClock, seed: int
) -> None:
    chance = random.Random(seed)
    highest: dict[str, int] = {}
    for _ in range(120):
        match chance.randrange(6):
            case 0 | 1:
                store.enqueue([new_job(queue=chance.choice("abc")) for _ in range(chance.randint(1, 4))])
            case 2:
                for claim in worker.claim(chance.randint(1, 5)):
                    worker.end(claim, chance.choice([OK, OK, BAD]), age=1, duration=chance.random())
            case 3:
                clock.advance(chance.choice([1, 10, 61, 1800]))
                store.samples.record()
            case 4:
                chance.choice([store, other]).samples.record()
            case 5:
                ended = [job.id for job in store.ended(State.COMPLETED, before_ms=clock.now_ms(), limit=3)]
                before = clock.now_ms() - chance.choice([0, 0, 3000])
                if chance.random() < 0.2:
                    store.reset()
                else:
                    other.prune(ended, before_ms=before)
        seen = counts(store)
        assert all(seen[queue] >= number for queue, number in highest.items())
        highest = seen
        totals = {queue: of["completed"] for queue, of in store.totals().items() if of["completed"]}
        assert seen == totals
    clock.advance(60)
    store.samples.record()
    for span in Span:
        rows = [row for row in backend.rows("points") if row["span"] == span]
        for name in ("enqueued", "started", "completed", "failed", "dead", "retried"):
            wanted = sum(of[name] for of in store.totals().values())
            if span is Span.HOUR:  # minutes are kept for a day
                assert sum(row[name] for row in rows if row["queue"] == ALL_QUEUES) == wanted
                assert sum(row[name] for row in rows if row["queue"] != ALL_QUEUES) == wanted


def test_jobs_removed_during_a_sample_are_measured_once(
    backend: Backend, store: Store, worker: Hands, clock: FakeClock
) -> None:
    for turn in range(8):
        store.enqueue([new_job(f"t{turn}-{n}") for n in range(6)])
        for _ in range(6):
            worker.run(OK, duration=0.2)
        clock.advance(60)

        def look() -> None:
            mine = backend.open(clock)
            mine.samples.record()
            mine.close()

        def remove(first: int, turn: int = turn) -> None:
            mine = backend.open(clock)
            mine.prune([f"t{turn}-{n}" for n in range(first, first + 3)], before_ms=clock.now_ms())
            mine.close()

        at_once(look, lambda: remove(0), lambda: remove(3))
        assert counts(store) == {"default": 6 * (turn + 1)}
