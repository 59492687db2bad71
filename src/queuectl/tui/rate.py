"""How many jobs are completed in a time, from what is seen of a count that only grows."""

from __future__ import annotations

from collections import deque
from typing import Final

WINDOW: Final = 60.0
LEAST: Final = 1.0  # seconds after which there is something to say


class Rate:
    """Of the last minute, or as much of it as was watched. In bounded memory: at most two samples a second are kept."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque(maxlen=2 * int(WINDOW) + 2)
        self._last: tuple[float, int] | None = None

    def see(self, at: float, count: int) -> None:
        """`at`: by the monotonic clock."""
        if self._last is not None and count < self._last[1]:
            self._seen.clear()  # another store, or one that was reset
        self._last = (at, count)
        if not self._seen or at - self._seen[-1][0] >= 0.5:
            self._seen.append(self._last)
        while len(self._seen) > 1 and at - self._seen[1][0] >= WINDOW:
            self._seen.popleft()

    @property
    def per_second(self) -> float | None:
        if self._last is None or not self._seen:
            return None
        (began, first), (at, count) = self._seen[0], self._last
        return (count - first) / (at - began) if at - began >= LEAST else None

    def __str__(self) -> str:
        rate = self.per_second
        if rate is None:
            return "…"
        if rate >= 10:
            return f"{rate:,.0f}/s"
        return f"{rate:.1f}/s" if rate >= 1 else f"{rate * 60:.0f}/min"
