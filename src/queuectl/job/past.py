"""What `import` accepts: from the fields of a job with a past to a Record, or a clear refusal.

The fields are those that `export` writes. Those of a job record of another tool are understood too, under their names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from queuectl.errors import InvalidInput
from queuectl.job import fields as read
from queuectl.job.hooks import parse_hooks, with_origin
from queuectl.job.lifecycle import FINAL, State
from queuectl.job.newjob import NO_URLS, PackedHooks
from queuectl.job.outcome import Ending
from queuectl.job.pastrun import Reader, count, duration, history, long_count, moment, unknown_field, whole, words
from queuectl.job.record import Record, RunRecord
from queuectl.job.reserved import queue_for_jobs
from queuectl.job.resources import parse_limits
from queuectl.job.secrets import secrets
from queuectl.job.shown import shown
from queuectl.job.spec import Defaults

GIVEN_BACK: Final = "it ran when it was exported"


def flag(value: object, name: str) -> bool:
    if isinstance(value, bool):
        return value
    raise InvalidInput(name, f"expected true or false, got {shown(value)}", hint=f'like "{name}": false')


def state(value: object, name: str) -> State:
    try:
        return State(value.lower() if isinstance(value, str) else "")
    except ValueError as error:
        known = ", ".join(state.value for state in State)
        raise InvalidInput(name, f"not a state: {shown(value)}", hint=f"one of: {known}") from error


# Every spelling -> the name it has here, and who reads it. "": looked at by nobody, since a store makes it anew.
_FIELDS: Final[dict[str, tuple[str, Reader]]] = {
    "id": ("id", read.job_id),
    "command": ("command", read.command),
    "argv": ("argv", read.argv),
    "state": ("state", state),
    "queue": ("queue", queue_for_jobs),
    "priority": ("priority", read.priority),
    "effective_priority": (
        "effective_priority",
        lambda value, name: read.integer(value, name, low=-(2**53), high=2**53),
    ),
    "attempts": ("attempts", count),
    "runs": ("runs", count),
    "crashes": ("crashes", count),
    "max_retries": ("max_retries", read.retries),
    "max_attempts": ("max_retries", read.retries),
    "first_attempt_is_free": ("first_attempt_is_free", flag),
    "backoff_base": ("backoff_base", read.backoff_base),
    "base_backoff": ("backoff_base", read.backoff_base),
    "timeout": ("timeout", read.timeout),
    "timeout_seconds": ("timeout", read.timeout),
    "timeout_sec": ("timeout", read.timeout),
    "timeout_ms": ("timeout", read.timeout_in_ms),
    "run_at": ("run_at", moment),
    "available_at": ("run_at", moment),
    "run_after": ("run_at", moment),
    "next_run_at": ("run_at", moment),
    "next_retry_at": ("run_at", moment),
    "created_at": ("created_at", moment),
    "updated_at": ("updated_at", moment),
    "started_at": ("started_at", moment),
    "finished_at": ("finished_at", moment),
    "duration_ms": ("duration_ms", duration),
    "wait_ms": ("wait_ms", long_count),
    "exit_code": ("exit_code", whole),
    "signal": ("signal", count),
    "error": ("error", words),
    "error_message": ("error", words),
    "worker": ("worker", words),
    "cwd": ("cwd", read.cwd),
    "env": ("env", read.env),
    "secrets": ("secrets", secrets),
    "tags": ("tags", read.tags),
    "depends_on": ("depends_on", read.depends_on),
    "unique_key": ("unique_key", read.unique_key),
    "batch": ("batch", read.batch),
    "key": ("key", read.key),
    "places": ("places", read.places),
    "hooks": ("hooks", parse_hooks),
    "limits": ("limits", parse_limits),
    "cron": ("cron", read.schedule),
    "held": ("held", flag),
    "history": ("history", history),
    **dict.fromkeys(("reason", "log", "output", "stdout_log", "waiting_time", "locked_at"), ("", read.ignored)),
    "locked_by": ("worker", words),
}


def read_record(fields: Mapping[str, object], defaults: Defaults) -> Record:
    """The job that `fields` describe, with its past; what was running waits again.

    Raises InvalidInput or UnknownName, which name the field; never anything else, whatever the values are.
    """
    said: dict[str, Any] = {}
    for name, value in fields.items():
        if (field := _FIELDS.get(name)) is None:
            raise unknown_field(name, _FIELDS)
        if value is None:
            continue
        kept = field[1](value, name)
        if field[0]:
            if said.get(field[0], kept) != kept:
                raise InvalidInput(
                    name, f"{shown(value)} contradicts another spelling of it", hint="give one of the two"
                )
            said[field[0]] = kept
    for name in ("id", "state", "created_at"):
        if name not in said:
            raise InvalidInput(name, "missing", hint="import takes jobs with a past; for new ones use enqueue")
    if ("command" in said) is ("argv" in said):
        problem = "not together with command" if "argv" in said else "missing, and so is argv"
        raise InvalidInput("argv" if "argv" in said else "command", problem, hint="a job has exactly one of the two")
    if "places" in said and "key" not in said:
        raise InvalidInput("places", "there is no key", hint="say whose places they are, by a key, or leave them away")
    return _record(said, defaults)


def _record(said: dict[str, Any], defaults: Defaults) -> Record:
    was: State = said["state"]
    created: int = said["created_at"]
    updated = max(said.get("updated_at", created), created)
    is_running = was is State.PROCESSING
    known: list[RunRecord] = said.get("history", [])
    attempts, runs = _counts(said, known)
    started = _not_before(said.get("started_at"), created)
    finished = _not_before(said.get("finished_at"), started or created)
    if is_running or (finished is None and was in FINAL):
        finished = max(updated, started or created)
    latest: dict[str, Any] = {
        "worker": said.get("worker"),
        "started_at": started,
        "finished_at": finished if runs or was in FINAL else None,
        "duration_ms": said.get("duration_ms"),
        "exit_code": 0 if was is State.COMPLETED else said.get("exit_code"),
        "signal": said.get("signal"),
        "error": GIVEN_BACK if is_running else _error(was, said),
    }
    latest, earlier = _with_history(latest, known, was=was)
    usage = latest.pop("usage", None)
    run_at = said.get("run_at", updated if was is State.FAILED else created)
    priority = said.get("priority", defaults.priority)
    is_free = said.get("first_attempt_is_free", defaults.first_is_free if "max_retries" not in said else False)
    return Record(
        id=said["id"],
        command=said.get("command"),
        argv=said.get("argv"),
        state=(State.PENDING if is_running else was).value,
        queue=said.get("queue", defaults.queue),
        priority=priority,
        max_retries=said.get("max_retries", defaults.max_retries),
        first_is_free=is_free,
        backoff_base=said.get("backoff_base", defaults.backoff_base),
        timeout_ms=said.get("timeout"),
        cwd=read.absolute(said.get("cwd", defaults.cwd), defaults.cwd),
        env=said.get("env"),
        tags=said.get("tags", ()),
        unique_key=said.get("unique_key"),
        cron=said.get("cron"),
        # Of a schedule: held until the one before has ended, by a schedule that does not know of this one.
        held=said.get("held", False) and "cron" not in said,
        attempts=attempts,
        runs=runs,
        crashes=said.get("crashes", 0),
        effective_priority=said.get("effective_priority", priority) if was in FINAL else None,
        eligible_at=_eligible(said, runs=runs, run_at=run_at),
        run_at=run_at,
        created_at=created,
        updated_at=updated,
        host=latest.pop("host", None),
        pid=latest.pop("pid", None),
        ending=latest.pop("ending", None),
        wait_ms=said.get("wait_ms"),
        **latest,
        earlier=tuple(earlier),
        was_running=is_running,
        given=tuple(said),
        batch=said.get("batch"),
        key=said.get("key"),
        depends_on=said.get("depends_on", ()),
        places=said.get("places"),
        hooks=with_own_origin(said.get("hooks"), said.get("queue", defaults.queue), defaults),
        limits=said.get("limits"),
        usage=usage,
        secrets=said.get("secrets", ()),
    )


def with_own_origin(hooks: PackedHooks | None, queue: str, defaults: Defaults) -> PackedHooks | None:
    if hooks is None:
        return None
    of_queue = defaults.by_queue.get(queue)
    return with_origin(hooks, queue=NO_URLS if of_queue is None else of_queue[3], all_jobs=defaults.urls)


def _counts(said: Mapping[str, Any], history: list[RunRecord]) -> tuple[int, int]:
    attempts: int = said.get("attempts", 0)
    last = history[-1].number if history else 0
    runs: int = said.get("runs", max(last, attempts + (said["state"] in (State.COMPLETED, State.PROCESSING))))
    if runs < attempts:
        raise InvalidInput("runs", f"{runs} is less than the attempts: {attempts}", hint="each attempt is a run")
    if history and last != runs:
        raise InvalidInput("history", f"its last run is {last}, and runs is {runs}", hint="give all runs, or none")
    if any(run.ending == Ending.RUNNING for run in history[: None if said["state"] is not State.PROCESSING else -1]):
        raise InvalidInput("history", "a run is still running, and the job is not", hint="only the last one may be")
    return attempts, runs


def _with_history(
    latest: dict[str, Any], history: list[RunRecord], *, was: State
) -> tuple[dict[str, Any], list[RunRecord]]:
    """The latest run as it stands in the job, and the runs that stand apart."""
    if not history:
        return latest, []
    last = history[-1]
    if was is State.PROCESSING:
        began = max(latest["finished_at"], last.started_at or 0)
        last = last._replace(ending=Ending.RELEASED.value, finished_at=began, error=GIVEN_BACK)
    known = {"worker": last.worker, "host": last.host, "pid": last.pid}
    if was is State.CANCELLED and (last.finished_at, last.error) != (latest["finished_at"], latest["error"]):
        # Called off while it waited: what is shown of the run is its end no more, see cancel_waiting.sql.
        return {**latest, **known}, history
    facts = last._asdict()
    del facts["number"]
    return facts, history[:-1]


def _error(was: State, said: Mapping[str, Any]) -> str | None:
    """Every end but success has a line that says why."""
    if was is State.COMPLETED:
        return None
    made_up = {State.CANCELLED: "cancelled", State.FAILED: "failed", State.DEAD: "failed"}
    error: str | None = said.get("error") or made_up.get(was)
    return error


def _eligible(said: Mapping[str, Any], *, runs: int, run_at: int) -> int:
    """When it could first have run: known of a job that has not run yet, or once."""
    created: int = said["created_at"]
    if not runs:
        return max(created, run_at)
    if runs == 1 and "started_at" in said and "wait_ms" in said:
        created = max(created, said["started_at"] - said["wait_ms"])
    return created


def _not_before(value: int | None, earliest: int) -> int | None:
    return None if value is None else max(value, earliest)
