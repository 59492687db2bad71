"""When the next waiting job comes due."""

from __future__ import annotations

from queuectl.clock import Clock


class Due:
    """By each clock: the monotonic one wakes us, and the wall clock may jump past it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.at: float | None = None
        self._at_ms: int | None = None

    def set(self, in_ms: int | None) -> None:
        self.at = None if in_ms is None else self._clock.monotonic() + in_ms / 1000
        self._at_ms = None if in_ms is None else self._clock.now_ms() + in_ms

    def take(self, now: float) -> bool:
        """Whether it has come, by the monotonic clock. Said once: who is told looks."""
        if self.at is None or now < self.at:
            return False
        self.at = None
        return True

    @property
    def is_past(self) -> bool:
        """By the wall clock."""
        return self._at_ms is not None and self._clock.now_ms() >= self._at_ms
