"""Threads for database access, each with its own session, so that a slow database never blocks the screen."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Final, TypeVar

from queuectl.client import Queue
from queuectl.clock import CancellableClock, Cancelled
from queuectl.config import host_name
from queuectl.errors import StoreGone, Unavailable
from queuectl.jobs.model import Worker
from queuectl.store.open import store_exists, store_path, store_shown
from queuectl.store.protocol import Reads

T = TypeVar("T")

SHUTDOWN_SECONDS: Final = 1.0  # how long quitting waits for work in progress


class StoreSession(Queue):
    """Exposes the internals of `Queue` to the view."""

    def __init__(self, home: str, db: str | None, clock: CancellableClock) -> None:
        super().__init__(home, db, clock=clock, trust_home=True)  # the command has checked it
        self.clock = clock
        self.host = host_name()
        self._was_there = False

    @property
    def store_name(self) -> str:
        """The address of the database, without its password."""
        return store_shown(self._home, self._db) or store_path(self._home, self._db)

    def find(self) -> Reads | None:
        """The database; None if it does not exist yet. Raises StoreGone if it existed before: an empty screen would be wrong."""
        is_open = self._store is not None or self._reads is not None
        if not is_open and not store_exists(self._home, self._db):
            if self._was_there:
                raise StoreGone(self.store_name)
            return None
        self._was_there = True
        return self._open_reads()

    def is_serving(self) -> Callable[[Worker], bool]:
        return self._is_serving()


class StoreThread:
    """A thread with a store session of its own."""

    def __init__(self, home: str, db: str | None) -> None:
        self.clock = CancellableClock(threading.Event())
        self._session = StoreSession(home, db, self.clock)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")

    async def ask(self, work: Callable[[StoreSession], T]) -> T:
        """Raise Cancelled if the thread was closed meanwhile."""
        if self.clock.left.is_set():
            raise Cancelled
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._answer, work)
        except asyncio.CancelledError:
            if self.clock.left.is_set():  # it had not started when the thread was closed
                raise Cancelled from None
            raise

    def _answer(self, work: Callable[[StoreSession], T]) -> T:
        try:
            return work(self._session)
        except Unavailable:
            self._session.close()  # the next call connects again
            raise

    def close(self) -> Future[None]:
        """Close the thread. The future is done when the thread has closed its session."""
        self.clock.left.set()
        done = self._thread.submit(self._session.close)
        self._thread.shutdown(wait=False)
        return done


class StoreThreads:
    """All threads of the view: one for reads, one for actions, and one for each long operation, such as following a log.

    Actions run in the order of the keys: two concurrent changes of a priority would both start from the same value.
    """

    def __init__(self, home: str, db: str | None) -> None:
        self._home, self._db = home, db
        self._open: set[StoreThread] = set()
        self._closing: set[Future[None]] = set()
        self.reads, self.actions = self.open(), self.open()

    def open(self) -> StoreThread:
        thread = StoreThread(self._home, self._db)
        self._open.add(thread)
        return thread

    def shut(self, thread: StoreThread) -> None:
        self._open.discard(thread)
        done = thread.close()
        self._closing.add(done)
        done.add_done_callback(self._closing.discard)

    async def act_apart(self, work: Callable[[StoreSession], T]) -> T:
        """Run in a separate thread: other actions do not wait for it."""
        thread = self.open()
        try:
            return await thread.ask(work)
        finally:
            self.shut(thread)

    def close(self) -> None:
        for thread in list(self._open):
            self.shut(thread)
        wait(list(self._closing), timeout=SHUTDOWN_SECONDS)
