"""Waiting for workers to stop, as the store and the processes tell it; nobody here is a real process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from queuectl.job.model import Worker
from queuectl.queue.stop import Hands, Silent, stop_workers
from queuectl.store.protocol import StopMode, Store
from tests.clock import FakeClock
from tests.queue.life import register

GRACE = 10.0
LEASE = 30.0


class Stubborn:
    """A worker's process that is stopped. `wake` and `kill` say whether that helps."""

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
        self._store.retire("w1")
        self.is_gone = True

    def hands(self) -> Hands:
        return Hands(
            lambda _: self.is_gone, lambda _: self.is_stopped, self.wake, self.kill, lambda _: False, lambda _: None
        )


class Until(FakeClock):
    """A clock that lets something happen once so many seconds have passed."""

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
    hands: Hands,
    *,
    mode: StopMode = StopMode.FINISH,
    timeout: float | None = None,
) -> list[Silent]:
    told: list[Silent] = []
    names = stop_workers(
        store,
        clock,
        workers,
        mode=mode,
        timeout=timeout,
        patience=GRACE,
        lease=LEASE,
        hands=hands,
        on_progress=lambda _: None,
        on_silent=told.append,
    )
    assert names == ["w1"]
    return told


def test_a_stopped_worker_is_told_of_once_and_waited_for(store: Store, workers: Sequence[Worker]) -> None:
    stubborn = Stubborn(store)
    told = stop(store, Until(60, stubborn.end), workers, stubborn.hands())
    assert [silent.is_stopped for silent in told] == [True]
    assert stubborn.done == []


def test_a_stopped_worker_is_woken_when_it_is_to_end(store: Store, workers: Sequence[Worker], clock: FakeClock) -> None:
    stubborn = Stubborn(store)
    began = clock.monotonic()
    told = stop(store, clock, workers, stubborn.hands(), timeout=7)
    assert (len(told), stubborn.done) == (1, ["wake"])
    assert 7 <= clock.monotonic() - began < 8


def test_a_worker_that_cannot_be_woken_is_killed(store: Store, workers: Sequence[Worker], clock: FakeClock) -> None:
    stubborn = Stubborn(store, wakes=False)
    began = clock.monotonic()
    stop(store, clock, workers, stubborn.hands(), mode=StopMode.NOW)
    assert stubborn.done[0] == "wake"
    assert stubborn.done[-1] == "kill"
    assert GRACE <= clock.monotonic() - began < GRACE + 2


def test_a_worker_that_was_declared_lost_and_begins_anew_is_asked_again(
    store: Store, other: Store, home: Path, workers: Sequence[Worker]
) -> None:
    stubborn = Stubborn(store)
    stubborn.is_stopped = False
    store.retire("w1")
    asked: list[StopMode | None] = []

    class Anew(FakeClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            if not other.workers() and not asked:
                register(other, home)
            elif (order := other.orders("w1").stop) is not None:
                asked.append(order)
                stubborn.end()

    assert stop(store, Anew(), workers, stubborn.hands()) == []
    assert asked == [StopMode.FINISH]


def test_a_worker_without_a_sign_for_a_lease_is_told_of(store: Store, workers: Sequence[Worker]) -> None:
    stubborn = Stubborn(store)
    stubborn.is_stopped = False
    assert [silent.is_stopped for silent in stop(store, Until(LEASE + 2, stubborn.end), workers, stubborn.hands())] == [
        False
    ]
    assert stubborn.done == []
