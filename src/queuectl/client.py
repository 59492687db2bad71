"""The queue for Python programs: the same jobs, rules and errors as on the command line."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Self

from queuectl.clock import Clock, SystemClock
from queuectl.config import Settings, db_address, environ, here, home_path, host_name, load_settings, working_directory
from queuectl.errors import InvalidInput
from queuectl.job.change import read_change
from queuectl.job.duration import parse_duration_ms
from queuectl.job.fields import absolute
from queuectl.job.model import Job, Worker
from queuectl.job.shown import shown
from queuectl.job.spec import Defaults
from queuectl.queue import amend, batches, control, inspect, logs
from queuectl.queue import queues as lines
from queuectl.queue import wait as waiting
from queuectl.queue.enqueue import Place, enqueue, queued
from queuectl.queue.filters import parse_count, parse_filter, parse_sort
from queuectl.queue.intake import Given
from queuectl.queue.look import looking
from queuectl.queue.pick import Answer, find
from queuectl.queue.pythonic import Names, fields_of, names, parents, plain, resolve
from queuectl.schedules import Schedules
from queuectl.store.open import open_reads, open_store, store_exists, store_path
from queuectl.store.protocol import Reads, Store

Duration = str | float | timedelta


class Queue:
    """A queue in a home, or in the store at `db`; both default to what the environment says, as on the command line.

    Nothing is made on disk before the first job is enqueued. Where a method takes an id, the beginning of one will do, and
    `"last"` is the job enqueued last. What is refused raises an error of `queuectl.errors`. A Queue belongs to the
    thread that uses it; make one for each.

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
    ) -> None:
        self._home = home_path(home, spelled="home")
        self._db = db_address(db, spelled="db")
        self._clock = clock or SystemClock()
        self._store: Store | None = None
        self._reads: Store | None = None

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

    # ── put work in ─────────────────────────────────────────────────────────────────────────────────────────────────

    def enqueue(
        self,
        command: str | None = None,
        *,
        argv: Sequence[str] | None = None,
        unique: str | None = None,
        **fields: Any,
    ) -> Job:
        """Add a job: `command` for the shell, or `argv` to run without one. It is safe when this returns.

        `fields` are those of the command line's JSON: id, queue, priority, max_retries, backoff_base, timeout, run_at (also
        a datetime), delay (also a timedelta), cwd, env, tags, key, places. `after` are ids or jobs that have to complete first,
        `after_any` such as have to end, however, and `after_fail` such as have to fail for good. Raises InvalidInput, UnknownName,
        DuplicateId, ParentNotFound or ParentEnded.

        `unique` is a key that one job at a time has while it waits or runs; `unique_for` (also a timedelta) and `if_exists` are
        as on the command line. The job that comes back may be the one that was there: its `is_duplicate` says so. Raises
        KeyTaken where that is an error.

        >>> with Queue() as queue:
        ...     queue.enqueue(argv=["printf", "%s", "a b"], timeout="1m30s").timeout
        90
        >>> with Queue() as queue:
        ...     [queue.enqueue("true", unique="report").is_duplicate for _ in range(2)]
        [False, True]
        >>> with Queue() as queue:
        ...     build = queue.enqueue("make build")
        ...     queue.enqueue("make test", after=[build]).state
        <State.BLOCKED: 'blocked'>
        """
        if unique is not None:
            fields = {"unique_key": unique, **fields}
        return self._add([{"command": command, "argv": argv, **fields}], is_batch=False)[0]

    def enqueue_many(
        self, jobs: Iterable[str | Mapping[str, Any]], *, batch: str | None = None, on_complete: str | None = None
    ) -> list[Job]:
        """Add many jobs, all or none: each a command for the shell or a mapping of fields. With `batch`, under that name;
        `on_complete` is a command that runs once, when all of the batch have ended.

        Raises InvalidItem, which names the first that is wrong, and InvalidInput for one job where many are expected.

        >>> with Queue() as queue:
        ...     [job.priority for job in queue.enqueue_many(["true", {"command": "false", "priority": 7}])]
        [0, 7]
        """
        if isinstance(jobs, (str, bytes, Mapping)) or not isinstance(jobs, Iterable):
            # Letters and the names of fields can be iterated over, and would be taken for commands.
            raise InvalidInput("jobs", f"expected many, got {shown(jobs)}", hint="give a list, or use enqueue for one")
        return self._add(
            [{"command": job} if isinstance(job, str) else job for job in jobs],
            is_batch=True,
            batch=batch,
            on_complete=on_complete,
        )

    # ── look ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def get(self, job_id: str) -> Job:
        """The job as it is now. Raises JobNotFound or AmbiguousId.

        >>> with Queue() as queue:
        ...     queue.get("no-such-job")
        Traceback (most recent call last):
        queuectl.errors.JobNotFound: no job 'no-such-job'
        """
        reads = self._look()
        return reads.get(resolve(reads, job_id))

    def jobs(
        self,
        *,
        state: Names = (),
        queue: Names = (),
        tag: Names = (),
        since: str | float | datetime | timedelta | None = None,
        match: str | None = None,
        batch: Names = (),
        sort: str = "created",
        limit: int | None = None,
        offset: int = 0,
    ) -> Iterator[Job]:
        """The jobs in one of these states, of one of these queues and batches, with all of these tags; newest first.

        `since`: enqueued then or later, a duration for so long ago; `match`: with this text in the command. In bounded
        memory, however many there are. `sort` is as on the command line.

        >>> with Queue() as queue:
        ...     _ = queue.enqueue("true", queue="mail")
        ...     [job.command for job in queue.jobs(state="pending", queue="mail")]
        ['true']
        """
        where = parse_filter(
            states=names(state),
            queues=names(queue),
            tags=names(tag),
            batches=names(batch),
            since=since,
            match=match,
            now_ms=lambda: self._look().now_ms(),
        )
        key, is_descending = parse_sort(sort)
        limit = parse_count(limit, subject="limit")
        offset = parse_count(offset, subject="offset") or 0
        return self._look().jobs(where, sort=key, descending=is_descending, limit=limit, offset=offset)

    def batch(self, name: str) -> dict[str, Any]:
        """How far a batch is, as `batch show --json` has it. Raises BatchNotFound.

        >>> with Queue() as queue:
        ...     _ = queue.enqueue_many(["true", "true"], batch="nightly")
        ...     queue.batch("nightly")["waiting"]
        2
        """
        return batches.progress(self._look(), name).to_dict()

    def history(self, job_id: str) -> list[dict[str, Any]]:
        """Every run of the job, the first one first, as `show --json` has them."""
        reads = self._look()
        return [run.to_dict() for run in reads.history(resolve(reads, job_id))]

    def logs(self, job_id: str, *, run: int | None = None, tail: int | None = None, markers: bool = True) -> str:
        """What the job printed so far, in all its runs or one of them; U+FFFD for what is not UTF-8."""
        reads = self._look()
        view = logs.LogView(run=run, markers=markers, tail=parse_count(tail, subject="tail"))
        return b"".join(logs.read(reads, resolve(reads, job_id), view, host=host_name())).decode("utf-8", "replace")

    def follow(self, job_id: str, *, markers: bool = False) -> Iterator[bytes]:
        """What the job prints, as it prints it, until it has ended for good. May begin before the job does."""
        reads = self._look()
        view = logs.LogView(markers=markers)
        ids = [resolve(reads, job_id)]
        return (piece.data for piece in logs.follow(reads, self._clock, ids, view, host=host_name()))

    def status(self) -> dict[str, Any]:
        """How many jobs are in each state and who works, as `status --json` has it.

        >>> with Queue() as queue:
        ...     queue.status()["workers"]
        {'live': 0, 'slots': 0, 'busy': 0}
        """
        from queuectl.upkeep.liveness import is_serving

        where, reads = here(), self._look()

        def serves(worker: Worker) -> bool:
            return is_serving(worker, here=where, now_ms=reads.now_ms(), lease_ms=lambda: self._settings().lease_ms)

        return inspect.status(reads, is_alive=serves).to_dict()

    # ── steer ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def wait(self, job_id: str, timeout: Duration | None = None) -> Job:
        """The job, once it is completed, dead or cancelled. Raises WaitTimeout, which is a TimeoutError.

        >>> with Queue() as queue:
        ...     queue.wait(queue.enqueue("true").id, timeout="10ms")
        Traceback (most recent call last):
        queuectl.errors.WaitTimeout: still not ended after 0.01 s: ...
        """
        reads = self._look()
        seconds = None if timeout is None else parse_duration_ms(plain(timeout), subject="timeout") / 1000
        return waiting.wait(reads, self._clock, [resolve(reads, job_id)], timeout=seconds)[0]

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
        changes = {name: plain(value) for name, value in parents(fields).items()}
        if isinstance(changes.get("cwd"), str):
            changes["cwd"] = absolute(changes["cwd"], working_directory())
        reads = self._look()
        new = amend.clone(reads, resolve(reads, job_id), changes)
        store = self._write()
        return store.get(store.enqueue([new])[0])

    # ── by the clock ────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def schedules(self) -> Schedules:
        """Jobs that are added by the clock."""
        cwd = working_directory()
        return Schedules(self._look, self._write, lambda: Defaults.of(self._settings(), cwd=cwd))

    def queues(self) -> list[dict[str, Any]]:
        """Every queue: its jobs, whether it is paused, its limits and its rate now, as `queue list --json` has them."""
        return [one.to_dict() for one in lines.list_queues(self._look())]

    def set_queue(self, name: str, **rules: Any) -> dict[str, Any]:
        """Change what holds for a queue: paused (True, False), concurrency, per_key, rate, priority, max_retries, timeout; "none" takes
        one away.

        >>> with Queue() as queue:
        ...     queue.set_queue("mail", concurrency=2, rate="10/m", paused=True)["rate"]
        '10/m'
        """
        said = {rule: plain(value) for rule, value in rules.items()}
        return lines.set_rules(self._write, name, said).to_dict()

    # ── within ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _add(
        self,
        jobs: Sequence[Mapping[str, Any]],
        *,
        is_batch: bool,
        batch: str | None = None,
        on_complete: str | None = None,
    ) -> list[Job]:
        if on_complete is not None and batch is None:
            raise InvalidInput("on_complete", "there is no batch", hint="give the batch a name")
        items = [fields_of(job, number) for number, job in enumerate(jobs, 1)]
        cwd = working_directory()
        place = Place(
            self._write,
            stored_defaults=lambda: Defaults.of(self._settings(), cwd=cwd, by_queue=self._look().queue_defaults()),
            bare_defaults=lambda: Defaults.of(load_settings({}, environ()), cwd=cwd),
        )
        ids = enqueue(
            Given(items, is_batch=is_batch),
            place,
            flags={} if batch is None else {"batch": batch},
            on_complete=on_complete,
        )
        added = find(self._look(), ids)
        return [replace(added[one.id], is_duplicate=True) if one.is_duplicate else added[one.id] for one in queued(ids)]

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
            self._store = open_store(self._home, self._db, self._clock)
        return self._store

    def _look(self) -> Reads:
        if self._store is not None:
            return self._store
        if self._reads is None:
            # The empty one that stands in for a missing store must not outlast the moment when somebody makes it.
            if not store_exists(self._home, self._db):
                return open_reads(self._home, self._db, self._clock)
            with looking(lambda: store_path(self._home, self._db)):
                self._reads = open_reads(self._home, self._db, self._clock)
        return self._reads
