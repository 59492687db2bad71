"""Database access beside an event loop: threads with a session each. The core is synchronous, and a store belongs to one thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

from queuectl.client import Queue
from queuectl.clock import CancellableClock, Cancelled, Clock
from queuectl.errors import QueuectlError, Unavailable
from queuectl.jobs.model import Worker
from queuectl.settings import Settings
from queuectl.store.open import store_exists
from queuectl.store.protocol import Reads, Store


class StoreSession(Queue):
    """The `Queue` of one thread, with its internals for the dashboard and `top`."""

    @property
    def reads(self) -> Reads:
        return self._open_reads()

    def open_store(self) -> Store:
        return self._open_store()

    @property
    def settings(self) -> Settings:
        return self._settings()

    @property
    def home(self) -> str:
        return self._home

    @property
    def db(self) -> str | None:
        return self._db

    @property
    def has_store(self) -> bool:
        return (self._store or self._reads) is not None or store_exists(self._home, self._db)

    @property
    def clock(self) -> Clock:
        return self._clock

    def rescue(self) -> None:
        self._rescue()

    def is_serving(self) -> Callable[[Worker], bool]:
        return self._is_serving()


T = TypeVar("T")
Session = TypeVar("Session", bound=StoreSession)


class StorePool(Generic[Session]):
    """A thread pool. Each thread opens a store session when it first needs one, and keeps it."""

    def __init__(self, make: Callable[[Clock], Session], *, size: int = 1, name: str = "store") -> None:
        self._make = make
        self._stopped = threading.Event()
        self._is_closed = False
        self._local = threading.local()
        self._threads = ThreadPoolExecutor(size, thread_name_prefix=name)

    async def ask(self, work: Callable[[Session], T]) -> T:
        """Run `work` in a thread. Raises Cancelled if the pool is closed meanwhile."""
        if self._is_closed:
            raise Cancelled
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._answer, work)
        except asyncio.CancelledError:
            if self._is_closed:  # before the work started
                raise Cancelled from None
            raise

    def _answer(self, work: Callable[[Session], T]) -> T:
        session: Session | None = getattr(self._local, "session", None)
        if session is None:
            session = self._local.session = self._make(CancellableClock(self._stopped))
        try:
            return work(session)
        except Exception as error:
            if isinstance(error, Unavailable) or not isinstance(error, QueuectlError):
                session.close()  # the next request connects again
            raise

    def stop_waiting(self) -> None:
        """Cancel work that sleeps, now or later."""
        self._stopped.set()

    def close(self, *, wait: bool = True) -> None:
        self.stop_waiting()
        self._is_closed = True
        self._threads.shutdown(wait=wait, cancel_futures=True)

    def leave(self) -> Future[None]:
        """Close a pool of one thread without blocking. The future is done when its session is closed."""
        self.stop_waiting()
        self._is_closed = True
        done = self._threads.submit(self._close_session)
        self._threads.shutdown(wait=False)
        return done

    def _close_session(self) -> None:
        session: Session | None = getattr(self._local, "session", None)
        if session is not None:
            session.close()
