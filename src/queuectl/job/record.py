"""A job with its past, on its way into a store: what import has read and found right."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

from queuectl.job.graph import Dependency, Need, Otherwise
from queuectl.job.hooks import urls_of
from queuectl.job.model import Job, to_ms
from queuectl.job.newjob import PackedHooks, PackedLimits

HIDDEN: Final = "***"  # what stands for a value of `env` wherever jobs are shown


class RunRecord(NamedTuple):
    """A run that is over. Times are milliseconds since 1970 UTC; `ending` is a word of Ending."""

    number: int
    worker: str
    host: str
    pid: int | None
    started_at: int | None
    finished_at: int
    duration_ms: int | None
    exit_code: int | None
    signal: int | None
    error: str | None
    ending: str
    usage: tuple[int, ...] | None = None  # a Usage


class Record(NamedTuple):
    """A job that nobody runs. The run fields and `ending` are those of its latest run, as a store keeps them in the job itself;
    `earlier` are all other runs that are known. `given` names what was said and not made up: by it the same job is told from
    another one."""

    id: str
    command: str | None
    argv: tuple[str, ...] | None
    state: str
    queue: str
    priority: int
    max_retries: int
    first_is_free: bool
    backoff_base: float
    timeout_ms: int | None
    cwd: str
    env: Mapping[str, str] | None
    tags: tuple[str, ...]
    unique_key: str | None
    cron: str | None
    held: bool
    attempts: int
    runs: int
    crashes: int
    effective_priority: int | None
    eligible_at: int
    run_at: int
    created_at: int
    updated_at: int
    worker: str | None
    host: str | None
    pid: int | None
    started_at: int | None
    finished_at: int | None
    duration_ms: int | None
    wait_ms: int | None
    exit_code: int | None
    signal: int | None
    error: str | None
    ending: str | None
    earlier: tuple[RunRecord, ...]
    was_running: bool
    given: tuple[str, ...]
    batch: str | None = None
    key: str | None = None
    depends_on: tuple[Dependency, ...] = ()
    places: int | None = None
    hooks: PackedHooks | None = None
    limits: PackedLimits | None = None
    usage: tuple[int, ...] | None = None  # of the latest run
    secrets: tuple[str, ...] = ()


def pack(record: Record) -> str:
    """As text, for where records wait in numbers that no memory holds."""
    return json.dumps(record)


def unpack(text: str) -> Record:
    packed = Record._make(json.loads(text))
    return packed._replace(
        argv=None if packed.argv is None else tuple(packed.argv),
        tags=tuple(packed.tags),
        secrets=tuple(packed.secrets),
        earlier=tuple(RunRecord._make(run) for run in packed.earlier),
        given=tuple(packed.given),
        depends_on=tuple(Dependency(id_, Need(when), Otherwise(way)) for id_, when, way in packed.depends_on),
    )


def difference(record: Record, job: Job) -> str | None:
    """The field that shows that these are two jobs under one id, None if it is the same job.

    Only what is fixed when a job is enqueued counts: a job that has gone on since it was exported is the same. Of
    environments whose values were left out, the names count.
    """
    values: dict[str, tuple[object, object]] = {
        "created_at": (record.created_at, to_ms(job.created_at)),
        "command": (record.command, job.command),
        "argv": (record.argv, job.argv),
        "queue": (record.queue, job.queue),
        "priority": (record.priority, job.priority),
        "max_retries": (record.max_retries, job.max_retries),
        "first_attempt_is_free": (record.first_is_free, job.first_is_free),
        "backoff_base": (record.backoff_base, job.backoff_base),
        "timeout": (record.timeout_ms, job.timeout_ms),
        "cwd": (record.cwd, job.cwd),
        "env": _environments(record, job),
        "secrets": (record.secrets, job.secrets),
        "tags": (record.tags, job.tags),
        "unique_key": (record.unique_key, job.unique_key),
        "batch": (record.batch, job.batch),
        "key": (record.key, job.key),
        "places": (record.places, job.places),
        # Not their origin, which import decides by the rules and settings of the time.
        "hooks": (urls_of(record.hooks), urls_of(job.hooks)),
        "limits": (record.limits, job.limits),
        "cron": (record.cron, job.cron),
        "depends_on": (record.depends_on, job.depends_on),
    }
    return next((name for name, (ours, theirs) in values.items() if name in record.given and ours != theirs), None)


def hidden_variable(record: Record) -> str | None:
    """A variable of its environment whose value was left out."""
    return next((name for name, value in (record.env or {}).items() if value == HIDDEN), None)


def _environments(record: Record, job: Job) -> tuple[object, object]:
    ours, theirs = dict(record.env or {}), dict(job.env)
    return ours, {name: HIDDEN if ours.get(name) == HIDDEN else value for name, value in theirs.items()}
