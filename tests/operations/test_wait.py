from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from queuectl.errors import JobNotFound, QueuectlError, StoreBusy, StoreDamaged, StoreUnreachable, WaitTimeout
from queuectl.jobs.model import Job
from queuectl.jobs.outcome import Cancelled, Exited, Outcome
from queuectl.jobs.states import State
from queuectl.operations import control
from queuectl.operations.wait import STORE_RETRY_SECONDS, UnservedWatch, exit_code, retry_store, retrying_reads, wait
from queuectl.store.store import Store
from tests.clock import FakeClock
from tests.factories import new_job
from tests.operations.life import KILLED, OK, claim, end, enqueue, register, run


class Meanwhile(FakeClock):
    """A clock that calls one action during each sleep."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        super().__init__()
        self.steps = list(steps)

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if self.steps:
            self.steps.pop(0)()


def test_a_job_that_has_ended_is_returned_at_once(store: Store, home: Path, clock: FakeClock) -> None:
    register(store, home)
    enqueue(store, "a")
    run(store, home)
    began = clock.monotonic()
    assert [job.state for job in wait(store, clock, ["a"])] == [State.COMPLETED]
    assert clock.monotonic() == began


def test_waiting_lasts_until_all_jobs_have_ended(store: Store, other: Store, home: Path) -> None:
    register(store, home)
    enqueue(store, "a")
    enqueue(store, "b")
    meanwhile = Meanwhile(lambda: run(other, home), lambda: run(other, home, KILLED))
    assert [(job.id, job.state) for job in wait(store, meanwhile, ["b", "a"])] == [
        ("b", State.DEAD),
        ("a", State.COMPLETED),
    ]


def test_waiting_for_any_job_ends_with_the_first(store: Store, other: Store, home: Path) -> None:
    register(store, home)
    enqueue(store, "a")
    enqueue(store, "b")
    meanwhile = Meanwhile(lambda: run(other, home))
    assert [job.id for job in wait(store, meanwhile, ["b", "a"], any_of_them=True)] == ["a"]


def test_a_timeout_names_the_unfinished_jobs(store: Store, home: Path, clock: FakeClock) -> None:
    register(store, home)
    enqueue(store, "a")
    run(store, home)
    enqueue(store, "b")
    began = clock.monotonic()
    with pytest.raises(WaitTimeout) as caught:
        wait(store, clock, ["a", "b"], timeout=1.5)
    assert caught.value.waiting == ("b",)
    assert clock.monotonic() - began == pytest.approx(1.5)


def test_a_timeout_of_zero_polls_once(store: Store, clock: FakeClock) -> None:
    enqueue(store, "a")
    with pytest.raises(WaitTimeout):
        wait(store, clock, ["a"], timeout=0)


def test_a_job_that_is_removed_during_a_wait_is_not_found(store: Store, other: Store, home: Path) -> None:
    register(store, home)
    enqueue(store, "a")
    with pytest.raises(JobNotFound):
        wait(store, Meanwhile(other.reset), ["a"])


@pytest.mark.parametrize(
    "outcomes, code",
    [([OK, OK], 0), ([OK, Exited(3)], 3), ([Exited(4), Exited(3)], 4), ([KILLED], 137), ([Cancelled(None)], 1)],
)
def test_the_exit_code_is_that_of_the_first_job_that_did_not_complete(
    store: Store, home: Path, outcomes: list[Outcome], code: int
) -> None:
    register(store, home)
    for number, outcome in enumerate(outcomes):
        enqueue(store, f"j{number}")
        held = claim(store, home)
        if isinstance(outcome, Cancelled):
            store.cancel([held.id])
        end(store, held, outcome)
    assert exit_code([store.get(f"j{number}") for number in range(len(outcomes))]) == code


class Notices:
    def __init__(self) -> None:
        self.jobs: list[str] = []

    def __call__(self, job: Job) -> None:
        self.jobs.append(job.id)


def test_two_seconds_without_a_live_worker_are_reported_once(store: Store, clock: FakeClock) -> None:
    enqueue(store, "a")
    notices = Notices()
    watch = UnservedWatch(store, clock, is_alive=lambda _: True, notify=notices)
    with pytest.raises(WaitTimeout):
        wait(store, clock, ["a"], timeout=1.9, watch=watch)
    assert notices.jobs == []
    with pytest.raises(WaitTimeout):
        wait(store, clock, ["a"], timeout=10, watch=watch)
    assert notices.jobs == ["a"]


@pytest.mark.parametrize(
    "queues, alive, noticed",
    [(None, True, False), (("mail",), True, False), (("web",), True, True), (None, False, True)],
)
def test_only_a_live_worker_that_serves_the_queue_counts(
    store: Store, home: Path, clock: FakeClock, queues: tuple[str, ...] | None, alive: bool, noticed: bool
) -> None:
    register(store, home, queues=queues)
    enqueue(store, "a", queue="mail")
    notices = Notices()
    watch = UnservedWatch(store, clock, is_alive=lambda _: alive, notify=notices)
    with pytest.raises(WaitTimeout):
        wait(store, clock, ["a"], timeout=5, watch=watch)
    assert bool(notices.jobs) is noticed


def test_a_job_whose_worker_is_stopping_but_runs_it_is_served(store: Store, home: Path, clock: FakeClock) -> None:
    register(store, home)
    enqueue(store, "running")
    claim(store, home)
    enqueue(store, "waiting")
    store.claims.heartbeat("w1", slots=1, stopping=True)
    notices = Notices()
    watch = UnservedWatch(store, clock, is_alive=lambda _: True, notify=notices)
    with pytest.raises(WaitTimeout):
        wait(store, clock, ["running", "waiting"], timeout=5, watch=watch)
    assert notices.jobs == ["waiting"]


def test_the_first_end_of_a_job_counts_even_if_it_is_retried_during_the_wait(
    store: Store, other: Store, home: Path
) -> None:
    register(store, home)
    enqueue(store, "a")
    enqueue(store, "b")
    meanwhile = Meanwhile(
        lambda: run(other, home, KILLED),
        lambda: control.retry_dead(other, ["a"]),
        lambda: other.cancel(["b"]),
    )
    ended = wait(store, meanwhile, ["a", "b"])
    assert [(job.id, job.state) for job in ended] == [("a", State.DEAD), ("b", State.CANCELLED)]


class Questions:
    """A store that records its queries for jobs."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.count = 0

    def __getattr__(self, name: str) -> Any:
        if name in ("get", "jobs"):
            self.count += 1
        return getattr(self._store, name)


