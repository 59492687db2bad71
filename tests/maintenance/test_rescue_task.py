"""The maintenance task that rescues, on a real store: it may be stopped itself, at any moment, and must not take others for dead then."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest

from queuectl.config import Here, load_settings
from queuectl.jobs.model import Worker
from queuectl.maintenance.adoption import Adopter
from queuectl.maintenance.rescuer import RescueTask
from queuectl.paths import make_folders, make_home, store_file
from queuectl.store.sqlite.store import SqliteStore
from tests.clock import FakeClock
from tests.store.hands import Hands


class StoppedReader(SqliteStore):
    """A process that asks it for the workers is stopped for a while before it has the answer."""

    seconds = 0.0

    def workers(self, *, busy: bool = True) -> list[Worker]:
        assert isinstance(self.tx.clock, FakeClock)
        self.tx.clock.advance(self.seconds)
        return super().workers()


@pytest.fixture
def store(home: Path, clock: FakeClock) -> Iterator[StoppedReader]:
    make_home(str(home))
    make_folders(str(home))
    opened = StoppedReader(store_file(str(home)), clock=clock)
    yield opened
    opened.close()


def test_a_worker_that_is_stopped_during_a_check_takes_no_other_for_silent(
    home: Path, store: StoppedReader, clock: FakeClock
) -> None:
    hired = [Hands(store, home, name="me"), Hands(store, home, name="w1")]
    task = RescueTask(
        Adopter("me", str(home), deque()),
        Here("elsewhere", "elsewhere"),
        store=store,
        clock=clock,
        settings=lambda: load_settings({}, {}),
        emit=lambda _: None,
    )
    store.seconds = 60.0
    task.step(clock.monotonic())
    store.seconds = 0.0
    clock.advance(1)
    store.claims.heartbeat("me", slots=1, stopping=False)
    task.step(clock.monotonic())
    assert {worker.id: worker.state for worker in store.workers()} == {"me": "running", "w1": "running"}
    for hands in hired:
        hands.wakeup.close()
