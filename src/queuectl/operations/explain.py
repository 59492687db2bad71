"""Explain why a job is not running: all reasons that apply, as sentences, the decisive one first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, assert_never

from queuectl.jobs.dependencies import DependencyState, Need
from queuectl.jobs.fields import MAX_PARENTS
from queuectl.jobs.model import Job, Run, Worker
from queuectl.jobs.outcome import Ending, failure_text
from queuectl.jobs.queue_limits import QueueLoad, format_rate
from queuectl.jobs.retry import allowed_failures
from queuectl.jobs.states import State
from queuectl.jobs.wait_reason import Wait, key_full, limit_of_key, reason, waits
from queuectl.operations.wait import is_served
from queuectl.store.reads import Reads
from queuectl.store.types import Link
from queuectl.text import plural
from queuectl.units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, format_duration, from_ms, iso, to_ms

MAX_COUNTED_AHEAD: Final = 10_000  # jobs
MAX_NAMED_WORKERS: Final = 5
MAX_NAMED_PARENTS: Final = 5

_NEEDS: Final = {Need.COMPLETED: "complete", Need.ENDED: "end", Need.FAILED: "fail for good"}


class Reason(NamedTuple):
    """A sentence without its full stop, and advice for the command line. `facts` has the same names for the same code."""

    code: str
    sentence: str
    facts: dict[str, Any]
    advice: str = ""  # with the leading punctuation

    @property
    def message(self) -> str:
        return f"{self.sentence}{self.advice}."

    def to_dict(self) -> dict[str, Any]:
        return {"code": self.code, "message": self.message, **self.facts}


class Explanation(NamedTuple):
    job: Job
    reasons: list[Reason]

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.job.id,
            "state": self.job.state.value,
            "queue": self.job.queue,
            "reasons": [reason.to_dict() for reason in self.reasons],
        }


def explain(store: Reads, ref: str, *, is_alive: Callable[[Worker], bool]) -> Explanation:
    """Explain the job `ref`. Raises JobNotFound or AmbiguousId."""
    job_id = store.resolve(ref)
    history = store.history(job_id)  # first, as in inspect.show
    job = store.get(job_id)
    now_ms = store.now_ms()
    workers = store.workers()
    alive = [worker for worker in workers if is_alive(worker)]
    match job.state:
        case State.BLOCKED | State.PENDING | State.FAILED:
            return Explanation(job, list(_waiting(store, job, alive, now_ms)))
        case State.PROCESSING:
            # It may have ended between the two reads.
            is_cancel_requested = store.is_cancel_requested(job_id)
            return Explanation(
                job, list(_running(job, history, alive, now_ms, is_cancel_requested=is_cancel_requested))
            )
        case State.COMPLETED | State.DEAD | State.CANCELLED:
            return Explanation(job, [_ended(job, _broken_by(store, job), now_ms)])
        case unreachable:
            assert_never(unreachable)


def with_reason(
    job: Job, alive: Sequence[Worker], now_ms: int, *, load: QueueLoad | None, of_key: Sequence[str] = ()
) -> Job:
    """The job with its reason, given the live workers, which the store does not know."""
    if job.state is State.BLOCKED:
        return job  # independent of workers
    line = reason(
        job.state,
        run_at_ms=to_ms(job.run_at),
        now_ms=now_ms,
        attempts=job.attempts,
        allowed=allowed_failures(job.max_retries, first_is_free=job.first_is_free),
        held=job.held,
        served=is_served(job, alive),
        load=load,
        key=job.key,
        of_key=of_key,
        places=job.places,
    )
    return replace(job, reason=line)


# ── it waits ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _waiting(store: Reads, job: Job, alive: Sequence[Worker], now_ms: int) -> Iterator[Reason]:
    run_at_ms, served, load = to_ms(job.run_at), is_served(job, alive), store.queues.loads().get(job.queue)
    of_key = running_of_key(store, job, load)
    limits: dict[str, Any] = {"load": load, "of_key": len(of_key), "places": job.places}
    found = waits(job.state, run_at_ms=run_at_ms, now_ms=now_ms, held=job.held, served=served, **limits)
    for wait in found:
        match wait:
            case Wait.BLOCKED:
                names, parents = _waits_for(store, job.id)
                yield Reason(wait, f"Waiting for {names}", {"parents": parents})
            case Wait.HELD:
                yield _held(job)
            case Wait.RETRY:
                yield _retry(job, run_at_ms - now_ms)
            case Wait.NOT_DUE:
                facts = {"run_at": iso(job.run_at), "due_in_ms": run_at_ms - now_ms}
                yield Reason(wait, f"It is not due until {iso(job.run_at)}, in {_span(run_at_ms - now_ms)}", facts)
            case Wait.PAUSED:
                advice = f": queuectl queue resume {job.queue} continues it"
                yield Reason(wait, f"Its queue {job.queue!r} is paused", {"queue": job.queue}, advice)
            case Wait.FULL | Wait.RATE:
                assert load is not None
                yield _limited(wait, job.queue, load, now_ms)
            case Wait.KEY:
                yield _key_full(job, limit_of_key(job.places, load), of_key)
            case Wait.UNSERVED:
                yield _unserved(job, alive)
                if found == [wait]:  # otherwise it has no position in the queue
                    yield _position(store.ahead(job.id, queues=(job.queue,), most=MAX_COUNTED_AHEAD + 1))
            case Wait.SLOT:
                yield from _queue_position(store, job, alive)
            case unreachable:
                assert_never(unreachable)


def _waits_for(store: Reads, job_id: str) -> tuple[str, list[dict[str, str]]]:
    """The unfinished parents of a blocked job: as a phrase, and each with its need and its state."""
    waiting = [link for link in store.parents([job_id], limit=MAX_PARENTS) if link.state is DependencyState.WAITING]
    if len(waiting) == 1:
        named = [f"{link.parent} to {_NEEDS[link.when]}; it is {link.parent_state}" for link in waiting]
    else:
        named = [f"{link.parent} to {_NEEDS[link.when]} ({link.parent_state})" for link in waiting[:MAX_NAMED_PARENTS]]
    more = [f"{len(waiting) - MAX_NAMED_PARENTS:,} more"] if len(waiting) > MAX_NAMED_PARENTS else []
    *others, last = [*named, *more] or ["other jobs to end"]
    cards = [
        {"id": link.parent, "state": link.parent_state.value, "when": link.when.value, "else": link.otherwise.value}
        for link in waiting
    ]
    return (f"{', '.join(others)} and {last}" if others else last), cards


def _held(job: Job) -> Reason:
    if job.cron is None:
        sentence = "It is held: no worker claims it until it is released"
        return Reason(Wait.HELD, sentence, {}, f": queuectl release {job.id}")
    sentence = f"It waits until the job before it of the schedule {job.cron} has ended"
    return Reason(Wait.HELD, sentence, {"cron": job.cron}, f": queuectl cron show {job.cron}")


def _retry(job: Job, due_in_ms: int) -> Reason:
    attempt, allowed = job.attempts + 1, allowed_failures(job.max_retries, first_is_free=job.first_is_free)
    sentence = (
        f"It waits for a retry: run {job.runs} failed ({failure_text(job.error, job.last_output)}). "
        f"Attempt {attempt} of {allowed} is due at {iso(job.run_at)}, in {_span(due_in_ms)}"
    )
    facts = {"run_at": iso(job.run_at), "due_in_ms": due_in_ms}
    return Reason(Wait.RETRY, sentence, {**facts, "attempt": attempt, "allowed": allowed, **_failure(job)})


def _unserved(job: Job, alive: Sequence[Worker]) -> Reason:
    facts = {"queue": job.queue, "workers": [_worker_facts(worker) for worker in alive]}
    if not alive:
        sentence = f"No worker is running for its queue {job.queue!r}"
        return Reason("no-worker", sentence, facts, ": queuectl worker start")
    names = "; ".join(_serves(worker) for worker in alive[:MAX_NAMED_WORKERS]) + _and_more(len(alive))
    sentence = f"No running worker serves its queue {job.queue!r} ({names})"
    return Reason(Wait.UNSERVED, sentence, facts, f": queuectl worker start --queue {job.queue}")


def _limited(wait: Wait, queue: str, load: QueueLoad, now_ms: int) -> Reason:
    if wait is Wait.FULL:
        sentence = f"Its queue {queue!r} is at its concurrency limit: {load.running:,} of {load.concurrency:,} jobs are running"
        return Reason(wait, sentence, {"queue": queue, "concurrency": load.concurrency, "running": load.running})
    opens_at = now_ms if load.opens_at is None else load.opens_at
    rate = None if load.rate is None else format_rate(load.rate)
    sentence = f"Its queue {queue!r} is at its rate limit of {rate}: the next job can start at {iso(from_ms(opens_at))}"
    return Reason(wait, sentence, {"queue": queue, "rate": rate, "opens_at": iso(from_ms(opens_at))})


def running_of_key(store: Reads, job: Job, load: QueueLoad | None) -> Sequence[str]:
    """The IDs of the running jobs with the key of this job, if that is limited."""
    if job.key is None or limit_of_key(job.places, load) is None:
        return ()
    return store.queues.running_keys().get((job.queue, job.key), ())


def _key_full(job: Job, most: int | None, of_key: Sequence[str]) -> Reason:
    details = key_full(job.key, of_key, most)
    facts = {"queue": job.queue, "key": job.key, "per_key": most, "running": list(of_key)}
    return Reason(Wait.KEY, f"{details[0].upper()}{details[1:]}", facts)


def _serves(worker: Worker) -> str:
    what = "all queues" if worker.queues is None else ", ".join(worker.queues)
    return f"{worker.id} serves {what}" + (" but is stopping" if worker.state == "stopping" else "")


def _queue_position(store: Reads, job: Job, alive: Sequence[Worker]) -> Iterator[Reason]:
    serving = [worker for worker in alive if is_served(job, [worker])]
    slots, busy = sum(worker.slots for worker in serving), sum(worker.busy for worker in serving)
    cards = [_worker_facts(worker) for worker in serving]
    is_full = all(worker.busy >= worker.slots for worker in serving)
    if is_full:
        names = ", ".join(f"{one.id} {one.busy} of {one.slots}" for one in serving[:MAX_NAMED_WORKERS]) + _and_more(
            len(serving)
        )
        which = "The only slot that serves" if slots == 1 else f"All {slots:,} slots that serve"
        sentence = f"{which} its queue {job.queue!r} {'is' if slots == 1 else 'are'} busy ({names})"
        yield Reason("slots-busy", sentence, {"slots": slots, "busy": busy, "workers": cards})
    # Workers may serve different queues: the smallest number of jobs ahead counts.
    lines = dict.fromkeys(worker.queues for worker in serving)
    ahead = min(store.ahead(job.id, queues=queues, most=MAX_COUNTED_AHEAD + 1) for queues in lines)
    if ahead:
        yield _position(ahead)
    elif not is_full:
        sentence = "It is next: a slot is free, and a worker should claim it within moments"
        yield Reason("next", sentence, {"slots": slots, "busy": busy, "workers": cards})


def _position(ahead: int) -> Reason:
    if not ahead:
        return Reason("first", "It is first in its queue", {"ahead": 0})
    more, count = ahead > MAX_COUNTED_AHEAD, min(ahead, MAX_COUNTED_AHEAD)
    named = f"More than {count:,} jobs are" if more else "One job is" if count == 1 else f"{count:,} jobs are"
    return Reason("behind-others", f"{named} ahead of it", {"ahead": count, "more": more})


def _worker_facts(worker: Worker) -> dict[str, Any]:
    queues = None if worker.queues is None else list(worker.queues)
    return {"id": worker.id, "state": worker.state, "slots": worker.slots, "busy": worker.busy, "queues": queues}


# ── it runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _running(
    job: Job, history: Sequence[Run], alive: Sequence[Worker], now_ms: int, *, is_cancel_requested: bool
) -> Iterator[Reason]:
    if not is_served(job, alive):
        sentence = f"Its worker {job.worker} is dead or sends no heartbeat"
        advice = ". Any running worker recovers the job. If there is none, start one, or run queuectl doctor --fix"
        yield Reason("worker-lost", sentence, {"worker": job.worker}, advice)
    if is_cancel_requested:
        sentence = "It is being cancelled: its processes get SIGTERM, then SIGKILL after kill-grace"
        yield Reason("being-cancelled", sentence, {"worker": job.worker})
    yield _run(job, next((run for run in reversed(history) if run.outcome is Ending.RUNNING), None), now_ms)


def _run(job: Job, run: Run | None, now_ms: int) -> Reason:
    started_at = job.started_at if run is None else run.started_at
    ran_ms = 0 if started_at is None else max(0, now_ms - to_ms(started_at))
    left_ms = None if job.timeout_ms is None else max(0, job.timeout_ms - ran_ms)
    host, pid = (None, None) if run is None else (run.host, run.pid)
    where = f"on worker {job.worker}" + (f" at {host}" if host else "")
    which = f"run {job.runs}" + (f", PID {pid}" if pid else "")
    sentence = f"Running for {_span(ran_ms)} {where} ({which}), since {iso(started_at)}"
    if left_ms is not None and job.timeout_ms is not None:
        sentence += f". {_span(left_ms)} of its timeout of {format_duration(job.timeout_ms)} are left"
    facts = {"run": job.runs, "worker": job.worker, "host": host, "pid": pid}
    times = {"started_at": iso(started_at), "running_ms": ran_ms, "timeout_left_ms": left_ms}
    return Reason("running", sentence, {**facts, **times})


# ── it has ended ────────────────────────────────────────────────────────────────────────────────────────────────────


def _broken_by(store: Reads, job: Job) -> Link | None:
    """The dependency that cancelled the job."""
    if job.state is not State.CANCELLED or not job.depends_on:
        return None
    links = store.parents([job.id], limit=MAX_PARENTS)
    return next((link for link in links if link.state is DependencyState.BROKE), None)


def _ended(job: Job, broken: Link | None, now_ms: int) -> Reason:
    ago_ms = 0 if job.finished_at is None else max(0, now_ms - to_ms(job.finished_at))
    when = f"at {iso(job.finished_at)}, {_span(ago_ms)} ago"
    logs = f"queuectl logs {job.id} shows what it printed"
    match job.state:
        case State.COMPLETED:
            took = "" if job.duration_ms is None else f" after {_span(job.duration_ms)}"
            sentence, again = f"It completed{took}, {when}", None
        case State.DEAD:
            sentence, again = f"It is dead: {_why_dead(job)}. It ended {when}", f"queuectl dlq retry {job.id}"
        case _:
            sentence, again = f"It was cancelled {when}", f"queuectl retry {job.id}"
            if broken is not None:
                sentence += f", because its dependency {broken.parent} is {broken.parent_state}"
    details = [*([f"{again} runs it again"] if again else []), *([logs] if job.runs else [])]
    advice = f". {' and '.join(details)}" if details else ""
    facts: dict[str, Any] = {"finished_at": iso(job.finished_at), "exit_code": job.exit_code, "signal": job.signal}
    facts |= {**_failure(job), "retry": again}
    if job.state is State.CANCELLED:
        facts["parent"] = None if broken is None else {"id": broken.parent, "state": broken.parent_state.value}
    return Reason(job.state.value, sentence, facts, advice)


def _why_dead(job: Job) -> str:
    allowed = allowed_failures(job.max_retries, first_is_free=job.first_is_free)
    if job.attempts >= allowed:
        return f"{job.attempts:,} of {allowed:,} runs failed, the last with {failure_text(job.error, job.last_output)}"
    return f"{plural(job.crashes, 'worker')} died with it, as many as max-crashes allows"


def _failure(job: Job) -> dict[str, str | None]:
    return {"error": job.error, "last_output": job.last_output}


def _span(ms: int) -> str:
    """Rounded: `3d4h`, `59m59s`, `2.5s`."""
    for above, step in ((DAY_MS, HOUR_MS), (HOUR_MS, MINUTE_MS), (10 * SECOND_MS, SECOND_MS), (SECOND_MS, 100)):
        if ms >= above:
            return format_duration(ms - ms % step)
    return format_duration(ms)


def _and_more(count: int) -> str:
    return f" and {count - MAX_NAMED_WORKERS:,} more" if count > MAX_NAMED_WORKERS else ""
