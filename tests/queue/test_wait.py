from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from queuectl.errors import JobNotFound, WaitTimeout
from queuectl.job.lifecycle import State
from queuectl.job.model import Job
from queuectl.job.outcome import Cancelled, Exited, Outcome
from queuectl.queue import dlq
from queuectl.queue.wait import UnservedWatch, exit_code, wait
from queuectl.store.protocol import Store
from tests.clock import FakeClock
from tests.factories import new_job
from tests.queue.life import KILLED, OK, claim, end, enqueue, register, run


class Meanwhile(FakeClock):
    """A clock that lets others act while somebody sleeps: one step for each sleep, until there are no more."""

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


def test_waiting_lasts_until_each_has_ended(store: Store, other: Store, home: Path) -> None:
    register(store, home)
    enqueue(store, "a")
    enqueue(store, "b")
    meanwhile = Meanwhile(lambda: run(other, home), lambda: run(other, home, KILLED))
    assert [(job.id, job.state) for job in wait(store, meanwhile, ["b", "a"])] == [
        ("b", State.DEAD),
        ("a", State.COMPLETED),
    ]


def test_waiting_for_any_ends_with_the_first(store: Store, other: Store, home: Path) -> None:
    register(store, home)
    enqueue(store, "a")
    enqueue(store, "b")
    meanwhile = Meanwhile(lambda: run(other, home))
    assert [job.id for job in wait(store, meanwhile, ["b", "a"], any_of_them=True)] == ["a"]


def test_waiting_too_long_names_who_has_not_ended(store: Store, home: Path, clock: FakeClock) -> None:
    register(store, home)
    enqueue(store, "a")
    run(store, home)
    enqueue(store, "b")
    began = clock.monotonic()
    with pytest.raises(WaitTimeout) as caught:
        wait(store, clock, ["a", "b"], timeout=1.5)
    assert caught.value.waiting == ("b",)
    assert clock.monotonic() - began == pytest.approx(1.5)


def test_a_timeout_of_nothing_only_looks(store: Store, clock: FakeClock) -> None:
    enqueue(store, "a")
    with pytest.raises(WaitTimeout):
        wait(store, clock, ["a"], timeout=0)


def test_a_job_that_is_removed_while_it_is_waited_for_is_not_found(store: Store, other: Store, home: Path) -> None:
    register(store, home)
    enqueue(store, "a")
    with pytest.raises(JobNotFound):
        wait(store, Meanwhile(other.reset), ["a"])


@pytest.mark.parametrize(
    "outcomes, code",
    [([OK, OK], 0), ([OK, Exited(3)], 3), ([Exited(4), Exited(3)], 4), ([KILLED], 137), ([Cancelled(None)], 1)],
)
def test_the_exit_code_is_of_the_first_that_did_not_complete(
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


def test_nobody_alive_for_two_seconds_is_noticed_once(store: Store, clock: FakeClock) -> None:
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
    store.heartbeat("w1", slots=1, stopping=True)
    notices = Notices()
    watch = UnservedWatch(store, clock, is_alive=lambda _: True, notify=notices)
    with pytest.raises(WaitTimeout):
        wait(store, clock, ["running", "waiting"], timeout=5, watch=watch)
    assert notices.jobs == ["waiting"]


def test_how_a_job_ended_counts_also_if_it_is_retried_while_others_are_waited_for(
    store: Store, other: Store, home: Path
) -> None:
    register(store, home)
    enqueue(store, "a")
    enqueue(store, "b")
    meanwhile = Meanwhile(
        lambda: run(other, home, KILLED),
        lambda: dlq.retry(other, ["a"]),
        lambda: other.cancel(["b"]),
    )
    ended = wait(store, meanwhile, ["a", "b"])
    assert [(job.id, job.state) for job in ended] == [("a", State.DEAD), ("b", State.CANCELLED)]


class Questions:
    """A store that counts what it is asked about jobs."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.count = 0

    def __getattr__(self, name: str) -> Any:
        if name in ("get", "jobs"):
            self.count += 1
        return getattr(self._store, name)


def test_waiting_for_thousands_asks_for_hundreds_at_a_time(store: Store, other: Store) -> None:
    ids = store.enqueue([new_job(f"j{number}") for number in range(2_000)])
    questions = Questions(store)
    with pytest.raises(WaitTimeout):
        wait(cast(Store, questions), Meanwhile(lambda: other.cancel(["j7"])), ids, timeout=1)
    assert questions.count == 2 * 4


def test_who_waits_for_many_rests_longer_than_it_looks(store: Store, other: Store) -> None:
    enqueue(store, "a")
    sleeps: list[float] = []

    class Slow(FakeClock):
        """Every look at this clock costs a tenth of a second, so that the look between two of them does."""

        def monotonic(self) -> float:
            self.advance(0.1)
            return super().monotonic()

        def sleep(self, seconds: float) -> None:
            sleeps.append(seconds)
            if len(sleeps) == 3:
                other.cancel(["a"])

    wait(store, Slow(), ["a"])
    assert min(sleeps) >= 0.4