def test_waiting_for_thousands_of_jobs_reads_them_in_batches(store: Store, other: Store) -> None:
    ids = store.enqueue([new_job(f"j{number}") for number in range(2_000)])
    questions = Questions(store)
    with pytest.raises(WaitTimeout):
        wait(cast(Store, questions), Meanwhile(lambda: other.cancel(["j7"])), ids, timeout=1)
    assert questions.count == 2 * 4


def test_a_wait_for_many_jobs_pauses_longer_than_it_polls(store: Store, other: Store) -> None:
    enqueue(store, "a")
    sleeps: list[float] = []

    class Slow(FakeClock):
        """Every reading of this clock takes 0.1 s, and so does a poll between two readings."""

        def monotonic(self) -> float:
            self.advance(0.1)
            return super().monotonic()

        def sleep(self, seconds: float) -> None:
            sleeps.append(seconds)
            if len(sleeps) == 3:
                other.cancel(["a"])

    wait(store, Slow(), ["a"])
    assert min(sleeps) >= 0.4


AWAY = StoreUnreachable("postgresql://h/db", "connection refused")


def fails(times: int, error: QueuectlError = AWAY) -> Callable[[], str]:
    left = times

    def act() -> str:
        nonlocal left
        left -= 1
        if left >= 0:
            raise error
        return "done"

    return act


@pytest.mark.parametrize("error", [AWAY, StoreBusy("postgresql://h/db", 0)])
def test_a_read_is_retried_while_the_store_is_unavailable(clock: FakeClock, error: QueuectlError) -> None:
    assert retry_store(clock, fails(20, error)) == "done"


def test_retries_end_after_ten_seconds(clock: FakeClock) -> None:
    began = clock.monotonic()
    with pytest.raises(StoreUnreachable):
        retry_store(clock, fails(10_000))
    assert clock.monotonic() - began == pytest.approx(STORE_RETRY_SECONDS, abs=0.2)


def test_retries_end_at_the_given_time(clock: FakeClock) -> None:
    began = clock.monotonic()
    with pytest.raises(StoreUnreachable):
        retry_store(clock, fails(10_000), until=began + 1)
    assert clock.monotonic() - began == pytest.approx(1, abs=0.2)


def test_a_write_that_may_be_committed_is_not_retried(clock: FakeClock) -> None:
    with pytest.raises(StoreUnreachable):
        retry_store(clock, fails(1, StoreUnreachable("postgresql://h/db", "cut", in_doubt=True)))


def test_a_permanent_error_is_not_retried(clock: FakeClock) -> None:
    began = clock.monotonic()
    with pytest.raises(StoreDamaged):
        retry_store(clock, fails(1, StoreDamaged("q.db", "torn")))
    assert clock.monotonic() == began


def test_retrying_reads_return_the_results_of_the_store(store: Store, clock: FakeClock) -> None:
    enqueue(store, "a")
    bearing = retrying_reads(store, clock)
    assert [job.id for job in bearing.jobs()] == ["a"]
    assert bearing.get("a") == store.get("a")
    assert bearing.is_shared == store.is_shared


def test_reads_of_a_part_of_the_store_are_retried(clock: FakeClock) -> None:
    class Busy:
        batches = SimpleNamespace(all=fails(3))

    assert retrying_reads(cast(Store, Busy()), clock).batches.all() == "done"


def test_a_wait_times_out_while_the_store_is_unavailable(clock: FakeClock) -> None:
    class Away:
        def __getattr__(self, name: str) -> Callable[..., object]:
            return lambda *args, **kwargs: fails(1)()

    with pytest.raises(WaitTimeout):
        wait(Away(), clock, ["a"], timeout=3)  # type: ignore[arg-type]
