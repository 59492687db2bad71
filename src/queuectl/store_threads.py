"""Database access beside an event loop, for the dashboard and `top`: threads with a session each. The core is synchronous, and a
store belongs to one thread.

The dashboard has several pools. Requests that only read and requests that change something use different ones, so that a client with
a read token cannot hold up the changes of others. Requests that may wait long (for a job, a log, a receiver) have pools of their own
as well. Every pool is bounded, and so is the number of connections to a PostgreSQL server.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Generic, Self, TypeVar

from queuectl.client import Queue
from queuectl.clock import CancellableClock, Cancelled, Clock
from queuectl.errors import QueuectlError, Unavailable
from queuectl.jobs.model import BulkResult, Job, Worker
from queuectl.operations.enqueue import Fields, JobInput
from queuectl.settings import Settings
from queuectl.store.open import store_exists
from queuectl.store.reads import Reads
from queuectl.store.store import Store

if TYPE_CHECKING:
    from queuectl.policy.gate import Gate


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

    def workers(self) -> list[Worker]:
        """The registered workers. The state of those without a current heartbeat is `lost`."""
        serves = self._is_serving()
        return [one if serves(one) else replace(one, state="lost") for one in self.reads.workers()]

    def _open_store(self) -> Store:
        if self._store is None and self._reads is not None:
            self._reads.close()  # one connection per thread: PostgreSQL has few
            self._reads = None
        return super()._open_store()


class WebSession(StoreSession):
    """The session of the handlers of requests."""

    def __init__(
        self,
        home: str | os.PathLike[str] | None = None,
        db: str | os.PathLike[str] | None = None,
        *,
        gate: Gate,
        accepts_alert_commands: bool = False,
        clock: Clock | None = None,
        trust_home: bool = False,
    ) -> None:
        """`gate`: decides which programs may start. `accepts_alert_commands`: whether clients may add alerts that run a command."""
        super().__init__(home, db, clock=clock, trust_home=trust_home)
        self.gate = gate
        self.accepts_alert_commands = accepts_alert_commands

    def on_behalf(self, token: str | None) -> Self:
        """Record this token as the actor of the changes that follow."""
        self._actor = self._actor._replace(token=token)
        if self._store is not None:
            self._store.actor = self._actor
        return self

    def add(
        self,
        jobs: JobInput,
        fields: Fields,
        *,
        batch: str | None = None,
        on_complete: str | None = None,
        idempotency: tuple[str, str] | None = None,
    ) -> list[Job]:
        """Enqueue jobs whose fields are dicts, because clients choose their names."""
        return self._add(jobs, fields, batch=batch, on_complete=on_complete, idempotency=idempotency)

    def only(self, result: BulkResult) -> Job:
        return self._only(result)


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


MakeSession = Callable[[Clock], WebSession]


class PoolFull(Exception):
    """All threads of a pool for long requests are in use."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


class WaitPool:
    """A thread pool for long requests: each has a thread and a store session, and is rejected at once if no thread is free."""

    def __init__(self, make: MakeSession, *, size: int, name: str) -> None:
        self._make = make
        self._size = size
        self._running: set[threading.Event] = set()
        self._threads = ThreadPoolExecutor(size, thread_name_prefix=name)

    def run(self, work: Callable[[WebSession], T], cancelled: threading.Event) -> asyncio.Future[T]:
        """Start at once, or raise PoolFull. `cancelled`: set by the caller when the result is not needed; the work then raises Cancelled."""
        if len(self._running) >= self._size:
            raise PoolFull(self._size)
        self._running.add(cancelled)
        asked = asyncio.get_running_loop().run_in_executor(self._threads, self._answer, work, cancelled)
        # When the thread is free, which may be later than the end of the request.
        asked.add_done_callback(lambda _: self._running.discard(cancelled))
        return asked

    async def ask(self, work: Callable[[WebSession], T], cancelled: threading.Event | None = None) -> T:
        return await asyncio.shield(self.run(work, cancelled or threading.Event()))

    def _answer(self, work: Callable[[WebSession], T], cancelled: threading.Event) -> T:
        with self._make(CancellableClock(cancelled)) as session:
            return work(session)

    def stop_waiting(self) -> None:
        for cancelled in list(self._running):
            cancelled.set()

    def close(self) -> None:
        self.stop_waiting()
        self._threads.shutdown(wait=True, cancel_futures=True)


# Threads of each pool of the dashboard. Quick requests beyond that are queued; slow ones are rejected.
READ_THREADS: Final = 8
CHANGE_THREADS: Final = 4
SLOW_READ_THREADS: Final = 24
SLOW_CHANGE_THREADS: Final = 16
STREAM_THREADS: Final = 32


class StorePools:
    """The pools of the dashboard."""

    def __init__(self, make: MakeSession) -> None:
        self.reads = StorePool(make, size=READ_THREADS, name="read")
        self.changes = StorePool(make, size=CHANGE_THREADS, name="change")
        self.slow_reads = WaitPool(make, size=SLOW_READ_THREADS, name="slow-read")
        self.slow_changes = WaitPool(make, size=SLOW_CHANGE_THREADS, name="slow-change")
        self.streaming = WaitPool(make, size=STREAM_THREADS, name="stream")
        # One session, which compares the database with what it saw before.
        self.watching = StorePool(make, name="watch")
        self.alerting = StorePool(make, name="alert")  # a separate pool: a webhook of an alert may be slow

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pool in self._request_pools():
            pool.close()
        # Do not wait for a slow webhook: the notification is retried by another process.
        self.alerting.close(wait=False)

    def stop_waiting(self) -> None:
        """End the requests that wait: the server stops."""
        for pool in (*self._request_pools(), self.alerting):
            pool.stop_waiting()

    def _request_pools(self) -> tuple[StorePool[WebSession] | WaitPool, ...]:
        return (self.reads, self.changes, self.slow_reads, self.slow_changes, self.streaming, self.watching)
