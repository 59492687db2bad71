"""The thread that looks after the runs while the loop waits for the database."""

from __future__ import annotations

import threading

import pytest

from queuectl.clock import SystemClock
from queuectl.worker.store_retry import NextTurn, Standby
from tests.wait import wait_until


class Turns:
    """Counts the turns of the second thread, and lets a test hold one up."""

    def __init__(self) -> None:
        self.count = 0
        self.may_end = threading.Event()
        self.may_end.set()
        self.failure: Exception | None = None

    def __call__(self) -> NextTurn:
        self.count += 1
        assert self.may_end.wait(20)
        if self.failure is not None:
            raise self.failure
        return NextTurn((), 0.01)


@pytest.fixture
def turns() -> Turns:
    return Turns()


@pytest.fixture
def standby() -> Standby:
    return Standby(SystemClock())


def test_turns_are_taken_as_long_as_the_loop_is_away(standby: Standby, turns: Turns) -> None:
    with standby.serving(turns), standby.away():
        wait_until(lambda: turns.count >= 3, what="three turns")


def test_no_turn_is_taken_while_the_loop_is_there(standby: Standby, turns: Turns) -> None:
    with standby.serving(turns):
        with standby.away():
            wait_until(lambda: turns.count, what="a turn")
        before = turns.count
        with pytest.raises(AssertionError):
            wait_until(lambda: turns.count > before, timeout=0.2)


def test_the_loop_waits_for_the_end_of_a_turn(standby: Standby, turns: Turns) -> None:
    events: list[str] = []

    def end_turn() -> None:
        events.append("turn")
        turns.may_end.set()

    with standby.serving(turns):
        turns.may_end.clear()
        with standby.away():
            wait_until(lambda: turns.count, what="a turn")
            timer = threading.Timer(0.1, end_turn)
            timer.start()
        events.append("loop")
        timer.join()
    assert events == ["turn", "loop"]


def test_what_goes_wrong_in_a_turn_is_raised_by_the_loop(standby: Standby, turns: Turns) -> None:
    turns.failure = LookupError("the supervisor is gone")
    with pytest.raises(LookupError), standby.serving(turns), standby.away():
        wait_until(lambda: turns.count, what="a turn")


def test_without_the_thread_nothing_happens(standby: Standby) -> None:
    with standby.away():
        pass
