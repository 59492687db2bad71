"""Periodic tasks on a real store, with a clock of the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from queuectl.config import load_settings
from queuectl.errors import StoreBusy, StoreRefused
from queuectl.events import Event, StoreTrouble
from queuectl.jobs.audit import Act, Actor
from queuectl.jobs.stats import Span
from queuectl.maintenance.store_tasks import (
    COMPLETE_EVERY,
    FORGET_BATCH_SIZE,
    FORGET_EVERY,
    RETRY_BUSY_AFTER,
    RETRY_FAILED_AFTER,
    BatchCompletionTask,
    SampleTask,
)
from queuectl.store.open import open_store
from queuectl.store.store import Store
from tests.clock import FakeClock

ALICE = Actor(1000, "alice", "box", "queuectl")


@pytest.fixture
def store(home: Path, clock: FakeClock) -> Iterator[Store]:
    store = open_store(str(home), None, clock)
    store.actor = ALICE
    yield store
    store.close()


def test_old_audit_records_are_removed_in_batches(store: Store, clock: FakeClock) -> None:
    for _ in range(FORGET_BATCH_SIZE + 1):
        store.audit.add(Act("test", ["x"]))
    clock.advance(2 * 24 * 3600)
    store.audit.add(Act("test", ["x"]))
    task = BatchCompletionTask(store, lambda: load_settings({"retain-audit": "1d"}, {}), by=ALICE)
    assert task.step(0.0) == COMPLETE_EVERY
    assert next(store.audit.entries()).seq == FORGET_BATCH_SIZE + 1
    task.step(COMPLETE_EVERY)
    assert next(store.audit.entries()).seq == FORGET_BATCH_SIZE + 2
    task.step(2 * COMPLETE_EVERY)
    assert len(list(store.audit.entries())) == 3  # the new one, and two that record the removals


@pytest.mark.parametrize("settings", [{"retain-audit": "forever"}, {"retain-audit": "soon"}])
def test_audit_records_stay_without_a_valid_retention_time(
    store: Store, clock: FakeClock, settings: dict[str, str]
) -> None:
    store.audit.add(Act("test", ["x"]))
    clock.advance(1000 * 24 * 3600)
    task = BatchCompletionTask(store, lambda: load_settings(settings, {}), by=ALICE)
    task.step(0.0)
    task.step(FORGET_EVERY)
    assert [entry.seq for entry in store.audit.entries()] == [1]


def test_counters_are_sampled_at_the_beginning_of_every_minute(store: Store, clock: FakeClock) -> None:
    task = SampleTask(store=store, emit=[].append)
    for _ in range(5):
        again = task.step(clock.monotonic())
        assert 0 < again - clock.monotonic() <= 60
        clock.advance(again - clock.monotonic())
        assert clock.now_ms() % 60_000 == 0
    assert len(store.samples.points(Span.MINUTE, since_ms=0)) == 5


class Unable:
    """A store that does not let us write."""

    def __init__(self, trouble: Exception) -> None:
        self._trouble = trouble
        self.samples = self

    def record(self) -> bool:
        raise self._trouble


def test_a_sample_is_retried_soon_if_the_store_is_busy() -> None:
    events: list[Event] = []
    task = SampleTask(store=Unable(StoreBusy("x", 1)), emit=events.append)  # type: ignore[arg-type]
    assert task.step(5.0) == 5.0 + RETRY_BUSY_AFTER
    assert events == []


def test_a_missing_permission_is_reported_once_and_is_not_raised() -> None:
    events: list[Event] = []
    refused = StoreRefused("x", "permission denied for table points")
    task = SampleTask(store=Unable(refused), emit=events.append)  # type: ignore[arg-type]
    assert [task.step(5.0), task.step(9.0)] == [5.0 + RETRY_FAILED_AFTER, 9.0 + RETRY_FAILED_AFTER]
    assert events == [StoreTrouble(refused.message)]
