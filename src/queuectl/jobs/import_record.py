"""The record of an imported job: a job with its history, as `export` writes it and `import` accepts it.

Fields of job records of other tools are accepted too, under their names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC
from enum import StrEnum
from typing import Any, Final, NamedTuple

from queuectl.errors import InvalidInput
from queuectl.jobs import fields as read
from queuectl.jobs.dependencies import Dependency, Need, Otherwise
from queuectl.jobs.model import HIDDEN_VALUE, Job
from queuectl.jobs.outcome import Ending
from queuectl.jobs.resources import Usage, parse_limits
from queuectl.jobs.spec import NO_URLS, Defaults, PackedHooks, PackedLimits, readers
from queuectl.jobs.states import FINAL, State
from queuectl.text import short_repr, unknown_name
from queuectl.units import MAX_DURATION_MS, parse_time_ms, to_ms
from queuectl.webhooks.rules import parse_hooks, urls_of, with_origin


class ImportedRun(NamedTuple):
    """An ended run. Times are milliseconds since 1970 UTC; `ending` is a value of Ending."""

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
    last_output: str | None = None
    usage: tuple[int, ...] | None = None  # a Usage


class ImportRecord(NamedTuple):
    """A job that is not running. The run fields and `ending` are those of its latest run, as in the table of jobs; `earlier` are
    all other known runs. `given` names the fields that the record had: only these are compared with an existing job."""

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
    earlier: tuple[ImportedRun, ...]
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
    last_output: str | None = None


def pack_record(record: ImportRecord) -> str:
    """As text, for the staging file of an import."""
    return json.dumps(record)


def unpack_record(text: str) -> ImportRecord:
    packed = ImportRecord._make(json.loads(text))
    return packed._replace(
        argv=None if packed.argv is None else tuple(packed.argv),
        tags=tuple(packed.tags),
        secrets=tuple(packed.secrets),
        earlier=tuple(ImportedRun._make(run) for run in packed.earlier),
        given=tuple(packed.given),
        depends_on=tuple(Dependency(id_, Need(when), Otherwise(way)) for id_, when, way in packed.depends_on),
    )


# Fields that are fixed at enqueue.
_IDENTITY: Final = (
    *("created_at", "command", "argv", "queue", "priority", "max_retries", "first_attempt_is_free", "backoff_base"),
    *("timeout", "cwd", "env", "secrets", "tags", "unique_key", "batch", "key", "places", "hooks", "limits", "cron"),
    "depends_on",
)


def find_difference(record: ImportRecord, job: Job) -> str | None:
    """The first field that differs between an imported and an existing job with the same ID; None if it is the same job.

    Only fields that are fixed at enqueue are compared: the existing job may have run since the export. Of variables with
    hidden values, the names are compared.
    """
    ours = dict(record.env or {})
    theirs = {name: HIDDEN_VALUE if ours.get(name) == HIDDEN_VALUE else value for name, value in job.env.items()}
    special: dict[str, tuple[object, object]] = {
        "created_at": (record.created_at, to_ms(job.created_at)),
        "first_attempt_is_free": (record.first_is_free, job.first_is_free),
        "timeout": (record.timeout_ms, job.timeout_ms),
        "env": (ours, theirs),
        # Without their origin, which depends on the settings at the time of the import.
        "hooks": (urls_of(record.hooks), urls_of(job.hooks)),
    }
    for name in _IDENTITY:
        one, other = special[name] if name in special else (getattr(record, name), getattr(job, name))
        if name in record.given and one != other:
            return name
    return None


def hidden_variable(record: ImportRecord) -> str | None:
    """A variable of its environment with a hidden value; None if there is none."""
    return next((name for name, value in (record.env or {}).items() if value == HIDDEN_VALUE), None)


MAX_COUNT: Final = 2**31 - 1

Reader = Callable[[object, str], Any]


def _integer(low: int, high: int) -> Reader:
    return lambda value, name: read.integer(value, name, low=low, high=high)


def _one_of(kind: type[StrEnum], what: str) -> Reader:
    def parse(value: object, name: str) -> Any:
        try:
            return kind(value.lower() if isinstance(value, str) else "")
        except ValueError as error:
            known = ", ".join(kind)
            raise InvalidInput(name, f"not {what}: {short_repr(value)}", hint=f"one of: {known}") from error

    return parse


_count, _signed = _integer(0, MAX_COUNT), _integer(-MAX_COUNT, MAX_COUNT)
_large_count, _duration_ms = _integer(0, 2**53), _integer(0, MAX_DURATION_MS)


def _time(value: object, name: str) -> int:
    """A time without a zone is UTC: the zone of its writer is unknown."""
    return parse_time_ms(value, subject=name, local=UTC)


def _text(value: object, name: str) -> str:
    return read.text(value, name, example=f'like "{name}": "…"')


def _last_output(value: object, name: str) -> str:
    return _text(value, name)[:MAX_LAST_OUTPUT]


MAX_LAST_OUTPUT: Final = 200  # characters, as a worker stores
_RUN_FIELDS: Final[dict[str, Reader]] = {
    "number": _integer(1, MAX_COUNT),
    **dict.fromkeys(("worker", "host", "error"), _text),
    "last_output": _last_output,
    **dict.fromkeys(("pid", *Usage._fields), _large_count),
    **dict.fromkeys(("started_at", "finished_at"), _time),
    "duration_ms": _duration_ms,
    "exit_code": _signed,
    "signal": _count,
    "outcome": _one_of(Ending, "an outcome"),
}


def parse_history(value: object, name: str) -> list[ImportedRun]:
    if not isinstance(value, list):
        raise InvalidInput(
            name, f"expected a list of runs, got {short_repr(value)}", hint="as export --history writes it"
        )
    runs: list[ImportedRun] = []
    for at, fields in enumerate(value):
        runs.append(_parse_run(fields, f"{name}[{at}]"))
        if at and runs[-1].number != runs[-2].number + 1:
            raise InvalidInput(f"{name}[{at}].number", f"{runs[-1].number} after {runs[-2].number}", hint="in order")
    return runs


def _parse_run(fields: object, name: str) -> ImportedRun:
    if not isinstance(fields, dict):
        raise InvalidInput(name, f"expected an object, got {short_repr(fields)}", hint="as export --history writes it")
    parsed: dict[str, Any] = dict.fromkeys(_RUN_FIELDS)
    for field, value in fields.items():
        if field not in _RUN_FIELDS:
            raise unknown_name("field", field, _RUN_FIELDS)
        if value is not None:
            parsed[field] = _RUN_FIELDS[field](value, f"{name}.{field}")
    ending = parsed.pop("outcome")
    *used, peak = (parsed.pop(field) for field in Usage._fields)
    usage = None if None in used else Usage._make([*used, peak]).known
    needed = {"number": parsed["number"], "outcome": ending, "finished_at": parsed["finished_at"]}
    for field, found in needed.items():
        if found is None and not (field == "finished_at" and ending == Ending.RUNNING):
            raise InvalidInput(f"{name}.{field}", "missing", hint="as export --history writes it")
    parsed["finished_at"] = max(parsed["finished_at"] or 0, parsed["started_at"] or 0)
    of_run = {"worker": parsed["worker"] or "", "host": parsed["host"] or "", "ending": ending, "usage": usage}
    return ImportedRun(**{**parsed, **of_run})


REQUEUED_ERROR: Final = "it ran when it was exported"


# Every name of a field -> its name here, and its parser. "": ignored, since it is derived.
_JOB_FIELDS: Final[dict[str, tuple[str, Reader]]] = {
    # Parsed as by `enqueue`.
    **{name: found for name, found in readers().items() if found[0] in ImportRecord._fields and name != "after"},
    **{name: found for name, found in readers().items() if found[0] == "timeout"},
    "state": ("state", _one_of(State, "a state")),
    "effective_priority": ("effective_priority", _integer(-(2**53), 2**53)),
    **{name: (name, _count) for name in ("attempts", "runs", "crashes", "signal")},
    **{name: (name, read.flag) for name in ("first_attempt_is_free", "held")},
    # A time without a zone is UTC here.
    **{name: ("run_at", _time) for name, (field, _) in readers().items() if field == "run_at"},
    "next_retry_at": ("run_at", _time),
    **{name: (name, _time) for name in ("created_at", "updated_at", "started_at", "finished_at")},
    "duration_ms": ("duration_ms", _duration_ms),
    "wait_ms": ("wait_ms", _large_count),
    "exit_code": ("exit_code", _signed),
    "error": ("error", _text),
    "error_message": ("error", _text),
    "last_output": ("last_output", _last_output),
    "worker": ("worker", _text),
    "locked_by": ("worker", _text),
    "hooks": ("hooks", parse_hooks),
    "limits": ("limits", parse_limits),
    "cron": ("cron", read.schedule),
    "history": ("history", parse_history),
    **dict.fromkeys(
        ("array_index", "reason", "log", "output", "stdout_log", "waiting_time", "locked_at"), ("", read.ignored)
    ),
}


def parse_record(fields: Mapping[str, object], defaults: Defaults) -> ImportRecord:
    """Parse a job with its history; a job that was running becomes pending.

    Raises only InvalidInput and UnknownName, which name the field, for any values.
    """
    parsed: dict[str, Any] = {}
    for name, value in fields.items():
        if (field := _JOB_FIELDS.get(name)) is None:
            raise unknown_name("field", name, _JOB_FIELDS)
        if value is None:
            continue
        kept = field[1](value, name)
        if field[0]:
            if parsed.get(field[0], kept) != kept:
                raise InvalidInput(
                    name, f"{short_repr(value)} contradicts another spelling of it", hint="give one of the two"
                )
            parsed[field[0]] = kept
    for name in ("id", "state", "created_at"):
        if name not in parsed:
            raise InvalidInput(name, "missing", hint="import accepts jobs with a history; use enqueue for new ones")
    if ("command" in parsed) is ("argv" in parsed):
        problem = "not together with command" if "argv" in parsed else "missing, and so is argv"
        raise InvalidInput("argv" if "argv" in parsed else "command", problem, hint="a job has exactly one of the two")
    if "places" in parsed and "key" not in parsed:
        raise InvalidInput("places", "there is no key", hint="add a key, or omit places")
    return _build_record(parsed, defaults)


def _build_record(parsed: dict[str, Any], defaults: Defaults) -> ImportRecord:
    was: State = parsed["state"]
    created: int = parsed["created_at"]
    updated = max(parsed.get("updated_at", created), created)
    is_running = was is State.PROCESSING
    known: list[ImportedRun] = parsed.get("history", [])
    attempts, runs = _counts(parsed, known)
    started = _not_before(parsed.get("started_at"), created)
    finished = _not_before(parsed.get("finished_at"), started or created)
    if is_running or (finished is None and was in FINAL):
        finished = max(updated, started or created)
    latest: dict[str, Any] = {
        "worker": parsed.get("worker"),
        "started_at": started,
        "finished_at": finished if runs or was in FINAL else None,
        "duration_ms": parsed.get("duration_ms"),
        "exit_code": 0 if was is State.COMPLETED else parsed.get("exit_code"),
        "signal": parsed.get("signal"),
        "error": REQUEUED_ERROR if is_running else _error(was, parsed),
        "last_output": parsed.get("last_output"),
    }
    latest, earlier = _with_history(latest, known, was=was)
    run_at = parsed.get("run_at", updated if was is State.FAILED else created)
    priority = parsed.get("priority", defaults.priority)
    queue = parsed.get("queue", defaults.queue)
    is_free = parsed.get("first_attempt_is_free", defaults.first_is_free if "max_retries" not in parsed else False)
    fields: dict[str, Any] = {
        **dict.fromkeys(("command", "argv", "env", "unique_key", "cron", "wait_ms", "host", "pid", "ending")),
        "tags": (),
        "crashes": 0,
        "max_retries": defaults.max_retries,
        "backoff_base": defaults.backoff_base,
        **{name: value for name, value in parsed.items() if name in ImportRecord._fields},
        **latest,
        "state": (State.PENDING if is_running else was).value,
        "queue": queue,
        "priority": priority,
        "first_is_free": is_free,
        "timeout_ms": parsed.get("timeout"),
        "cwd": read.absolute(parsed.get("cwd", defaults.cwd), defaults.cwd),
        # A job held by a schedule is released: the schedule does not know about the imported job.
        "held": parsed.get("held", False) and "cron" not in parsed,
        "attempts": attempts,
        "runs": runs,
        "effective_priority": parsed.get("effective_priority", priority) if was in FINAL else None,
        "eligible_at": _eligible(parsed, runs=runs, run_at=run_at),
        "run_at": run_at,
        "updated_at": updated,
        "earlier": tuple(earlier),
        "was_running": is_running,
        "given": tuple(parsed),
        "hooks": with_own_origin(parsed.get("hooks"), queue, defaults),
    }
    return ImportRecord(**fields)


def with_own_origin(hooks: PackedHooks | None, queue: str, defaults: Defaults) -> PackedHooks | None:
    if hooks is None:
        return None
    of_queue = defaults.by_queue.get(queue)
    return with_origin(hooks, queue=NO_URLS if of_queue is None else of_queue[3], all_jobs=defaults.urls)


def _counts(parsed: Mapping[str, Any], history: list[ImportedRun]) -> tuple[int, int]:
    attempts: int = parsed.get("attempts", 0)
    last = history[-1].number if history else 0
    runs: int = parsed.get("runs", max(last, attempts + (parsed["state"] in (State.COMPLETED, State.PROCESSING))))
    if runs < attempts:
        raise InvalidInput("runs", f"{runs} is less than the attempts: {attempts}", hint="each attempt is a run")
    if history and last != runs:
        raise InvalidInput("history", f"its last run is {last}, and runs is {runs}", hint="give all runs, or none")
    if any(run.ending == Ending.RUNNING for run in history[: None if parsed["state"] is not State.PROCESSING else -1]):
        raise InvalidInput("history", "a run is still running, and the job is not", hint="only the last one may be")
    return attempts, runs


def _with_history(
    latest: dict[str, Any], history: list[ImportedRun], *, was: State
) -> tuple[dict[str, Any], list[ImportedRun]]:
    """The latest run, which is stored in the job itself, and the other runs."""
    if not history:
        return latest, []
    last = history[-1]
    if was is State.PROCESSING:
        began = max(latest["finished_at"], last.started_at or 0)
        last = last._replace(ending=Ending.RELEASED.value, finished_at=began, error=REQUEUED_ERROR)
    known = {"worker": last.worker, "host": last.host, "pid": last.pid}
    if was is State.CANCELLED and (last.finished_at, last.error) != (latest["finished_at"], latest["error"]):
        # Cancelled while it waited: the job does not show the end of the run, see the statement cancel_waiting.
        return {**latest, **known}, history
    facts = last._asdict()
    del facts["number"]
    return facts, history[:-1]


def _error(was: State, parsed: Mapping[str, Any]) -> str | None:
    """Every final state except completed has an error."""
    if was is State.COMPLETED:
        return None
    default = {State.CANCELLED: "cancelled", State.FAILED: "failed", State.DEAD: "failed"}
    error: str | None = parsed.get("error") or default.get(was)
    return error


def _eligible(parsed: Mapping[str, Any], *, runs: int, run_at: int) -> int:
    """When it was first eligible: known for a job with at most one run."""
    created: int = parsed["created_at"]
    if not runs:
        return max(created, run_at)
    if runs == 1 and "started_at" in parsed and "wait_ms" in parsed:
        created = max(created, parsed["started_at"] - parsed["wait_ms"])
    return created


def _not_before(value: int | None, earliest: int) -> int | None:
    return None if value is None else max(value, earliest)
