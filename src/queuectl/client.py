"""The queue for Python programs: the same jobs, rules and errors as on the command line."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from queuectl.adding import Adding
from queuectl.clock import Clock, SystemClock
from queuectl.config import (
    Settings,
    actor,
    db_address,
    environ,
    here,
    home_path,
    load_settings,
    working_directory,
)
from queuectl.home import trusts_home
from queuectl.job.change import read_change
from queuectl.job.fields import absolute
from queuectl.job.model import Job
from queuectl.job.spec import Defaults
from queuectl.looking import Looking
from queuectl.queue import amend, control
from queuectl.queue import queues as lines
from queuectl.queue.look import looking
from queuectl.queue.pick import Answer
from queuectl.queue.pythonic import Names, plain, plain_fields, resolve
from queuectl.schedules import Schedules
from queuectl.selection import Hands, Selection
from queuectl.store.open import check_trust, open_reads, open_store, store_exists, store_path
from queuectl.store.protocol import Reads, Store

if TYPE_CHECKING:
    from queuectl.upkeep.lock_breaker import LockBreaker


class Queue(Adding, Looking):
    """A queue in a home, or in the store at `db`; both default to what the environment says, as on the command line.

    Nothing is made on disk before the first job is enqueued. Where a method takes an id, the beginning of one will do, and
    `"last"` is the job enqueued last. What is refused raises an error of `queuectl.errors`. A Queue belongs to the
    thread that uses it; make one for each. A data directory or database that other users own or can write to raises NotTrusted,
    unless `trust_home` is true.

    >>> from queuectl import Queue
    >>> with Queue() as queue:
    ...     job = queue.enqueue("echo hello", priority=5, delay="10s", tags=["greeting"])
    ...     queue.get(job.id).state
    <State.PENDING: 'pending'>
    """

    def __init__(
        self,
        home: str | os.PathLike[str] | None = None,
        db: str | os.PathLike[str] | None = None,
        *,
        clock: Clock | None = None,
        trust_home: bool = False,
    ) -> None:
        self._home = home_path(home, spelled="home")
        self._db = db_address(db, spelled="db")
        self._clock = clock or SystemClock()
        self._store: Store | None = None
        self._reads: Store | None = None
        self._actor = actor()
        self._is_trusted = trusts_home(self._home, environ(), flag=trust_home)
        self._breaker: LockBreaker | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the store; a Queue that is used again opens it again."""
        for opened in (self._store, self._reads):
            if opened is not None:
                opened.close()
        self._store = self._reads = None

    # ── steer ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def select(
        self,
        *,
        state: Names = (),
        queue: Names = (),
        tag: Names = (),
        since: str | float | datetime | timedelta | None = None,
        match: str | None = None,
        batch: Names = (),
    ) -> Selection:
        """The jobs that match, as for `jobs`, to do something to all of them: cancel, retry, edit, hold, release, run_now, purge,
        prune, wait.

        >>> with Queue() as queue:
        ...     _ = queue.enqueue_many(["true", "true"], batch="images")
        ...     len(queue.select(batch="images", state="pending").hold()["done"])
        2
        """
        where = self._where(state=state, queue=queue, tag=tag, batch=batch, since=since, match=match)
        return Selection(where, Hands(self._look, self._write, self._clock, self._rescue, self._home))

    def cancel(self, job_id: str) -> Job:
        """Call the job off; returns when it is so, also if it runs. Raises WrongState for one that has ended.

        >>> with Queue() as queue:
        ...     queue.cancel(queue.enqueue("sleep 60").id).state
        <State.CANCELLED: 'cancelled'>
        """
        found = self.get(job_id).id
        store = self._write()
        return self._only(control.cancel(store, self._clock, [found], rescue=self._rescue))

    def retry(self, job_id: str) -> Job:
        """Let a failed, dead or cancelled job run again, now. Raises WrongState for any other."""
        found = self.get(job_id).id
        return self._only(control.retry(self._write(), [found]))

    def edit(self, job_id: str, **fields: Any) -> Job:
        """Change a job that waits: command or argv, queue, priority, run_at or delay, max_retries, timeout. Raises WrongState for
        one that runs or has ended.

        >>> with Queue() as queue:
        ...     queue.edit(queue.enqueue("false").id, command="true", priority=5).priority
        5
        """
        change = read_change({name: plain(value) for name, value in fields.items()})
        found = self.get(job_id).id
        return self._only(amend.edit(self._write(), [found], change))

    def hold(self, job_id: str) -> Job:
        """Keep a job that waits from being run until it is released.

        >>> with Queue() as queue:
        ...     queue.hold(queue.enqueue("true").id).reason
        'held'
        """
        found = self.get(job_id).id
        return self._only(amend.hold(self._write(), [found]))

    def release(self, job_id: str) -> Job:
        """Let go a job that is held."""
        found = self.get(job_id).id
        return self._only(amend.release(self._write(), [found]))

    def run_now(self, job_id: str) -> Job:
        """Make a job that is delayed, held or waits for a retry due now."""
        found = self.get(job_id).id
        return self._only(amend.run_now(self._write(), [found]))

    def clone(self, job_id: str, **fields: Any) -> Job:
        """Add a new job with the same fields, but for those given, which are as for `enqueue`.

        >>> with Queue() as queue:
        ...     queue.clone(queue.enqueue("true", queue="slow").id, priority=7).queue
        'slow'
        """
        changes = plain_fields(fields)
        if isinstance(cwd := changes.get("cwd"), str):
            changes["cwd"] = absolute(cwd, working_directory())
        reads = self._look()
        new = amend.clone(reads, resolve(reads, job_id), changes)
        store = self._write()
        return store.get(store.enqueue([new])[0])

    # ── by the clock ────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def schedules(self) -> Schedules:
        """Jobs that are added by the clock."""
        cwd = working_directory()
        look = self._look
        return Schedules(
            look, self._write, lambda: Defaults.of(self._settings(), cwd=cwd, by_queue=look().queue_defaults())
        )

    def set_queue(self, name: str, **rules: Any) -> dict[str, Any]:
        """Change what holds for a queue: paused (True, False), concurrency, per_key, rate, priority, max_retries, timeout, and
        memory, cpu_time, nice, open_files, processes, file_size of runs; "none" takes
        one away.

        >>> with Queue() as queue:
        ...     queue.set_queue("mail", concurrency=2, rate="10/m", paused=True)["rate"]
        '10/m'
        """
        said = {rule: plain(value) for rule, value in rules.items()}
        return lines.set_rules(self._write, name, said).to_dict()

    def move(self, queue: str, to: str, *job_ids: str) -> dict[str, Any]:
        """Put the jobs that wait in a queue into another: all of them, or those named. Returns `done` and `refused`."""
        return lines.move(queue, to, job_ids, reads=self._look, open_store=self._write).to_dict()

    # ── within ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _only(self, answer: Answer) -> Job:
        for _, error in answer.refused:
            raise error
        return self._write().get(answer.done[0])

    def _rescue(self) -> None:
        from queuectl.upkeep.rescue import rescue_dead

        rescue_dead(self._write(), here=here(), clock=self._clock, settings=self._settings(), spare=True)

    def _settings(self) -> Settings:
        return load_settings(self._look().config(), environ())

    def _write(self) -> Store:
        if self._store is None:
            self._check_trust()
            self._store = open_store(self._home, self._db, self._clock, on_wait=self._on_locked)
            self._store.actor = self._actor
        return self._store

    def _look(self) -> Reads:
        if self._store is not None:
            return self._store
        if self._reads is None:
            self._check_trust()
            # The empty one that stands in for a missing store must not outlast the moment when somebody makes it.
            if not store_exists(self._home, self._db):
                return open_reads(self._home, self._db, self._clock, on_wait=self._on_locked)
            with looking(lambda: store_path(self._home, self._db)):
                self._reads = open_reads(self._home, self._db, self._clock, on_wait=self._on_locked)
        return self._reads

    def _check_trust(self) -> None:
        if not self._is_trusted:
            check_trust(self._home, self._db)

    def _on_locked(self, path: str, _: float, stored: Callable[[], Mapping[str, str]]) -> str | None:
        if self._breaker is None:
            import logging

            from queuectl.upkeep.lock_breaker import LockBreaker

            log = logging.getLogger("queuectl")
            self._breaker = LockBreaker(environ(), self._clock, on_kill=lambda killed: log.warning(killed.message))
        return self._breaker(path, stored)
