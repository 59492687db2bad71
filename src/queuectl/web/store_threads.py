"""Thread pools for the requests of many clients.

Requests that only read and requests that change something use different pools, so that a client with a read token cannot hold up
the changes of others. Requests that may wait long (for a job, a log, a receiver) have pools of their own as well. Every pool is
bounded, and so is the number of connections to a PostgreSQL server.
"""

from __future__ import annotations

import asyncio
import os
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any, Final, Self, TypeVar

from queuectl import store_threads
from queuectl.clock import CancellableClock, Clock
from queuectl.config import working_directory
from queuectl.cron import operations
from queuectl.cron.operations import CronContext, ScheduleRequest
from queuectl.errors import UsageError
from queuectl.jobs.edit import JobEdit, parse_edit
from queuectl.jobs.fields import absolute
from queuectl.jobs.model import Job
from queuectl.jobs.spec import Defaults
from queuectl.maintenance.pruner import MAX_ROWS, Plan, Pruned, Pruner, prune
from queuectl.operations import control
from queuectl.operations.enqueue import Fields, JobInput
from queuectl.policy.gate import Gate
from queuectl.store.protocol import Store
from queuectl.web.middleware import Refused


class StoreSession(store_threads.StoreSession):
    """The session of the handlers. Fields are dicts, because clients choose their names."""

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
        return self._add(jobs, fields, batch=batch, on_complete=on_complete, idempotency=idempotency)

    def change(self, job_id: str, fields: Fields, *, as_of: int | None) -> Job:
        """`as_of`: see control.edit."""
        change = parse_edit(fields)
        if change == JobEdit():
            raise UsageError("nothing to change", hint='for example {"priority": 5}')
        found = self.get(job_id).id
        return self._only(control.edit(self._open_store(), [found], change, as_of=as_of))

    def copy(self, job_id: str, fields: Fields) -> Job:
        if isinstance(cwd := fields.get("cwd"), str):
            fields = {**fields, "cwd": absolute(cwd, working_directory())}
        new = control.clone(self.reads, self.reads.resolve(job_id), fields)
        store = self._open_store()
        return store.get(store.enqueue([new])[0])

    def schedule(self, request: ScheduleRequest, *, replace: bool) -> dict[str, Any]:
        cwd = working_directory()
        defaults = Defaults.of(self.settings, cwd=cwd)
        context = CronContext(self._open_reads, self._open_store, lambda: defaults, random.random)
        return operations.add(request, context, replace=replace).to_dict(None)

    def prune(self, plan: Plan) -> Pruned:
        pruner = Pruner(self._open_store(), home=self._home, writer=f"prune-{os.getpid()}", rows=MAX_ROWS)
        return prune(pruner, plan, clock=self._clock, advance=lambda _: None)

    def _open_store(self) -> Store:
        if self._store is None and self._reads is not None:
            self._reads.close()  # one connection per thread: PostgreSQL has few
            self._reads = None
        return super()._open_store()


T = TypeVar("T")
MakeSession = Callable[[Clock], StoreSession]
StorePool = store_threads.StorePool[StoreSession]

# Threads of each pool. Quick requests beyond that are queued; slow ones are rejected.
READ_THREADS: Final = 8
CHANGE_THREADS: Final = 4
SLOW_READ_THREADS: Final = 24
SLOW_CHANGE_THREADS: Final = 16
STREAM_THREADS: Final = 32


class WaitPool:
    """A thread pool for long requests: each has a thread and a store session, and is rejected at once if no thread is free."""

    def __init__(self, make: MakeSession, *, size: int, name: str) -> None:
        self._make = make
        self._size = size
        self._running: set[threading.Event] = set()
        self._threads = ThreadPoolExecutor(size, thread_name_prefix=name)

    def run(self, work: Callable[[StoreSession], T], cancelled: threading.Event) -> asyncio.Future[T]:
        """Start at once, or raise Refused. `cancelled`: set by the caller when the result is not needed; the work then raises Cancelled."""
        if len(self._running) >= self._size:
            raise Refused(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "too-many-waiting",
                f"{self._size} other requests are waiting",
                hint="try again in a moment, or close some of them",
                headers={"Retry-After": "1"},
            )
        self._running.add(cancelled)
        asked = asyncio.get_running_loop().run_in_executor(self._threads, self._answer, work, cancelled)
        # When the thread is free, which may be later than the end of the request.
        asked.add_done_callback(lambda _: self._running.discard(cancelled))
        return asked

    async def ask(self, work: Callable[[StoreSession], T], cancelled: threading.Event | None = None) -> T:
        return await asyncio.shield(self.run(work, cancelled or threading.Event()))

    def _answer(self, work: Callable[[StoreSession], T], cancelled: threading.Event) -> T:
        with self._make(CancellableClock(cancelled)) as session:
            return work(session)

    def stop_waiting(self) -> None:
        for cancelled in list(self._running):
            cancelled.set()

    def close(self) -> None:
        self.stop_waiting()
        self._threads.shutdown(wait=True, cancel_futures=True)


class StorePools:
    def __init__(self, make: MakeSession) -> None:
        self.reads = StorePool(make, size=READ_THREADS, name="read")
        self.changes = StorePool(make, size=CHANGE_THREADS, name="change")
        self.slow_reads = WaitPool(make, size=SLOW_READ_THREADS, name="slow-read")
        self.slow_changes = WaitPool(make, size=SLOW_CHANGE_THREADS, name="slow-change")
        self.streaming = WaitPool(make, size=STREAM_THREADS, name="stream")
        self.watching = StorePool(
            make, name="watch"
        )  # one session, which compares the database with what it saw before
        self.alerting = StorePool(make, name="alert")  # a separate pool: a webhook of an alert may be slow

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def stop_waiting(self) -> None:
        """End the requests that wait: the server stops."""
        for pool in (*self._request_pools(), self.alerting):
            pool.stop_waiting()

    def close(self) -> None:
        for pool in self._request_pools():
            pool.close()
        # Do not wait for a slow webhook: the notification is retried by another process.
        self.alerting.close(wait=False)

    def _request_pools(self) -> tuple[StorePool | WaitPool, ...]:
        return (self.reads, self.changes, self.slow_reads, self.slow_changes, self.streaming, self.watching)
