"""The duty of rescue, on a real store: who watches may itself be stopped, at any moment, and must not blame others for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest

from queuectl.config import Here, load_settings
from queuectl.jobs.model import Worker
from queuectl.maintenance.adoption import Heir
from queuectl.maintenance.rescue import RescueDuty
from queuectl.paths import make_folders, make_home, store_file
from queuectl.store.sqlite.store import SqliteStore
from tests.clock import FakeClock
from tests.store.hands import Hands


class Stopped(SqliteStore):
    """Whoever asks it for the workers is stopped for a while, before it has the answer."""

    seconds = 0.0

    def workers(self, *, busy: bool = True) -> list[Worker]:
        assert isinstance(self.parts.tx.clock, FakeClock)
        self.parts.tx.clock.advance(self.seconds)
        return super().workers()


@pytest.fixture
def store(home: Path, clock: FakeClock) -> Iterator[Stopped]:
    make_home(str(home))
    make_folders(str(home))
    opened = Stopped(store_file(str(home)), clock=clock)
    yield opened
    opened.close()


def test_who_is_stopped_while_it_looks_takes_nobody_for_silent(home: Path, store: Stopped, clock: FakeClock) -> None:
    hired = [Hands(store, home, name="me"), Hands(store, home, name="w1")]
    duty = RescueDuty(
        Heir("me", str(home), deque()),
        Here("elsewhere", "elsewhere"),
        store=store,
        clock=clock,
        settings=lambda: load_settings({}, {}),
        emit=lambda _: None,
    )
    store.seconds = 60.0
    duty.step(clock.monotonic())
    store.seconds = 0.0
    clock.advance(1)
    store.heartbeat("me", slots=1, stopping=False)
    duty.step(clock.monotonic())
    assert {worker.id: worker.state for worker in store.workers()} == {"me": "running", "w1": "running"}
    for hands in hired:
        hands.wakeup.close()
