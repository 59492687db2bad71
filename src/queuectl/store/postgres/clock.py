"""The clock of the database, without asking for it at every turn.

All machines of a store go by one clock, the server's: a worker whose own is an hour off neither steals nor starves. It is
read at connect and at every heartbeat; between two readings our *monotonic* clock carries it on, which nobody sets.
"""

from __future__ import annotations

from collections.abc import Callable

from queuectl.clock import Clock, SystemClock


class DatabaseClock:
    """A `queuectl.clock.Clock` whose wall clock is the server's. `now_ms` is of no use before the first `set_by`."""

    def __init__(self, own: Clock | None = None) -> None:
        self._own = own or SystemClock()
        self._offset_ms: float | None = None

    def now_ms(self) -> int:
        if self._offset_ms is None:
            # Before the first connection there is nothing to go by, and nothing to write either.
            return self._own.now_ms()
        return int(self._own.monotonic() * 1000 + self._offset_ms)

    def monotonic(self) -> float:
        return self._own.monotonic()

    def sleep(self, seconds: float) -> None:
        self._own.sleep(seconds)

    def set_by(self, ask: Callable[[], int]) -> None:
        """Read the server's clock: `ask` returns its milliseconds."""
        before = self._own.monotonic()
        server_ms = ask()
        after = self._own.monotonic()
        # The server looked at its clock at some moment in between: half of that time is how wrong this can be. What
        # differs by no more is left alone: time should not tremble at every heartbeat.
        doubt_ms = (after - before) * 1000 / 2
        offset_ms = server_ms - (before * 1000 + doubt_ms)
        if self._offset_ms is None or abs(offset_ms - self._offset_ms) > doubt_ms + 1:
            self._offset_ms = offset_ms
