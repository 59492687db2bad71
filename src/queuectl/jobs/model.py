"""The values, with their JSON: Job, Run, Claim, Worker, and the result of a bulk operation.

Times are milliseconds since 1970 UTC, except on the public `Job`, `Run` and `Worker`, which have aware datetimes: rows are
read and written by the million, and only users of the API need a datetime.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from typing import Any, Final, NamedTuple

from queuectl.errors import Conflict, NotFound, QueuectlError
from queuectl.jobs.dependencies import Dependency
from queuectl.jobs.outcome import Ending
from queuectl.jobs.resources import Usage, usage_to_dict
from queuectl.jobs.spec import NewJob as NewJob
from queuectl.jobs.spec import PackedHooks, PackedLimits
from queuectl.jobs.states import State
from queuectl.units import ARRAY_INDEX_VARIABLE, iso, to_json, to_seconds

HIDDEN_VALUE: Final = "***"  # replaces values of `env` in output


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
    last_output: str | None = None  # see logs/last_line.py

    def to_dict(self) -> dict[str, Any]:
        return {**{name: to_json(getattr(self, name)) for name in _RUN_FIELDS}, **usage_to_dict(self.usage)}


_RUN_FIELDS: Final = tuple(name for name in Run.__slots__ if name not in ("log_from", "log_to", "usage"))


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
    last_output: str | None = None  # the last line that the latest run printed

    @property
    def array_index(self) -> int | None:
        """None: it is not of an array."""
        index = self.env.get(ARRAY_INDEX_VARIABLE, "")
        # Anything else was written into the database past queuectl.
        return int(index) if index.isascii() and index.isdecimal() else None

    @property
    def timeout(self) -> float | None:
        """The time limit of a run in seconds, None for none."""
        return to_seconds(self.timeout_ms)

    def to_dict(self, *, show_env: bool = False) -> dict[str, Any]:
        """The values of `env` are hidden without `show_env`."""
        # Not by to_json: `export` does this a million times.
        found = dict(zip(_JOB_FIELDS, _job_values(self), strict=True))
        for name in ("run_at", "created_at", "updated_at", "started_at", "finished_at"):
            found[name] = iso(found[name])
        return found | {
            "argv": None if self.argv is None else list(self.argv),
            "state": self.state.value,
            "env": dict(self.env) if show_env else dict.fromkeys(self.env, HIDDEN_VALUE),
            "depends_on": [parent.to_json() for parent in self.depends_on],
            "tags": list(self.tags),
            "limits": dict(self.limits or {}),
            "secrets": list(self.secrets),
        }


# In the order of JSON. `export` adds the others that `import` needs.
_JOB_FIELDS: Final = (
    *("id", "command", "argv", "state", "queue", "priority", "effective_priority", "attempts", "runs", "crashes"),
    *("max_retries", "backoff_base", "timeout", "run_at", "created_at", "updated_at", "started_at", "finished_at"),
    *("duration_ms", "wait_ms", "exit_code", "signal", "error", "last_output", "worker", "cwd", "env", "tags"),
    *("depends_on", "unique_key", "cron", "batch", "key", "array_index", "held", "reason", "log", "limits", "secrets"),
)
_job_values: Final = attrgetter(*_JOB_FIELDS)


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
        return {name: to_json(getattr(self, name)) for name in _WORKER_FIELDS}


_WORKER_FIELDS: Final = tuple(name for name in Worker.__slots__ if name not in ("home", "beats", "machine", "lock"))


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
