"""Whose clock? The database's, on every machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from queuectl.clock import SystemClock
from queuectl.store.postgres.session import DatabaseClock
from queuectl.store.postgres.store import PostgresStore
from queuectl.units import to_ms
from tests.clock import FakeClock
from tests.factories import new_job
from tests.store.hands import Hands
from tests.store.postgres.conftest import Open

HOUR_MS = 3_600_000
MINUTE_MS = 60_000  # a busy host may need seconds from one statement to the next


class Wrong(SystemClock):
    """The clock of a machine with a wrong time."""

    __slots__ = ("_by_ms",)

    def __init__(self, by_ms: int) -> None:
        self._by_ms = by_ms

    def now_ms(self) -> int:
        return super().now_ms() + self._by_ms


@pytest.mark.parametrize("by_ms", [HOUR_MS, -HOUR_MS])
def test_a_machine_whose_clock_is_an_hour_off_does_no_harm(open_pg: Open, home: Path, by_ms: int) -> None:
    right, wrong = open_pg(), open_pg(DatabaseClock(Wrong(by_ms)))
    assert abs(wrong.tx.clock.now_ms() - right.tx.clock.now_ms()) < MINUTE_MS
    right.enqueue([new_job("later", delay_ms=600_000), new_job("now")])
    wrong.enqueue([new_job("of-the-wrong", delay_ms=600_000)])
    assert abs(to_ms(right.get("later").run_at) - to_ms(right.get("of-the-wrong").run_at)) < MINUTE_MS
    hands = Hands(wrong, home)
    assert [claim.id for claim in hands.claim(9)] == ["now"]
    assert abs(to_ms(right.workers()[0].heartbeat_at) - right.tx.clock.now_ms()) < MINUTE_MS
    hands.wakeup.close()


def test_time_goes_on_between_two_readings() -> None:
    own = FakeClock()
    clock = DatabaseClock(own)
    clock.set_by(lambda: 5_000)
    own.advance(2.5)
    own.jump(-3600)
    assert clock.now_ms() == 7_500


def test_a_reading_within_its_own_doubt_changes_nothing() -> None:
    own = FakeClock()
    clock = DatabaseClock(own)
    clock.set_by(lambda: 5_000)

    def slowly(answer: int) -> int:
        own.advance(0.1)
        return answer

    clock.set_by(lambda: slowly(5_020))
    assert clock.now_ms() == 5_100
    clock.set_by(lambda: slowly(9_000))
    assert clock.now_ms() == 9_050


def test_the_clock_is_read_again_at_every_heartbeat(store: PostgresStore, open_pg: Open, home: Path) -> None:
    own = FakeClock()
    clock = DatabaseClock(own)
    slept = open_pg(clock)
    before = clock.now_ms()
    clock._offset_ms = (clock._offset_ms or 0) - HOUR_MS  # as after a suspend, when the monotonic clock stood still
    slept.claims.heartbeat("w1", slots=1, stopping=False)
    assert clock.now_ms() >= before
