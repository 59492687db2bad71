"""Not knocking at a closed door all the time: pauses between attempts that grow, and differ between those who wait."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final, TypeVar

from queuectl import errors
from queuectl.clock import SystemClock

T = TypeVar("T")

FIRST: Final = 0.1
LONGEST: Final = 5.0


class Pause:
    monotonic = staticmethod(SystemClock().monotonic)

    def __init__(self) -> None:
        self._seconds = FIRST
        self._until = 0.0
        self._failure: errors.Unavailable | None = None

    def attempt(self, act: Callable[[], T]) -> T:
        """Do it, or raise what came of the last attempt while its pause lasts."""
        if self._failure is not None and self.monotonic() < self._until:
            raise self._failure
        try:
            done = act()
        except errors.Unavailable as exc:
            self._failure = exc
            # A thousand workers that lost their server at one moment must not all come back at one moment.
            self._until = self.monotonic() + self._seconds * random.uniform(0.5, 1.0)
            self._seconds = min(2 * self._seconds, LONGEST)
            raise
        self._seconds, self._failure = FIRST, None
        return done
