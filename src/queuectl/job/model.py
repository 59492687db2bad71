"""What a job, a run and a worker are, as values.

Times are integers of milliseconds since 1970 UTC inside and aware datetimes on the public `Job`: rows are read and
written by the million, and only people and programs outside need a datetime.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from queuectl.job.graph import Dependency
from queuectl.job.lifecycle import State
from queuectl.job.newjob import NewJob as NewJob
from queuectl.job.newjob import PackedHooks, PackedLimits
from queuectl.job.outcome import Ending
from queuectl.job.resources import Usage, usage_to_dict


class Claim(NamedTuple):
    """A job in the hands of a worker: what it needs to run it, and the token without which nothing can be written."""

    seq: int
    id: str
    token: str
    run: int  # the number of this run, from 1
    command: str | None
    argv: tuple[str, ...] | None
    queue: str
    attempts: int
    crashes: int
    max_retries: int
    first_is_free: bool
    backoff_base: float
    timeout_ms: int | None
    cwd: str
    env: Mapping[str, str] | None
    log: str
    key: str | None = None  # by which its queue may be limited
    parents: tuple[str, ...] = ()
    hooks: PackedHooks | None = None  # whom to tell what becomes of it
    limits: PackedLimits | None = None  # what this run may use
    secrets: tuple[str, ...] = ()  # see job/secrets.py


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of a job; `log_from` and `log_to` are where its output lies in the job's log."""

    number: int
    worker: str
    host: str
    pid: int | None
    started_at: datetime | None
    finished_at: datetime | None
    duration_ms: int | None
    exit_code: int | None
    signal: int | None
    error: str | None
    outcome: Ending
    log_from: int | None
    log_to: int | None
    usage: Usage | None = None  # None: nobody knows

    def to_dict(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "worker": self.worker,
            "host": self.host,
            "pid": self.pid,
            "started_at": iso(self.started_at),
            "finished_at": iso(self.finished_at),
            "duration_ms": self.duration_ms,
            "exit_code": self.exit_code,
            "signal": self.signal,
            "error": self.error,
            "outcome": self.outcome.value,
            **usage_to_dict(self.usage),
        }


@dataclass(frozen=True, slots=True)
class Job:
    """A job as everybody sees it."""

    seq: int
    id: str
    command: str | None
    argv: tuple[str, ...] | None
    state: State
    queue: str
    priority: int
    effective_priority: int
    attempts: int
    runs: int
    crashes: int
    max_retries: int
    first_is_free: bool
    backoff_base: float
    timeout_ms: int | None
    run_at: datetime
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    duration_ms: int | None
    wait_ms: int | None
    exit_code: int | None
    signal: int | None
    error: str | None
    worker: str | None
    cwd: str
    env: Mapping[str, str]
    tags: tuple[str, ...]
    unique_key: str | None
    held: bool
    reason: str | None
    log: str | None
    cron: str | None = None  # the schedule that it is of
    batch: str | None = None
    key: str | None = None  # by which its queue may be limited
    places: int | None = None  # at most so many of its key at a time, whatever its queue says
    is_duplicate: bool = field(default=False, compare=False)  # of what enqueue gives back: it was there already
    depends_on: tuple[Dependency, ...] = ()
    hooks: PackedHooks | None = None  # whom to tell what becomes of it, see job/hooks.py
    limits: PackedLimits | None = None  # what a run of it may use, see job/resources.py
    secrets: tuple[str, ...] = ()  # names only, see job/secrets.py

    @property
    def timeout(self) -> float | int | None:
        """The time limit of a run in seconds, None for none."""
        if self.timeout_ms is None:
            return None
        return self.timeout_ms // 1000 if self.timeout_ms % 1000 == 0 else self.timeout_ms / 1000

    def to_dict(self, *, show_env: bool = False) -> dict[str, Any]:
        """The JSON object of a job; values of `env` are hidden unless asked for."""
        return {
            "id": self.id,
            "command": self.command,
            "argv": None if self.argv is None else list(self.argv),
            "state": self.state.value,
            "queue": self.queue,
            "priority": self.priority,
            "effective_priority": self.effective_priority,
            "attempts": self.attempts,
            "runs": self.runs,
            "crashes": self.crashes,
            "max_retries": self.max_retries,
            "backoff_base": self.backoff_base,
            "timeout": self.timeout,
            "run_at": iso(self.run_at),
            "created_at": iso(self.created_at),
            "updated_at": iso(self.updated_at),
            "started_at": iso(self.started_at),
            "finished_at": iso(self.finished_at),
            "duration_ms": self.duration_ms,
            "wait_ms": self.wait_ms,
            "exit_code": self.exit_code,
            "signal": self.signal,
            "error": self.error,
            "worker": self.worker,
            "cwd": self.cwd,
            "env": dict(self.env) if show_env else dict.fromkeys(self.env, "***"),
            "tags": list(self.tags),
            "depends_on": [parent.to_json() for parent in self.depends_on],
            "unique_key": self.unique_key,
            "cron": self.cron,
            "held": self.held,
            "reason": self.reason,
            "log": self.log,
            "limits": dict(self.limits or {}),
            "secrets": list(self.secrets),
        }


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker as the store knows it. Whether its process still lives is for `liveness` to say."""

    id: str
    host: str
    pid: int
    home: str
    state: str  # running | stopping | lost
    slots: int
    busy: int
    queues: tuple[str, ...] | None  # None: all
    started_at: datetime
    heartbeat_at: datetime
    beats: int
    jobs_done: int
    machine: str = ""  # which one, whatever it is called: see config.Here
    lock: str = ""  # the mark of its lock file, see lock.py

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "host": self.host,
            "pid": self.pid,
            "state": self.state,
            "slots": self.slots,
            "busy": self.busy,
            "queues": None if self.queues is None else list(self.queues),
            "started_at": iso(self.started_at),
            "heartbeat_at": iso(self.heartbeat_at),
            "jobs_done": self.jobs_done,
        }


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def from_ms(ms: int) -> datetime:
    # Not fromtimestamp(ms / 1000): far in the future a float of seconds is off by more than the millisecond shown.
    return _EPOCH + timedelta(0, 0, ms * 1000)


def to_ms(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def iso(moment: datetime | None) -> str | None:
    """ISO 8601, UTC, milliseconds, Z: the only way times are written for programs."""
    if moment is None:
        return None
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return moment.isoformat("T", "milliseconds")[:23] + "Z"
