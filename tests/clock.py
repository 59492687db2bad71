"""A clock that a test controls."""

from __future__ import annotations

from datetime import timedelta

START_MS = 1_767_323_045_000  # 2026-01-02T03:04:05Z


class FakeClock:
    """A `queuectl.clock.Clock`. `sleep` returns at once and advances the clock."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self._now_ms = now_ms
        self._monotonic = 1000.0

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic(self) -> float:
        return self._monotonic

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, by: float | timedelta) -> None:
        """Advance both clocks, by seconds if it is a number."""
        seconds = by.total_seconds() if isinstance(by, timedelta) else by
        assert seconds >= 0, "time does not go back; jump() sets the wall clock"
        self._monotonic += seconds
        self._now_ms += round(seconds * 1000)

    def jump(self, by: float | timedelta) -> None:
        """Set the wall clock forward or back without advancing the monotonic clock."""
        seconds = by.total_seconds() if isinstance(by, timedelta) else by
        self._now_ms += round(seconds * 1000)
