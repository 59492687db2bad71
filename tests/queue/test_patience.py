"""A store that is away for a moment, and one that stays away."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from queuectl.errors import QueuectlError, StoreBusy, StoreDamaged, StoreUnreachable, WaitTimeout
from queuectl.queue.patience import PATIENCE, patient, persist
from queuectl.queue.wait import wait
from queuectl.store.protocol import Store
from tests.clock import FakeClock
from tests.queue.life import enqueue

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
def test_what_cannot_be_asked_for_a_moment_is_asked_again(clock: FakeClock, error: QueuectlError) -> None:
    assert persist(clock, fails(20, error)) == "done"


def test_who_stays_away_is_given_up_after_ten_seconds(clock: FakeClock) -> None:
    began = clock.monotonic()
    with pytest.raises(StoreUnreachable):
        persist(clock, fails(10_000))
    assert clock.monotonic() - began == pytest.approx(PATIENCE, abs=0.2)


def test_nobody_is_patient_beyond_the_time_that_was_given(clock: FakeClock) -> None:
    began = clock.monotonic()
    with pytest.raises(StoreUnreachable):
        persist(clock, fails(10_000), until=began + 1)
    assert clock.monotonic() - began == pytest.approx(1, abs=0.2)


def test_what_may_have_been_done_is_not_done_again(clock: FakeClock) -> None:
    with pytest.raises(StoreUnreachable):
        persist(clock, fails(1, StoreUnreachable("postgresql://h/db", "cut", in_doubt=True)))


def test_what_time_does_not_heal_is_told_at_once(clock: FakeClock) -> None:
    began = clock.monotonic()
    with pytest.raises(StoreDamaged):
        persist(clock, fails(1, StoreDamaged("q.db", "torn")))
    assert clock.monotonic() == began


def test_a_patient_store_answers_as_the_store_does(store: Store, clock: FakeClock) -> None:
    enqueue(store, "a")
    bearing = patient(store, clock)
    assert [job.id for job in bearing.jobs()] == ["a"]
    assert bearing.get("a") == store.get("a")
    assert bearing.is_shared == store.is_shared


def test_a_wait_that_ends_while_the_store_is_away_has_waited_too_long(clock: FakeClock) -> None:
    class Away:
        def __getattr__(self, name: str) -> Callable[..., object]:
            return lambda *args, **kwargs: fails(1)()

    with pytest.raises(WaitTimeout):
        wait(Away(), clock, ["a"], timeout=3)  # type: ignore[arg-type]
