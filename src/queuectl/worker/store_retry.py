"""Calls of the store by a worker: what cannot be written now is kept and retried, and each reason is logged once.

The loop of a worker is one thread, and a database that hangs or is far away stops it: jobs would run past their time limits, a
second SIGTERM would have no effect, and slots would stay empty although there are claimed jobs for them. So the loop gives up the
runs (`Standby.away`) for each call of the store. If that takes longer than `STANDBY_AFTER`, a second thread takes them over until the
loop is back. Only one of the two touches them at any moment.
"""

from __future__ import annotations

import math
import select
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final, NamedTuple, Protocol, TypeVar

from queuectl import errors
from queuectl.clock import Clock
from queuectl.events import Sink, StoreRecovered, StoreTrouble

T = TypeVar("T")

RETRY_EVERY: Final = 0.1
LOG_AFTER: Final = 1.0  # a moment's contention between workers is not worth a line
START_PAUSES: Final = (1.0, 8.0)  # the first and the longest
QUIET_AFTER: Final = 60.0  # a problem that was absent for this long is logged again
STANDBY_AFTER: Final = 0.02  # most calls of a store that is near are over by then
MAX_STANDBY_WAIT: Final = 0.25


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
    """Every call of the store by the worker goes through here. `away` is the context in which it is made, see `Standby.away`."""

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


# ── the standby thread ──────────────────────────────────────────────────────────────────────────────────────────────


class HasFileno(Protocol):
    def fileno(self) -> int: ...


class NextTurn(NamedTuple):
    """When to take the next turn: as soon as one of the sources is readable, and after `seconds` at the latest."""

    sources: Sequence[HasFileno]
    seconds: float


class Standby:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._runs_lock = threading.Lock()  # held by the thread that may touch the runs
        self._was_called = threading.Event()
        self._away_since: float | None = None
        self._is_serving = False
        self._failure: BaseException | None = None

    @contextmanager
    def serving(self, turn: Callable[[], NextTurn]) -> Iterator[None]:
        """Within this context `turn` is called again and again whenever the calling thread is away for long."""
        self._runs_lock.acquire()
        self._is_serving = True
        try:
            threading.Thread(target=self._serve, args=(turn,), name="standby", daemon=True).start()
        except RuntimeError:  # the limit of processes is reached: the loop works alone
            self._is_serving = False
        try:
            yield
        finally:
            # The lock stays taken: a turn that is about to begin does not.
            self._is_serving = False
            self._was_called.set()

    @contextmanager
    def away(self) -> Iterator[None]:
        """The calling thread waits for the database and does not touch the runs. Raises what a turn has raised meanwhile."""
        if not self._is_serving or self._away_since is not None:
            yield
            return
        self._away_since = self._clock.monotonic()
        if not self._was_called.is_set():
            self._was_called.set()
        self._runs_lock.release()
        try:
            yield
        finally:
            self._away_since = None
            self._runs_lock.acquire()
        if self._failure is not None:
            raise self._failure

    def _serve(self, turn: Callable[[], NextTurn]) -> None:
        while self._is_serving:
            self._was_called.wait()
            self._was_called.clear()
            while self._failure is None and (since := self._away_since) is not None:
                early = since + STANDBY_AFTER - self._clock.monotonic()
                if early > 0:
                    self._clock.sleep(early)
                elif self._runs_lock.acquire(blocking=False):  # else the loop is back
                    try:
                        following = turn()
                    except BaseException as exc:  # noqa: BLE001 - raised again by the loop, which can deal with it
                        self._failure = exc
                        break
                    finally:
                        self._runs_lock.release()
                    wait_for_any(following.sources, max(0.0, min(following.seconds, MAX_STANDBY_WAIT)))


def wait_for_any(sources: Sequence[HasFileno], seconds: float) -> list[HasFileno]:
    """Wait until one is readable, at most for this many seconds. Returns those that are."""
    # Not select(), which cannot count beyond 1,023: we may have been started with as many descriptors.
    watch, by_fd = select.poll(), {source.fileno(): source for source in sources}
    for fd in by_fd:
        watch.register(fd, select.POLLIN)
    return [by_fd[fd] for fd, _ in watch.poll(math.ceil(seconds * 1000))]
