from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from queuectl.jobs.model import Worker
from queuectl.operations.workers import (
    DEAD_AFTER_SECONDS,
    UnresponsiveWorker,
    WorkerProcesses,
    restart_workers,
    stop_workers,
)
from queuectl.store.store import Store
from queuectl.store.types import StopMode
from tests.clock import FakeClock
from tests.operations.life import register

GRACE = 10.0
LEASE = 30.0


class Stubborn:
    """A suspended worker process. `wake` and `kill`: whether these have an effect."""

    def __init__(self, store: Store, *, wakes: bool = True) -> None:
        self._store = store
        self._wakes = wakes
        self.is_stopped = True
        self.is_gone = False
        self.done: list[str] = []

    def wake(self, worker: Worker) -> None:
        self.done.append("wake")
        if self._wakes:
            self.is_stopped = False
            self.end()

    def kill(self, worker: Worker) -> None:
        self.done.append("kill")
        self.end()

    def end(self) -> None:
        self._store.claims.retire("w1")
        self.is_gone = True

    def hands(self) -> WorkerProcesses:
        return WorkerProcesses(
            lambda _: self.is_gone, lambda _: self.is_stopped, self.wake, self.kill, lambda _: False, lambda _: None
        )


class Until(FakeClock):
    """A clock that calls an action after some seconds."""

    def __init__(self, seconds: float, then: Callable[[], object]) -> None:
        super().__init__()
        self._at = self.monotonic() + seconds
        self._then: Callable[[], object] | None = then

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if self._then and self.monotonic() >= self._at:
            self._then()
            self._then = None


@pytest.fixture
def workers(store: Store, home: Path) -> Sequence[Worker]:
    register(store, home)
    return store.workers()


def stop(
    store: Store,
    clock: FakeClock,
    workers: Sequence[Worker],
    hands: WorkerProcesses,
    *,
    mode: StopMode = StopMode.FINISH,
    timeout: float | None = None,
) -> list[UnresponsiveWorker]:
    told: list[UnresponsiveWorker] = []
    names = stop_workers(
        store,
        clock,
        workers,
        mode=mode,
        timeout=timeout,
        patience=GRACE,
        lease=LEASE,
        processes=hands,
        on_progress=lambda _: None,
        on_silent=told.append,
    )
    assert names == ["w1"]
    return told


def test_a_suspended_worker_is_reported_once_and_waited_for(store: Store, workers: Sequence[Worker]) -> None:
    stubborn = Stubborn(store)
    told = stop(store, Until(60, stubborn.end), workers, stubborn.hands())
    assert [silent.is_stopped for silent in told] == [True]
    assert stubborn.done == []


def test_a_suspended_worker_is_continued_when_it_has_to_stop_at_once(
    store: Store, workers: Sequence[Worker], clock: FakeClock
) -> None:
    stubborn = Stubborn(store)
    began = clock.monotonic()
    told = stop(store, clock, workers, stubborn.hands(), timeout=7)
    assert (len(told), stubborn.done) == (1, ["wake"])
    assert 7 <= clock.monotonic() - began < 8


def test_a_worker_that_stays_suspended_is_killed(store: Store, workers: Sequence[Worker], clock: FakeClock) -> None:
    stubborn = Stubborn(store, wakes=False)
    began = clock.monotonic()
    stop(store, clock, workers, stubborn.hands(), mode=StopMode.NOW)
    assert stubborn.done[0] == "wake"
    assert stubborn.done[-1] == "kill"
    assert GRACE <= clock.monotonic() - began < GRACE + 2


def test_a_worker_that_was_declared_lost_and_registers_again_is_asked_again(
    store: Store, other: Store, home: Path, workers: Sequence[Worker]
) -> None:
    stubborn = Stubborn(store)
    stubborn.is_stopped = False
    store.claims.retire("w1")
    asked: list[StopMode | None] = []

    class Reregister(FakeClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            if not other.workers() and not asked:
                register(other, home)
            elif (order := other.claims.orders("w1").stop) is not None:
                asked.append(order)
                stubborn.end()

    assert stop(store, Reregister(), workers, stubborn.hands()) == []
    assert asked == [StopMode.FINISH]


def test_a_worker_without_a_heartbeat_for_a_lease_is_reported(store: Store, workers: Sequence[Worker]) -> None:
    stubborn = Stubborn(store)
    stubborn.is_stopped = False
    assert [silent.is_stopped for silent in stop(store, Until(LEASE + 2, stubborn.end), workers, stubborn.hands())] == [
        False
    ]
    assert stubborn.done == []


@pytest.mark.parametrize("away, done", [(1.0, ["w1"]), (2 * DEAD_AFTER_SECONDS, [])], ids=["for a moment", "for good"])
def test_a_worker_that_is_not_registered_during_its_restart_has_not_ended(
    store: Store, home: Path, clock: FakeClock, away: float, done: list[str]
) -> None:
    register(store, home)
    workers = store.workers()
    store.claims.retire("w1")  # as the restarting worker does
    back_at = clock.monotonic() + away

    class Meanwhile(FakeClock):
        def sleep(self, seconds: float) -> None:
            clock.advance(seconds)
            if clock.monotonic() >= back_at and not store.workers():
                register(store, home)

        def monotonic(self) -> float:
            return clock.monotonic()

    answer = restart_workers(store, Meanwhile(), workers, is_alive=lambda _: True, patience=30.0)
    assert answer.done == done
    assert [refusal.id for refusal in answer.refused] == ([] if done else ["w1"])
