"""The duty that looks once a minute, on a real store with a clock of the test's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from queuectl.errors import StoreBusy, StoreRefused
from queuectl.events import Event, StoreTrouble
from queuectl.jobs.stats import Span
from queuectl.maintenance.sample import BUSY_PAUSE, UNABLE_PAUSE, SampleDuty
from queuectl.store.sqlite.connection import MEMORY
from queuectl.store.sqlite.store import SqliteStore
from tests.clock import FakeClock


@pytest.fixture
def store(clock: FakeClock) -> Iterator[SqliteStore]:
    opened = SqliteStore(MEMORY, clock=clock)
    yield opened
    opened.close()


def test_it_looks_at_the_beginning_of_every_minute(store: SqliteStore, clock: FakeClock) -> None:
    duty = SampleDuty(store=store, emit=[].append)
    for _ in range(5):
        again = duty.step(clock.monotonic())
        assert 0 < again - clock.monotonic() <= 60
        clock.advance(again - clock.monotonic())
        assert clock.now_ms() % 60_000 == 0
    assert len(store.points(Span.MINUTE, since_ms=0)) == 5


class Unable:
    """A store that does not let us write."""

    def __init__(self, trouble: Exception) -> None:
        self._trouble = trouble

    def sample(self) -> bool:
        raise self._trouble


def test_a_store_that_is_busy_is_asked_again_soon() -> None:
    events: list[Event] = []
    duty = SampleDuty(store=Unable(StoreBusy("x", 1)), emit=events.append)  # type: ignore[arg-type]
    assert duty.step(5.0) == 5.0 + BUSY_PAUSE
    assert events == []


def test_a_right_that_is_missing_is_said_once_and_is_no_trouble_of_the_worker() -> None:
    events: list[Event] = []
    refused = StoreRefused("x", "permission denied for table points")
    duty = SampleDuty(store=Unable(refused), emit=events.append)  # type: ignore[arg-type]
    assert [duty.step(5.0), duty.step(9.0)] == [5.0 + UNABLE_PAUSE, 9.0 + UNABLE_PAUSE]
    assert events == [StoreTrouble(refused.message)]
