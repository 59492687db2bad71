"""When the store or a file cannot be used now: keep what is to be written, retry, and log each reason once."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Final, TypeVar

from queuectl import errors
from queuectl.clock import Clock
from queuectl.events import Sink, StoreRecovered, StoreTrouble

T = TypeVar("T")

RETRY_EVERY: Final = 0.1
LOG_AFTER: Final = 1.0  # a moment's contention between workers is not worth a line
START_PAUSES: Final = (1.0, 8.0)  # the first and the longest
QUIET_AFTER: Final = 60.0  # a problem that was absent for this long is logged again


class RefusalReporter:
    """Errors of the operating system: each is logged once, and again only after a time without it. A store that answers does not end
    them, since it may not need what is missing."""

    def __init__(self, clock: Clock, emit: Sink) -> None:
        self._clock = clock
        self._emit = emit
        self._seen: dict[int | None, float] = {}

    def report(self, exc: OSError) -> errors.SystemRefused:
        refused, now = errors.SystemRefused(exc), self._clock.monotonic()
        if now - self._seen.get(exc.errno, -math.inf) > QUIET_AFTER:
            self._emit(StoreTrouble(refused.message))
        self._seen[exc.errno] = now
        return refused


class StartPause:
    """No claims while a file that jobs need cannot be written or read: each would be a run in the history of a job."""

    def __init__(self, clock: Clock, emit: Sink) -> None:
        self.until = 0.0
        self._clock = clock
        self._emit = emit
        self._next, self._longest = START_PAUSES

    def begin(self, problem: str) -> None:
        now = self._clock.monotonic()
        if now >= self.until:  # once for all that were to start together
            self._emit(StoreTrouble(problem))
            self.until = now + self._next
            self._next = min(2 * self._next, self._longest)

    def end(self) -> None:
        self._next, _ = START_PAUSES


class StoreRetry:
    """Every call of the store by the worker goes through here. `away` is the context in which it is made, see standby.py."""

    def __init__(
        self, clock: Clock, emit: Sink, *, away: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> None:
        self._clock = clock
        self._emit = emit
        self._away = away
        self._since: float | None = None
        self._logged: set[str] = set()  # codes: the lock of yesterday may hide that the disk is full today
        self._refusals = RefusalReporter(clock, emit)
        self.last: errors.Unavailable | None = None

    def write(self, action: Callable[[], T]) -> T | None:
        """What `action` returns, or None if the store cannot serve now: then retry later."""
        result = self.read(action)
        if result is not None and not self.is_outdated:
            if self._logged:
                self._emit(StoreRecovered())
                self._logged.clear()
            self._since = self.last = None
        return result

    def read(self, action: Callable[[], T]) -> T | None:
        """The same for what only reads: that may succeed while nothing can be written, so it does not count as a recovery."""
        with self._away():
            try:
                return action()
            except errors.Unavailable as exc:
                self._note(exc)
            except OSError as exc:  # of one of our files: no reason to abandon running jobs
                refused = self._refusals.report(exc)
                if not self.is_fatal:
                    self.last = refused
        return None

    @property
    def is_fatal(self) -> bool:
        """Whether waiting cannot help: the store is gone, or is another one."""
        return isinstance(self.last, errors.StoreGone | errors.StoreDamaged | errors.StoreForeign | errors.StoreTooNew)

    @property
    def is_outdated(self) -> bool:
        """Whether a newer queuectl has changed the store. That it still accepts our writes does not matter."""
        return isinstance(self.last, errors.StoreTooNew)

    def _note(self, exc: errors.Unavailable) -> None:
        if self.is_outdated:
            return
        now = self._clock.monotonic()
        self._since = now if self._since is None else self._since
        self.last = exc
        if exc.code not in self._logged and (self.is_fatal or now - self._since >= LOG_AFTER):
            self._logged.add(exc.code)
            self._emit(StoreTrouble(exc.message))
