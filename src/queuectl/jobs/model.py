"""The values, with their JSON: Job, Run, Claim, Worker, and the result of a bulk operation.

Times are milliseconds since 1970 UTC, except on the public `Job`, `Run` and `Worker`, which have aware datetimes: rows are
read and written by the million, and only users of the API need a datetime.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from queuectl.errors import Conflict, NotFound, QueuectlError
from queuectl.jobs.dependencies import Dependency
from queuectl.jobs.outcome import Ending
from queuectl.jobs.resources import Usage, usage_to_dict
from queuectl.jobs.spec import NewJob as NewJob
from queuectl.jobs.spec import PackedHooks, PackedLimits
from queuectl.jobs.states import State
from queuectl.units import iso, to_seconds


class Claim(NamedTuple):
    """A claimed job: what the worker needs to run it, and the fencing token that every write needs."""

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
    key: str | None = None  # concurrency key
    parents: tuple[str, ...] = ()
    hooks: PackedHooks | None = None  # webhooks, see webhooks/rules.py
    limits: PackedLimits | None = None  # resource limits of this run
    secrets: tuple[str, ...] = ()  # see secrets/rules.py


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of a job; `log_from` and `log_to` are the position of its output in the job's log."""

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
    usage: Usage | None = None  # None: unknown

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
    """A job, as the API, the command line and the dashboard show it."""

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
    cron: str | None = None  # the schedule that added it
    batch: str | None = None
    key: str | None = None  # concurrency key
    places: int | None = None  # concurrency of its key, before that of its queue
    is_duplicate: bool = field(default=False, compare=False)  # a result of enqueue: the job existed already
    depends_on: tuple[Dependency, ...] = ()
    hooks: PackedHooks | None = None  # webhooks, see webhooks/rules.py
    limits: PackedLimits | None = None  # resource limits of a run, see jobs/resources.py
    secrets: tuple[str, ...] = ()  # names only, see secrets/rules.py

    @property
    def timeout(self) -> float | None:
        """The time limit of a run in seconds, None for none."""
        return to_seconds(self.timeout_ms)

    def to_dict(self, *, show_env: bool = False) -> dict[str, Any]:
        """The values of `env` are hidden without `show_env`."""
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
    """A registered worker. maintenance/liveness.py finds out whether its process is alive."""

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
    machine: str = ""  # see config.Here
    lock: str = ""  # the mark of its lock file, see filelock.py

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


class Refusal(NamedTuple):
    id: str  # as given
    error: QueuectlError


class BulkResult(NamedTuple):
    """The result of an operation on several ids, each at most once and in the order given."""

    done: list[str]
    refused: list[Refusal]

    @classmethod
    def of_each(cls, names: Iterable[str], act: Callable[[str], object]) -> BulkResult:
        """Call `act` with each name once; one for which it raises NotFound or Conflict is refused."""
        result = cls([], [])
        for name in dict.fromkeys(names):
            try:
                act(name)
            except (NotFound, Conflict) as error:
                result.refused.append(Refusal(name, error))
            else:
                result.done.append(name)
        return result

    def to_dict(self) -> dict[str, Any]:
        return {
            "done": self.done,
            "refused": [{"id": ref, "code": error.code, "message": error.message} for ref, error in self.refused],
        }
