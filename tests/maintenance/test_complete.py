"""What is forgotten by the hour."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from queuectl.config import load_settings
from queuectl.jobs.audit import Act, Actor
from queuectl.maintenance.complete import EVERY, FORGET_AT_ONCE, FORGET_EVERY, CompleteDuty
from queuectl.store.open import open_store
from queuectl.store.protocol import Store
from tests.clock import FakeClock

ALICE = Actor(1000, "alice", "box", "queuectl")


@pytest.fixture
def store(home: Path, clock: FakeClock) -> Iterator[Store]:
    store = open_store(str(home), None, clock)
    store.actor = ALICE
    yield store
    store.close()


def test_what_was_recorded_long_ago_is_forgotten_some_at_a_time(store: Store, clock: FakeClock) -> None:
    for _ in range(FORGET_AT_ONCE + 1):
        store.note(Act("test", ["x"]))
    clock.advance(2 * 24 * 3600)
    store.note(Act("test", ["x"]))
    duty = CompleteDuty(store, lambda: load_settings({"retain-audit": "1d"}, {}), by=ALICE)
    assert duty.step(0.0) == EVERY
    assert next(store.audit()).seq == FORGET_AT_ONCE + 1
    duty.step(EVERY)
    assert next(store.audit()).seq == FORGET_AT_ONCE + 2
    duty.step(2 * EVERY)
    assert len(list(store.audit())) == 3  # the new one, and two that say what was forgotten


@pytest.mark.parametrize("settings", [{"retain-audit": "forever"}, {"retain-audit": "soon"}])
def test_nothing_is_forgotten_unless_it_is_known_for_how_long(
    store: Store, clock: FakeClock, settings: dict[str, str]
) -> None:
    store.note(Act("test", ["x"]))
    clock.advance(1000 * 24 * 3600)
    duty = CompleteDuty(store, lambda: load_settings(settings, {}), by=ALICE)
    duty.step(0.0)
    duty.step(FORGET_EVERY)
    assert [entry.seq for entry in store.audit()] == [1]
