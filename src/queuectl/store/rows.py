"""Rows of jobs, runs and workers, as values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from queuectl.jobs.dependencies import parse_dependencies
from queuectl.jobs.fingerprint import fingerprint
from queuectl.jobs.model import Claim, Job, Run, Worker
from queuectl.jobs.outcome import Ending, Exited, Settlement, Signalled, settle_cancelled
from queuectl.jobs.priority import Ageing, Standing, effective_priority
from queuectl.jobs.queue_limits import QueueLoad
from queuectl.jobs.resources import Usage
from queuectl.jobs.retry import allowed_failures
from queuectl.jobs.states import WAITING, State
from queuectl.jobs.wait_reason import reason
from queuectl.store.types import Row
from queuectl.text import WEBHOOK_QUEUE
from queuectl.units import from_ms

if TYPE_CHECKING:
    from queuectl.store.types import End, Span, Start

# The columns that `job` reads, in its order.
JOB_COLUMNS: Final = (
    "seq, id, command, argv, state, queue, priority, effective_priority, eligible_at, missed, attempts, runs, crashes,"
    " max_retries, first_is_free, backoff_base, timeout_ms, run_at, created_at, updated_at, started_at, finished_at,"
    " duration_ms, wait_ms, exit_code, signal, error, worker, cwd, env, tags, unique_key, held, log, cron, batch, key,"
    " places, hooks, limits, secrets, last_output, depends_on"
)
# Columns that `claim` reads in addition to those of `ready`.
CLAIM_FIELDS: Final = ("key", "depends_on", "hooks", "limits", "secrets")
MAX_PARENTS_SHOWN: Final = 4  # in the reason of a blocked job, and one to see that there are more


class Present(NamedTuple):
    """What a job is shown with that its row does not contain: it changes without a write to the row."""

    now_ms: int
    last_seq: int
    ageing: Ageing
    served: frozenset[str] | None  # queues that some worker serves; None: all
    brakes: Mapping[str, QueueLoad] = {}  # of queues that are paused or limited
    of_key: Mapping[tuple[str, str], Sequence[str]] = {}  # running jobs by queue and key, where keys are limited

    def serves(self, queue: str) -> bool:
        return self.served is None or queue in self.served


def job(row: Row, present: Present) -> Job:
    (
        seq, id_, command, argv, state_, queue, priority, frozen_priority, eligible_at, missed, attempts, runs, crashes,
        max_retries, first_is_free, backoff_base, timeout_ms, run_at, created_at, updated_at, started_at, finished_at,
        duration_ms, wait_ms, exit_code, signal, error, worker, cwd, env, tags, unique_key, held, log, cron, batch, key,
        places, hooks, limits, secrets, last_output, depends_on, waits_for,
    ) = row  # fmt: skip
    state = State(state_)
    if frozen_priority is None:
        since = present.now_ms if state is State.BLOCKED else eligible_at  # blocked jobs do not age
        standing = Standing(priority, seq, since, missed)
        shown = effective_priority(present.ageing, standing, now_ms=present.now_ms, last_seq=present.last_seq)
    else:
        shown = frozen_priority
    why = reason(
        state,
        run_at_ms=run_at,
        now_ms=present.now_ms,
        attempts=attempts,
        allowed=allowed_failures(max_retries, first_is_free=bool(first_is_free)),
        held=bool(held),
        served=present.serves(queue),
        cron=cron,
        load=present.brakes.get(queue),
        key=key,
        of_key=() if key is None else present.of_key.get((queue, key), ()),
        parents=() if waits_for is None else [tuple(parent) for parent in json.loads(waits_for)],
        places=places,
    )
    # By position: rows are read by the million.
    return Job(
        seq, id_, command, _tuple_or(argv, None), state, queue, priority, shown, attempts, runs, crashes, max_retries,
        bool(first_is_free), backoff_base, timeout_ms, from_ms(run_at), from_ms(created_at), from_ms(updated_at),
        _moment(started_at), _moment(finished_at), duration_ms, wait_ms, exit_code, signal, error, worker, cwd,
        {} if env is None else json.loads(env), tuple(json.loads(tags)) if tags != "[]" else (), unique_key, bool(held), why,
        log, cron, batch, key, places,
        depends_on=() if depends_on is None else parse_dependencies(json.loads(depends_on)),
        hooks=_loads(hooks), limits=_loads(limits), secrets=_tuple_or(secrets, ()), last_output=last_output,
    )  # fmt: skip


def _loads(packed: str | None) -> Any:
    return None if packed is None else json.loads(packed)


def _tuple_or(packed: str | None, empty: Any) -> Any:
    return empty if packed is None else tuple(json.loads(packed))


class Subject(NamedTuple):
    """A job that a command changes, with the fields that decide about it."""

    seq: int
    id: str
    state: State
    queue: str
    worker: str | None
    token: str | None
    log: str | None
    standing: Standing
    run_at: int
    ready: bool
    held: bool
    runs: int
    updated_at: int
    unique_key: str | None = None
    key: str | None = None

    def waited(self, now_ms: int) -> Standing:
        """Its standing after ageing: blocked jobs do not age."""
        return self.standing._replace(eligible_ms=now_ms) if self.state is State.BLOCKED else self.standing


def subject(row: Row) -> Subject:
    """From the columns of `standing`."""
    seq, id_, state, queue, worker, token, log, priority, eligible_at, missed, run_at, ready, held, *rest = row
    standing = Standing(priority, seq, eligible_at, missed)
    return Subject(seq, id_, State(state), queue, worker, token, log, standing, run_at, bool(ready), bool(held), *rest)


def claim(row: Row, *, token: str, run: int, log: str, **rest: str | None) -> Claim:
    """From the columns of `ready`, without its rank. `rest`: the columns named in CLAIM_FIELDS."""
    seq, id_, _, command, argv, queue, attempts, crashes, max_retries, free, base, timeout_ms, cwd, env = row[:14]
    depends_on = rest["depends_on"]
    return Claim(
        seq, id_, token, run, command, _tuple_or(argv, None), queue, attempts, crashes, max_retries, bool(free), base,
        timeout_ms, cwd, _loads(env), log, rest["key"],
        parents=() if depends_on is None else tuple(one.id for one in parse_dependencies(json.loads(depends_on))),
        hooks=_loads(rest["hooks"]), limits=_loads(rest["limits"]), secrets=_tuple_or(rest["secrets"], ()),
    )  # fmt: skip


def by_key(found: Iterable[Row]) -> dict[tuple[str, str], list[str]]:
    """From the rows of `running_keys`: the ids, by queue and key."""
    running: dict[tuple[str, str], list[str]] = {}
    for queue, key, job_id in found:
        running.setdefault((queue, key), []).append(job_id)
    return running


def run(row: Row) -> Run:
    number, worker, host, pid, started, finished, duration, exit_code, signal, error, ending, *output, usage, last = row
    ended = (duration, exit_code, signal, error, Ending(ending), *output, read_usage(usage), last)
    return Run(number, worker, host, pid, _moment(started), _moment(finished), *ended)


def read_usage(text: str | None) -> Usage | None:
    return None if text is None else Usage(*json.loads(text))


def worker(row: Row) -> Worker:
    id_, host, pid, home, state, slots, busy, queues, started, heartbeat, *rest = row
    times = from_ms(started), from_ms(heartbeat)
    return Worker(id_, host, pid, home, state, slots, busy, _tuple_or(queues, None), *times, *rest)


def served_queues(queues_of_workers: Sequence[tuple[str, ...] | None]) -> frozenset[str] | None:
    """The queues that some worker serves, None if one serves all. Every worker delivers webhooks, too."""
    if any(queues is None for queues in queues_of_workers):
        return None
    return frozenset(queue for queues in queues_of_workers if queues for queue in (*queues, WEBHOOK_QUEUE))


def _moment(ms: int | None) -> datetime | None:
    return None if ms is None else from_ms(ms)


class Settled(NamedTuple):
    """The parameters of `settle` about the settlement of a run. Plain text and numbers: sqlite3 searches for an adapter for anything else,
    half a microsecond each."""

    seq: int
    token: str
    is_cancel: int
    state: str
    ending: str | None
    waits: int
    is_due: int
    retry_at: int | None
    attempts: int
    crashes: int
    exit_code: int | None
    signal: int | None
    error: str | None
    fingerprint: str | None


class RunResult(NamedTuple):
    """The parameters of `settle` about the process of a run. None: keep the value in the row of the job."""

    started_at: int | None
    finished_at: int
    duration_ms: int | None
    pid: int | None
    log_from: int | None
    log_to: int | None
    last_output: str | None = None
    usage: str | None = None
    log: str | None = None


def settled(claim: Claim, settlement: Settlement, *, last_output: str | None, now: int, is_cancel: bool) -> Settled:
    waits, retry_in = settlement.state in WAITING, settlement.retry_in_ms
    return Settled(
        claim.seq, claim.token, int(is_cancel), str(settlement.state),
        None if settlement.ending is None else str(settlement.ending), int(waits), int(waits and retry_in == 0),
        now + retry_in if settlement.state is State.FAILED else None, settlement.attempts, settlement.crashes,
        settlement.exit_code, settlement.signal, settlement.error,
        fingerprint(settlement.state, settlement.error, last_output),
    )  # fmt: skip


def run_result(end: End, *, now: int) -> RunResult:
    started_at, duration = now - _milliseconds(end.age), _milliseconds(end.duration)
    # As a JSON list: no query selects by these numbers.
    usage = None if end.usage is None else f"[{','.join(map(str, end.usage.known))}]"
    log = _log_of(end.claim, end.log_from)
    output = end.log_from, end.log_to, end.last_output
    return RunResult(started_at, started_at + duration, duration, end.pid, *output, usage, log)


def lost_result(claim: Claim, span: Span, *, now: int) -> RunResult:
    """Of a run whose worker is dead. `span`: its output."""
    return RunResult(None, now, None, None, *span, log=_log_of(claim, span.log_from))


def started(start: Start, *, now: int) -> dict[str, Any]:
    """The parameters of `start`."""
    started_at = now - _milliseconds(start.age)
    of_run = {"seq": start.claim.seq, "token": start.claim.token, "pid": start.pid, "started_at": started_at}
    return {**of_run, "log": _log_of(start.claim, start.log_from), "log_from": start.log_from}


def _log_of(claim: Claim, log_from: int | None) -> str | None:
    """The log of the job, None to keep the value in its row: this run has printed nothing."""
    return None if log_from is None else claim.log


def cancelled(end: End) -> Settlement:
    """The settlement of an end if a cancel was recorded before it."""
    found = end.settlement
    if found.ending is Ending.CANCELLED:
        return found
    how: Exited | Signalled | None = None if found.exit_code is None else Exited(found.exit_code)
    return settle_cancelled(end.claim, how if found.signal is None else Signalled(found.signal))


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
