"""A second thread that looks after the runs while the worker's loop waits for the database.

The loop is one thread, and a database that hangs or is far away stops it: jobs would run past their time limits, a second
SIGTERM would have no effect, and slots would stay empty although there are claimed jobs for them. So the loop gives up the runs
(`away`) for each call of the store. If that takes longer than `GRACE`, this thread takes them over until the loop is back. Only
one of the two touches them at any moment.
"""

from __future__ import annotations

import math
import select
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple, Protocol

from queuectl.clock import Clock

GRACE: Final = 0.02  # most calls of a store that is near are over by then
LONGEST_WAIT: Final = 0.25


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
                early = since + GRACE - self._clock.monotonic()
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
                    wait_for_any(following.sources, max(0.0, min(following.seconds, LONGEST_WAIT)))


def wait_for_any(sources: Sequence[HasFileno], seconds: float) -> None:
    # Not select(), which cannot count beyond 1,023: we may have been started with as many descriptors.
    watch = select.poll()
    for source in sources:
        watch.register(source, select.POLLIN)
    watch.poll(math.ceil(seconds * 1000))
