"""Prefetch: claims that a worker holds beyond its slots, while its jobs are short."""

from __future__ import annotations

import signal

import pytest

from queuectl.jobs.model import Claim
from queuectl.process.journal import Journal, Record, read_journal
from queuectl.store.enqueue import new_tokens
from queuectl.worker.slots import GATHER, MAX_PREFETCHED, SHORT_JOB, SHORT_JOBS_IN_A_ROW, STALE_AFTER, Prefetch
from tests.clock import FakeClock
from tests.e2e.scene import Scene
from tests.factories import unknown_claim
from tests.wait import wait_until


class Bench:
    """A prefetch, and what it has written."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.written: list[str] = []
        self.prefetch = Prefetch(self.clock, self._write)

    def _write(self, tokens: object) -> None:
        self.written = list(tokens)  # type: ignore[call-overload]

    def draw(self, *names: str, free: int, slots: int = 8, is_busy: bool = True) -> str:
        """The names of those to begin."""
        more = [unknown_claim(name, token=name) for name in names]
        return "".join(claim.id for claim in self.prefetch.draw(more, free=free, slots=slots, is_busy=is_busy))


@pytest.fixture
def bench() -> Bench:
    return Bench()


def names(claims: list[Claim]) -> str:
    return "".join(claim.id for claim in claims)


# ── how many ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_nothing_is_claimed_ahead_before_some_jobs_in_a_row_were_short(bench: Bench) -> None:
    sizes = []
    for _ in range(SHORT_JOBS_IN_A_ROW + 1):
        sizes.append(bench.prefetch.size(4))
        bench.prefetch.note_duration(SHORT_JOB / 2)
    assert sizes == [0] * SHORT_JOBS_IN_A_ROW + [8]


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
    assert bench.prefetch.size(4) == 8


def test_one_slow_exchange_among_others_changes_nothing(bench: Bench) -> None:
    for seconds in [0.002, 0.5, 0.002]:
        bench.prefetch.note_exchange(seconds)
    for _ in range(SHORT_JOBS_IN_A_ROW):
        bench.prefetch.note_duration(0.15)
    assert bench.prefetch.size(4) == 0


def test_as_many_are_claimed_ahead_as_the_slots_can_begin_during_an_exchange(bench: Bench) -> None:
    bench.prefetch.note_exchange(0.2)
    for _ in range(100):
        bench.prefetch.note_duration(0.06)
    assert bench.prefetch.size(2) == 8
    assert bench.prefetch.size(100) == MAX_PREFETCHED


def test_nothing_goes_back_while_slots_become_free_for_it(bench: Bench) -> None:
    bench.draw(*"abcd", free=1)
    for name in "bc":
        bench.clock.advance(STALE_AFTER - 0.001)
        assert bench.draw(free=1) == name
        assert names(bench.prefetch.stale(bench.clock.monotonic())) == ""
    bench.clock.advance(STALE_AFTER)
    assert names(bench.prefetch.stale(bench.clock.monotonic())) == "d"


def test_nothing_goes_back_before_two_exchanges_could_be_made(bench: Bench) -> None:
    bench.prefetch.note_exchange(0.2)
    bench.draw("a", free=0)
    bench.clock.advance(0.39)
    assert names(bench.prefetch.stale(bench.clock.monotonic())) == ""
    bench.clock.advance(0.02)
    assert names(bench.prefetch.stale(bench.clock.monotonic())) == "a"


# ── who begins ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_they_begin_in_the_order_in_which_they_were_claimed(bench: Bench) -> None:
    assert bench.draw(*"abcde", free=2, slots=2) == "ab"
    assert bench.draw(*"fg", free=2, slots=2) == "cd"
    assert bench.draw(free=9, slots=9) == "efg"


def test_without_room_none_begins(bench: Bench) -> None:
    assert bench.draw("a", free=0) == ""
    assert bench.draw(free=-3) == ""
    assert len(bench.prefetch) == 1


def test_few_free_slots_wait_a_moment_for_more(bench: Bench) -> None:
    bench.draw(*"abcdefghijkl", free=8)
    assert bench.draw(free=3) == ""
    assert bench.prefetch.start_at(3) == pytest.approx(bench.clock.monotonic() + GATHER)
    assert bench.draw(free=4) == "ijkl"


def test_the_moment_is_short(bench: Bench) -> None:
    bench.draw(*"abcdefghijkl", free=8)
    bench.clock.advance(GATHER)
    assert bench.draw(free=1) == "i"


def test_a_worker_without_running_jobs_starts_them_at_once(bench: Bench) -> None:
    bench.draw(*"abcdefghijkl", free=8)
    assert bench.draw(free=3, is_busy=False) == "ijk"


def test_the_last_ones_start_at_once(bench: Bench) -> None:
    bench.draw(*"abcdefghi", free=8)
    assert bench.draw(free=1) == "i"


# ── who goes back ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_who_has_waited_for_too_long_goes_back(bench: Bench) -> None:
    bench.draw("a", free=0)
    bench.clock.advance(STALE_AFTER / 2)
    bench.draw("b", free=0)
    assert bench.prefetch.stale_at() == pytest.approx(bench.clock.monotonic() + STALE_AFTER / 2)
    bench.clock.advance(STALE_AFTER / 2)
    assert names(bench.prefetch.stale(bench.clock.monotonic())) == "a"
    assert bench.written == ["b"]


def test_after_that_nothing_is_claimed_ahead_until_jobs_are_short_again(bench: Bench) -> None:
    for _ in range(SHORT_JOBS_IN_A_ROW):
        bench.prefetch.note_duration(0.0)
    bench.draw("a", free=0)
    assert bench.prefetch.size(4) == 8
    bench.prefetch.stale(bench.clock.monotonic() + STALE_AFTER)
    assert bench.prefetch.size(4) == 0


def test_who_is_cancelled_is_taken_out(bench: Bench) -> None:
    bench.draw(*"abc", free=0)
    assert names(bench.prefetch.remove(lambda claim, _: claim.id == "b")) == "b"
    assert (bench.written, names(bench.prefetch.remove()), bench.written) == (["a", "c"], "ac", [])


# ── what is left if the worker dies ─────────────────────────────────────────────────────────────────────────────────


def test_a_job_that_starts_is_no_longer_among_those_that_did_not(bench: Bench) -> None:
    bench.draw(*"abc", free=1)
    assert bench.written == ["b", "c"]
    bench.draw(free=9)
    assert bench.written == []


def test_the_largest_prefetch_fits_into_the_journal_and_leaves_the_rest_alone(tmp_path: object) -> None:
    path, tokens = f"{tmp_path}/runs", new_tokens(MAX_PREFETCHED)
    journal = Journal(path)
    journal.write_unstarted(tokens)
    assert read_journal(path).unstarted == set(tokens)
    assert journal.appended() == ({}, set())
    journal.write_unstarted(tokens[:1])
    assert read_journal(path).unstarted == {tokens[0]}
    journal.close()


def test_what_has_begun_has_begun_though_an_old_note_says_otherwise(tmp_path: object) -> None:
    # A full disk keeps the worker from noting that less has not begun; that its supervisor started the process is written before.
    path, tokens = f"{tmp_path}/runs", new_tokens(2)
    journal = Journal(path)
    journal.write_unstarted(tokens)
    journal.write(0, tokens[0], Record(1, 1))
    assert read_journal(path).unstarted == {tokens[1]}
    journal.close()


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
    # At most those that had a slot, and those that were claimed in that very moment.
    assert sum(job.crashes for job in scene.store.jobs()) <= 2 + 6
