"""Waiting for workers to begin anew, as the store tells it; nobody here is a real process."""

from __future__ import annotations

from pathlib import Path

import pytest

from queuectl.queue.restart import GONE_AFTER, restart_workers
from queuectl.store.protocol import Store
from tests.clock import FakeClock
from tests.queue.life import register


@pytest.mark.parametrize("away, done", [(1.0, ["w1"]), (2 * GONE_AFTER, [])], ids=["for a moment", "for good"])
def test_a_worker_whose_name_is_forgotten_while_it_begins_has_not_ended(
    store: Store, home: Path, clock: FakeClock, away: float, done: list[str]
) -> None:
    register(store, home)
    workers = store.workers()
    store.retire("w1")  # as by the one that begins: it deals with what it was before
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
