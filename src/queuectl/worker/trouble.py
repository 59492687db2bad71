"""When the store cannot be reached: keep what is to be written, try again, and say so, once for each reason."""

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
SAY_SO_AFTER: Final = 1.0  # a moment's contention between workers is not worth a line
LOG_PAUSES: Final = (1.0, 8.0)  # the first and the longest
PEACE: Final = 60.0  # after so long it is news again


class Refusals:
    """What the system refuses us: said once for each reason, and again only after a time without it. Not ended by the store's
    doing well, which does not need what is missing."""

    def __init__(self, clock: Clock, emit: Sink) -> None:
        self._clock = clock
        self._emit = emit
        self._seen: dict[int | None, float] = {}

    def note(self, exc: OSError) -> errors.SystemRefused:
        refused, now = errors.SystemRefused(exc), self._clock.monotonic()
        if now - self._seen.get(exc.errno, -math.inf) > PEACE:
            self._emit(StoreTrouble(refused.message))
        self._seen[exc.errno] = now
        return refused


class LogPause:
    """While logs cannot be written nothing is claimed: each attempt would be a run in the history of a job."""

    def __init__(self, clock: Clock, emit: Sink) -> None:
        self.until = 0.0
        self._clock = clock
        self._emit = emit
        self._next, self._longest = LOG_PAUSES

    def begin(self, problem: str) -> None:
        now = self._clock.monotonic()
        if now >= self.until:  # once for all that were to begin together
            self._emit(StoreTrouble(problem))
            self.until = now + self._next
            self._next = min(2 * self._next, self._longest)

    def end(self) -> None:
        self._next, _ = LOG_PAUSES


class Trouble:
    """Every call of the store goes through here. `away` is the context in which it is made, see standby.py."""

    def __init__(
        self, clock: Clock, emit: Sink, *, away: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> None:
        self._clock = clock
        self._emit = emit
        self._away = away
        self._since: float | None = None
        self._said: set[str] = set()  # codes: the lock of yesterday may hide that the disk is full today
        self._refusals = Refusals(clock, emit)
        self.last: errors.Unavailable | None = None

    def attempt(self, write: Callable[[], T]) -> T | None:
        """What `write` returns, or None if the store cannot serve now: then try again later."""
        result = self.ask(write)
        if result is not None and not self.is_outdated:
            if self._said:
                self._emit(StoreRecovered())
                self._said.clear()
            self._since = self.last = None
        return result

    def ask(self, read: Callable[[], T]) -> T | None:
        """The same for what only looks: that may well succeed while nothing can be written, so it ends no trouble."""
        with self._away():
            try:
                return read()
            except errors.Unavailable as exc:
                self._note(exc)
            except OSError as exc:  # of a file of ours: no reason to leave the jobs that run
                refused = self._refusals.note(exc)
                if not self.is_fatal:
                    self.last = refused
        return None

    @property
    def is_fatal(self) -> bool:
        """Whether waiting cannot help: the store is gone, or not what it was."""
        return isinstance(self.last, errors.StoreGone | errors.StoreDamaged | errors.StoreForeign | errors.StoreTooNew)

    @property
    def is_outdated(self) -> bool:
        """Whether a newer queuectl has changed the store. That it still takes what we write changes nothing about it."""
        return isinstance(self.last, errors.StoreTooNew)

    def _note(self, exc: errors.Unavailable) -> None:
        if self.is_outdated:
            return
        now = self._clock.monotonic()
        self._since = now if self._since is None else self._since
        self.last = exc
        if exc.code not in self._said and (self.is_fatal or now - self._since >= SAY_SO_AFTER):
            self._said.add(exc.code)
            self._emit(StoreTrouble(exc.message))
