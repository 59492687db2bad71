"""The Python API: `Queue`, with the same jobs, rules and errors as the command line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from queuectl.client_bulk import (
    BulkContext,
    Duration,
    Names,
    Schedules,
    Selection,
    parse_timeout,
    resolve,
    to_job_fields,
    to_json,
)
from queuectl.clock import Clock, SystemClock
from queuectl.config import actor, db_address, environ, here, home_path, host_name, load_settings, working_directory
from queuectl.errors import InvalidInput, InvalidItem, JobNotFound, Unavailable
from queuectl.jobs.edit import parse_edit
from queuectl.jobs.fields import absolute
from queuectl.jobs.model import BulkResult, Job, Worker
from queuectl.jobs.spec import Defaults
from queuectl.operations import control, inspect, job_input, logs, queues
from queuectl.operations import wait as waiting
from queuectl.operations.bulk import find_jobs
from queuectl.operations.enqueue import Fields, JobInput, add, job_defaults, job_list, prepare, queued, single_job
from queuectl.operations.query import parse_count, parse_filter, parse_sort
from queuectl.paths import trusts_home
from queuectl.settings import Settings
from queuectl.store.open import (
    check_trust,
    explain_read_only,
    find_store,
    open_reads,
    open_store,
    store_exists,
    store_path,
)
from queuectl.store.reads import Reads
from queuectl.store.store import Store
from queuectl.store.types import Enqueued, Filter
from queuectl.text import short_repr

if TYPE_CHECKING:
    from queuectl.maintenance.lock_breaker import LockBreaker


class Queue:
    """The queue of a data directory, or of the database at `db`. Both default to the environment, as on the command line.

    Nothing is created on disk before the first job is enqueued. Where a method takes an ID, an unambiguous prefix is
    accepted, and `"last"` is the newest job. Methods raise errors of `queuectl.errors`. A Queue belongs to the thread
    that uses it. Create a Queue for each thread. A data directory or database that other users own or can write to raises
    NotTrusted, unless `trust_home` is true.

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
        """Close the database. If you use the Queue afterwards, it opens the database again."""
        for opened in (self._store, self._reads):
            if opened is not None:
                opened.close()
        self._store = self._reads = None

    # ── enqueue ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def enqueue(
        self,
        command: str | None = None,
        *,
        argv: Sequence[str] | None = None,
        unique: str | None = None,
        **fields: Any,
    ) -> Job:
        """Add a job: `command` for the shell, or `argv` to run without a shell. The job is committed when the method returns.

        `fields` are the fields of a job in JSON: id, queue, priority, max_retries, backoff_base, timeout, run_at (also
        a datetime), delay (also a timedelta), cwd, env, tags, key, places; memory, cpu_time, nice, open_files, processes,
        file_size. The job runs after the jobs (or IDs) in `after` have completed, those in `after_any` have ended, and
        those in `after_fail` are dead. Raises InvalidInput, UnknownName, DuplicateId, ParentNotFound or
        ParentEnded.

        `unique` is a key that at most one waiting or running job has; `unique_for` (also a timedelta) and `if_exists` are
        as on the command line. If the result is an existing job, `is_duplicate` is true. Raises KeyTaken with
        `if_exists="error"`.

        >>> from queuectl import Queue
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
        job = to_job_fields({"command": command, "argv": argv, **fields})
        return self._add(single_job(job), {})[0]

    def enqueue_many(
        self, jobs: Iterable[str | Mapping[str, Any]], *, batch: str | None = None, on_complete: str | None = None
    ) -> list[Job]:
        """Add many jobs, all or none. Each job is a command for the shell or a mapping of fields.

        `batch` is the batch of the jobs. `on_complete` is a command that runs once, when all jobs of the batch have ended.
        Raises InvalidItem for the first invalid job, and InvalidInput for one job where many are expected.

        >>> with Queue() as queue:
        ...     [job.priority for job in queue.enqueue_many(["true", {"command": "false", "priority": 7}])]
        [0, 7]
        """
        items = [_parse_item(job, number) for number, job in enumerate(_require_many(jobs, "jobs"), 1)]
        return self._add(job_list(items), {}, batch=batch, on_complete=on_complete)

    def enqueue_each(
        self,
        items: Iterable[str],
        command: str | None = None,
        *,
        argv: Sequence[str] | None = None,
        colsep: str | None = None,
        batch: str | None = None,
        on_complete: str | None = None,
        **fields: Any,
    ) -> list[Job]:
        """Add a job for each of `items`, all or none, as `enqueue --for-each` does.

        In `command` each of `{}`, `{/}`, `{.}`, `{n}` and, with `colsep`, `{1}` becomes one quoted argument; in `argv` it is
        inserted unquoted. `fields` apply to all jobs.

        >>> with Queue() as queue:
        ...     [job.command for job in queue.enqueue_each(["a b.jpg"], "convert {} {.}.png", queue="images")]
        ["convert 'a b.jpg' 'a b'.png"]
        """
        given = list(_require_many(items, "items"))
        for number, item in enumerate(given, 1):
            if not isinstance(item, str):
                problem = f"expected a text, got {short_repr(item)}"
                raise InvalidItem(number, InvalidInput("item", problem, hint="like str(item)"))
        if (command is None) == (argv is None):
            hint = 'like "gzip {}" or argv=["gzip", "{}"]'
            raise InvalidInput("command", "expected either a command or an argv", hint=hint)
        template = command if command is not None else list(argv or ())
        jobs = job_input.for_each_item(given, template, colsep=colsep)
        return self._add(jobs, to_job_fields(fields), batch=batch, on_complete=on_complete)

    def enqueue_array(
        self,
        indices: str | Iterable[int],
        command: str | None = None,
        *,
        argv: Sequence[str] | None = None,
        at_once: int | None = None,
        batch: str | None = None,
        on_complete: str | None = None,
        **fields: Any,
    ) -> list[Job]:
        """Add a job for each index, all or none. Each job reads its index from `QUEUECTL_ARRAY_INDEX`.

        `indices` are numbers, or a text as for `enqueue --array`. At most `at_once` jobs run at a time, as with `%N`.

        >>> with Queue() as queue:
        ...     len(queue.enqueue_array(range(1, 101), "./render", at_once=4))
        100
        >>> with Queue() as queue:
        ...     [job.env["QUEUECTL_ARRAY_INDEX"] for job in queue.enqueue_array("0-90:30%2", "./render")]
        ['0', '30', '60', '90']
        """
        text = indices if isinstance(indices, str) else ",".join(map(str, _require_many(indices, "indices")))
        if at_once is not None:
            text = f"{text}%{at_once}"
        job = to_job_fields({"command": command, "argv": argv, **fields})
        jobs = job_input.make_array(job, text, flags={}, subject="indices")
        return self._add(jobs, {}, batch=batch, on_complete=on_complete)

    # ── inspect ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def get(self, job_id: str) -> Job:
        """Return the job in its current state. Raises JobNotFound or AmbiguousId.

        >>> with Queue() as queue:
        ...     queue.get("no-such-job")
        Traceback (most recent call last):
        queuectl.errors.JobNotFound: no job 'no-such-job'
        """
        reads = self._open_reads()
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
        worker: Names = (),
        error: Names = (),
        where: str | None = None,
        sort: str = "created",
        limit: int | None = None,
        offset: int = 0,
    ) -> Iterator[Job]:
        """Iterate over the jobs in one of these states, of one of these queues and batches, with all of these tags; newest first.

        `worker`: whose latest run is by one of these workers; `error`: with one of these texts in the error; `since`: enqueued at
        this time or later, or at most this duration ago; `match`: with this text in the command. `where`: a query, for example
        `queue:mail error:timeout`. Uses bounded memory. `sort` is as on the command line.

        >>> with Queue() as queue:
        ...     _ = queue.enqueue("true", queue="mail")
        ...     [job.command for job in queue.jobs(state="pending", queue="mail")]
        ['true']
        """
        given = {"state": state, "queue": queue, "tag": tag, "batch": batch, "worker": worker, "error": error}
        selected = self._filter(**given, since=since, match=match, where=where)
        key, is_descending = parse_sort(sort)
        limit = parse_count(limit, subject="limit")
        offset = parse_count(offset, subject="offset") or 0
        return self._open_reads().jobs(selected, sort=key, descending=is_descending, limit=limit, offset=offset)

    def batch(self, name: str) -> dict[str, Any]:
        """Return the progress of a batch, as `batch show --json` does. Raises BatchNotFound.

        >>> with Queue() as queue:
        ...     _ = queue.enqueue_many(["true", "true"], batch="nightly")
        ...     queue.batch("nightly")["waiting"]
        2
        """
        return waiting.progress(self._open_reads(), name).to_dict()

    def batches(self) -> list[dict[str, Any]]:
        """Return all batches, newest first, as `batch list --json` does."""
        return [one.to_dict() for one in waiting.all_progress(self._open_reads())]

    def graph(self, job_id: str) -> dict[str, Any]:
        """Return the direct and indirect dependencies of the job and the jobs that depend on it, as `graph --json` does.

        >>> with Queue() as queue:
        ...     build = queue.enqueue("make build")
        ...     _ = queue.enqueue("make test", after=[build])
        ...     [edge["state"] for edge in queue.graph(build.id)["edges"]]
        ['waiting']
        """
        reads = self._open_reads()
        return inspect.graph(reads, resolve(reads, job_id)).to_dict()

    def history(self, job_id: str) -> list[dict[str, Any]]:
        """Return all runs of the job, oldest first, as `show --json` does."""
        reads = self._open_reads()
        return [run.to_dict() for run in reads.history(resolve(reads, job_id))]

    def logs(
        self,
        job_id: str,
        *,
        run: int | None = None,
        tail: int | None = None,
        markers: bool = True,
    ) -> str:
        """Return the output of all runs of the job, or of `run`. U+FFFD replaces invalid UTF-8."""
        reads = self._open_reads()
        view = logs.LogView(run=run, markers=markers, tail=parse_count(tail, subject="tail"))
        return b"".join(logs.read_log(reads, resolve(reads, job_id), view, host=host_name())).decode("utf-8", "replace")

    def follow(self, job_id: str, *, markers: bool = False) -> Iterator[bytes]:
        """Iterate over the output of the job as it is written, until the job has ended. You can call this before the job starts."""
        reads = self._open_reads()
        view = logs.LogView(markers=markers)
        ids = [resolve(reads, job_id)]
        return (piece.data for piece in logs.follow_logs(reads, self._clock, ids, view, host=host_name()))

    def status(self) -> dict[str, Any]:
        """Return the number of jobs by state and the live workers, as `status --json` does.

        >>> with Queue() as queue:
        ...     queue.status()["workers"]
        {'live': 0, 'slots': 0, 'busy': 0}
        """
        return inspect.status(self._open_reads(), is_alive=self._is_serving()).to_dict()

    def queues(self) -> list[dict[str, Any]]:
        """Return every queue with its jobs, its limits and its current rate, as `queue list --json` does."""
        return [one.to_dict() for one in queues.list_queues(self._open_reads())]

    def wait(self, job_id: str, timeout: Duration | None = None) -> Job:
        """Return the job when it is completed, dead or cancelled. Raises WaitTimeout, which is a TimeoutError.

        >>> with Queue() as queue:
        ...     queue.wait(queue.enqueue("true").id, timeout="10ms")
        Traceback (most recent call last):
        queuectl.errors.WaitTimeout: still not ended after 0.01 s: ...
        """
        reads, seconds = self._open_reads(), parse_timeout(timeout)
        return waiting.wait(reads, self._clock, [resolve(reads, job_id)], timeout=seconds)[0]

    def wait_batch(self, name: str, timeout: Duration | None = None) -> dict[str, Any]:
        """Return the batch when none of its jobs waits or runs. Raises BatchNotFound or WaitTimeout."""
        return waiting.wait_batch(self._open_reads(), self._clock, name, timeout=parse_timeout(timeout)).to_dict()

    # ── control ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def select(
        self,
        *,
        state: Names = (),
        queue: Names = (),
        tag: Names = (),
        since: str | float | datetime | timedelta | None = None,
        match: str | None = None,
        batch: Names = (),
        worker: Names = (),
        error: Names = (),
        where: str | None = None,
    ) -> Selection:
        """Select the jobs that match, as for `jobs`, to cancel, retry, edit, hold, release, run_now, purge, prune or wait for them.

        >>> with Queue() as queue:
        ...     _ = queue.enqueue_many(["true", "true"], batch="images")
        ...     len(queue.select(batch="images", state="pending").hold()["done"])
        2
        """
        given = {"state": state, "queue": queue, "tag": tag, "batch": batch, "worker": worker, "error": error}
        selected = self._filter(**given, since=since, match=match, where=where)
        return Selection(
            selected, BulkContext(self._open_reads, self._open_store, self._clock, self._rescue, self._home)
        )

    def cancel(self, job_id: str) -> Job:
        """Cancel the job. If it is running, wait until its processes have exited. Raises WrongState if the job has ended.

        >>> with Queue() as queue:
        ...     queue.cancel(queue.enqueue("sleep 60").id).state
        <State.CANCELLED: 'cancelled'>
        """
        found = self.get(job_id).id
        return self._only(control.cancel(self._open_store(), self._clock, [found], rescue=self._rescue))

    def retry(self, job_id: str) -> Job:
        """Requeue a failed, dead or cancelled job. Raises WrongState for other states."""
        found = self.get(job_id).id
        return self._only(control.retry(self._open_store(), [found]))

    def edit(self, job_id: str, **fields: Any) -> Job:
        """Change a waiting job: command or argv, queue, priority, run_at or delay, max_retries, timeout.

        Raises WrongState if the job runs or has ended.

        >>> with Queue() as queue:
        ...     queue.edit(queue.enqueue("false").id, command="true", priority=5).priority
        5
        """
        change = parse_edit({name: to_json(value) for name, value in fields.items()})
        found = self.get(job_id).id
        return self._only(control.edit(self._open_store(), [found], change))

    def hold(self, job_id: str) -> Job:
        """Keep a waiting job from running until it is released.

        >>> with Queue() as queue:
        ...     queue.hold(queue.enqueue("true").id).reason
        'held'
        """
        found = self.get(job_id).id
        return self._only(control.hold(self._open_store(), [found]))

    def release(self, job_id: str) -> Job:
        """Release a held job."""
        found = self.get(job_id).id
        return self._only(control.release(self._open_store(), [found]))

    def run_now(self, job_id: str) -> Job:
        """Make a delayed, held or failed job due now."""
        found = self.get(job_id).id
        return self._only(control.run_now(self._open_store(), [found]))

    def clone(self, job_id: str, **fields: Any) -> Job:
        """Add a new job with the fields of an existing job. `fields`, as for `enqueue`, override them.

        >>> with Queue() as queue:
        ...     queue.clone(queue.enqueue("true", queue="slow").id, priority=7).queue
        'slow'
        """
        changes = to_job_fields(fields)
        if isinstance(cwd := changes.get("cwd"), str):
            changes["cwd"] = absolute(cwd, working_directory())
        reads = self._open_reads()
        new = control.clone(reads, resolve(reads, job_id), changes)
        store = self._open_store()
        return store.get(store.enqueue([new])[0])

    # ── schedules and queues ────────────────────────────────────────────────────────────────────────────────────────

    @property
    def schedules(self) -> Schedules:
        """The schedules, which add jobs at certain times."""
        cwd, reads = working_directory(), self._open_reads

        def defaults() -> Defaults:
            return Defaults.of(self._settings(), cwd=cwd, by_queue=reads().queue_defaults())

        return Schedules(reads, self._open_store, defaults)

    def set_queue(self, name: str, **rules: Any) -> dict[str, Any]:
        """Change the rules of a queue: paused (True, False), concurrency, per_key, rate, priority, max_retries, timeout, and
        memory, cpu_time, nice, open_files, processes, file_size of runs; "none" removes a rule.

        >>> with Queue() as queue:
        ...     queue.set_queue("mail", concurrency=2, rate="10/m", paused=True)["rate"]
        '10/m'
        """
        given = {rule: to_json(value) for rule, value in rules.items()}
        return queues.set_rules(self._open_store, name, given).to_dict()

    def move(self, queue: str, to: str, *job_ids: str) -> dict[str, Any]:
        """Move waiting jobs to another queue: the jobs in `job_ids`, by default all jobs of `queue`. Returns `done` and `refused`."""
        return queues.move(queue, to, job_ids, reads=self._open_reads, open_store=self._open_store).to_dict()

    # ── internals ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _add(
        self,
        jobs: JobInput,
        flags: Fields,
        *,
        batch: str | None = None,
        on_complete: str | None = None,
        idempotency: tuple[str, str] | None = None,
    ) -> list[Job]:
        if on_complete is not None and batch is None:
            raise InvalidInput("on_complete", "there is no batch", hint="give the batch a name")
        cwd = working_directory()
        flags = flags if batch is None else {**flags, "batch": batch}
        try:
            defaults = job_defaults(self._find_store(), environ(), cwd=cwd)
        except Unavailable:
            # Invalid input is reported before a database that cannot be opened.
            prepare(jobs, job_defaults(None, environ(), cwd=cwd), flags=flags, on_complete=on_complete)
            raise
        prepared = prepare(jobs, defaults, flags=flags, on_complete=on_complete)
        ids = add(self._open_store(), prepared, idempotency=idempotency) if prepared.jobs else Enqueued()
        added = find_jobs(self._open_reads(), ids)
        for job_id in ids if idempotency is not None else ():
            if job_id not in added:  # a repeated request whose jobs were removed since
                raise JobNotFound(job_id)
        return [replace(added[one.id], is_duplicate=True) if one.is_duplicate else added[one.id] for one in queued(ids)]

    def _only(self, result: BulkResult) -> Job:
        """The one job of `result`. Raises the error if it was refused."""
        for _, error in result.refused:
            raise error
        return self._open_store().get(result.done[0])

    def _filter(self, *, since: object, match: object, where: object, **names: Names) -> Filter:
        """`names`: by the names of the arguments of `jobs`."""
        given = {name: [value] if isinstance(value, str) else value for name, value in names.items()}
        return parse_filter(
            states=given["state"],
            queues=given["queue"],
            tags=given["tag"],
            batches=given["batch"],
            workers=given["worker"],
            errors=given["error"],
            since=since,
            match=match,
            query=where,
            now_ms=lambda: self._open_reads().now_ms(),
        )

    def _rescue(self) -> None:
        from queuectl.maintenance.rescuer import rescue_dead

        rescue_dead(self._open_store(), here=here(), clock=self._clock, settings=self._settings(), spare=True)

    def _is_serving(self) -> Callable[[Worker], bool]:
        """A function that tells whether a worker is alive and has a current heartbeat."""
        from queuectl.maintenance.liveness import is_serving

        where, now_ms = here(), self._open_reads().now_ms()
        return lambda worker: is_serving(worker, here=where, now_ms=now_ms, lease_ms=lambda: self._settings().lease_ms)

    def _settings(self) -> Settings:
        return load_settings(self._open_reads().config(), environ())

    def _open_store(self) -> Store:
        if self._store is None:
            self._check_trust()
            self._store = open_store(self._home, self._db, self._clock, on_wait=self._on_locked)
            self._store.actor = self._actor
        return self._store

    def _find_store(self) -> Store | None:
        """The database for writing; None if there is none, and none is created."""
        if self._store is None:
            self._check_trust()
            self._store = find_store(self._home, self._db, self._clock, on_wait=self._on_locked)
            if self._store is not None:
                self._store.actor = self._actor
        return self._store

    def _open_reads(self) -> Reads:
        if self._store is not None:
            return self._store
        if self._reads is None:
            self._check_trust()
            # The empty stand-in for a missing database is not kept: the database may be created at any time.
            if not store_exists(self._home, self._db):
                return open_reads(self._home, self._db, self._clock, on_wait=self._on_locked)
            with explain_read_only(lambda: store_path(self._home, self._db)):
                self._reads = open_reads(self._home, self._db, self._clock, on_wait=self._on_locked)
        return self._reads

    def _check_trust(self) -> None:
        if not self._is_trusted:
            check_trust(self._home, self._db)

    def _on_locked(self, path: str, _: float, stored: Callable[[], Mapping[str, str]]) -> str | None:
        if self._breaker is None:
            import logging

            from queuectl.maintenance.lock_breaker import LockBreaker

            log = logging.getLogger("queuectl")
            self._breaker = LockBreaker(environ(), self._clock, on_kill=lambda killed: log.warning(killed.message))
        return self._breaker(path, stored)


def _parse_item(job: object, number: int) -> Fields:
    if isinstance(job, str):
        return {"command": job}
    if not isinstance(job, Mapping):
        problem = f"expected a command or its fields, got {short_repr(job)}"
        raise InvalidItem(number, InvalidInput("job", problem, hint='like {"command": "true"}'))
    return to_job_fields(job)


def _require_many(given: Iterable[Any], name: str) -> Iterable[Any]:
    # A string or a mapping can be iterated over, too: its letters or keys would become jobs.
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise InvalidInput(name, f"expected many, got {short_repr(given)}", hint="give a list, or use enqueue for one")
    return given
