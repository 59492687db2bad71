"""Prefetch: claims that a worker holds beyond its slots, while its jobs are short."""

from __future__ import annotations

import signal

import pytest

from queuectl.worker.slots import MAX_PREFETCHED, MIN_WAVES, SHORT_JOB, SHORT_JOBS_IN_A_ROW, STALE_AFTER, Prefetch
from tests.clock import FakeClock
from tests.e2e.scene import Scene
from tests.wait import wait_until


class Bench:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.prefetch = Prefetch(self.clock)

    def is_stale(self, requested_at: float) -> bool:
        return self.clock.monotonic() >= self.prefetch.stale_at(requested_at)


@pytest.fixture
def bench() -> Bench:
    return Bench()


# ── how many ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_nothing_is_claimed_ahead_before_some_jobs_in_a_row_were_short(bench: Bench) -> None:
    sizes = []
    for _ in range(SHORT_JOBS_IN_A_ROW + 1):
        sizes.append(bench.prefetch.size(4))
        bench.prefetch.note_duration(SHORT_JOB / 2)
    assert sizes == [0] * SHORT_JOBS_IN_A_ROW + [4 * MIN_WAVES]


def test_one_long_job_ends_it(bench: Bench) -> None:
    for duration in [SHORT_JOB / 2] * 50 + [SHORT_JOB]:
        bench.prefetch.note_duration(duration)
    assert bench.prefetch.size(4) == 0


def test_as_many_short_ones_are_asked_for_as_there_are_slots(bench: Bench) -> None:
    for _ in range(99):
        bench.prefetch.note_duration(0.0)
    assert bench.prefetch.size(100) == 0
    bench.prefetch.note_duration(0.0)
    assert bench.prefetch.size(100) == MAX_PREFETCHED


# ── a slow store ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_jobs_that_take_less_than_an_exchange_are_short(bench: Bench) -> None:
    bench.prefetch.note_exchange(0.2)
    for _ in range(SHORT_JOBS_IN_A_ROW):
        bench.prefetch.note_duration(0.15)
    assert bench.prefetch.size(4) == 4 * MIN_WAVES


def test_one_slow_exchange_among_others_changes_nothing(bench: Bench) -> None:
    for seconds in [0.002, 0.5, 0.002]:
        bench.prefetch.note_exchange(seconds)
    for _ in range(SHORT_JOBS_IN_A_ROW):
        bench.prefetch.note_duration(0.15)
    assert bench.prefetch.size(4) == 0


def test_as_many_are_claimed_ahead_as_the_slots_can_begin_during_an_exchange(bench: Bench) -> None:
    bench.prefetch.note_exchange(0.2)
    for _ in range(100):
        bench.prefetch.note_duration(0.045)
    assert bench.prefetch.size(2) == 10
    assert bench.prefetch.size(100) == MAX_PREFETCHED


def test_nothing_goes_back_while_others_start(bench: Bench) -> None:
    requested_at = bench.clock.monotonic()
    for _ in range(2):
        bench.clock.advance(STALE_AFTER - 0.001)
        bench.prefetch.note_start()
        assert not bench.is_stale(requested_at)
    bench.clock.advance(STALE_AFTER)
    assert bench.is_stale(requested_at)
    assert not bench.is_stale(bench.clock.monotonic()), "a later request has its time"


def test_nothing_goes_back_before_two_exchanges_could_be_made(bench: Bench) -> None:
    bench.prefetch.note_exchange(0.2)
    requested_at = bench.clock.monotonic()
    bench.clock.advance(0.39)
    assert not bench.is_stale(requested_at)
    bench.clock.advance(0.02)
    assert bench.is_stale(requested_at)


def test_after_that_nothing_is_claimed_ahead_until_jobs_are_short_again(bench: Bench) -> None:
    for _ in range(SHORT_JOBS_IN_A_ROW):
        bench.prefetch.note_duration(0.0)
    assert bench.prefetch.size(4) == 4 * MIN_WAVES
    bench.prefetch.note_stale()
    assert bench.prefetch.size(4) == 0


# ── from outside ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_short_jobs_before_long_ones_hold_none_of_them(scene: Scene) -> None:
    """The two workers share the long ones, though the first one had claimed some of them ahead."""
    long = f"{scene.note('begun')}; {scene.until('go')}"
    scene.enqueue_all_from_file([{"command": "true"}] * 40 + [{"command": long}] * 4)
    scene.worker("--count", "2")
    wait_until(lambda: scene.count("completed") == 40, what="the short ones")
    scene.worker("--count", "2")
    scene.wait_for_lines("begun", 4)
    scene.open("go")
    wait_until(lambda: scene.count("completed") == 44, what="the long ones")
    assert {job.attempts for job in scene.store.jobs()} == {0}


def test_a_worker_that_stops_gives_back_what_it_has_not_begun(scene: Scene) -> None:
    scene.enqueue_all_from_file([{"command": "true"}] * 3000)
    worker = scene.worker("--count", "2")
    wait_until(lambda: scene.count("completed") > 100, every=0.002, what="it to be in full swing")
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    assert scene.count("processing") == 0
    assert scene.count("completed") + scene.count("pending") == 3000
    assert scene.count("pending") > 0
    assert {(job.state.value, job.runs) for job in scene.store.jobs()} == {("completed", 1), ("pending", 0)}


def test_a_crash_does_not_count_for_jobs_that_had_not_started(scene: Scene) -> None:
    scene.enqueue_all_from_file([{"command": "true"}] * 3000)
    worker = scene.worker("--count", "2")
    wait_until(lambda: scene.count("completed") > 100, every=0.002, what="it to be in full swing")
    worker.kill()
    scene.drain()
    assert scene.count("completed") == 3000
    assert sum(job.crashes for job in scene.store.jobs()) <= 2, "at most those that had a slot"
