"""The JSON of jobs, runs, workers and statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from queuectl.jobs.resources import Usage
from queuectl.jobs.stats import Point, TimeBuckets, percentile_ms
from queuectl.units import from_ms, iso

if TYPE_CHECKING:
    from queuectl.jobs.model import Job, Run, Worker

_PERCENTILES: Final = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))


def job_to_dict(job: Job, *, show_env: bool) -> dict[str, Any]:
    """The values of `env` are hidden without `show_env`."""
    return {
        "id": job.id,
        "command": job.command,
        "argv": None if job.argv is None else list(job.argv),
        "state": job.state.value,
        "queue": job.queue,
        "priority": job.priority,
        "effective_priority": job.effective_priority,
        "attempts": job.attempts,
        "runs": job.runs,
        "crashes": job.crashes,
        "max_retries": job.max_retries,
        "backoff_base": job.backoff_base,
        "timeout": job.timeout,
        "run_at": iso(job.run_at),
        "created_at": iso(job.created_at),
        "updated_at": iso(job.updated_at),
        "started_at": iso(job.started_at),
        "finished_at": iso(job.finished_at),
        "duration_ms": job.duration_ms,
        "wait_ms": job.wait_ms,
        "exit_code": job.exit_code,
        "signal": job.signal,
        "error": job.error,
        "worker": job.worker,
        "cwd": job.cwd,
        "env": dict(job.env) if show_env else dict.fromkeys(job.env, "***"),
        "tags": list(job.tags),
        "depends_on": [parent.to_json() for parent in job.depends_on],
        "unique_key": job.unique_key,
        "cron": job.cron,
        "held": job.held,
        "reason": job.reason,
        "log": job.log,
        "limits": dict(job.limits or {}),
        "secrets": list(job.secrets),
    }


def run_to_dict(run: Run) -> dict[str, Any]:
    return {
        "number": run.number,
        "worker": run.worker,
        "host": run.host,
        "pid": run.pid,
        "started_at": iso(run.started_at),
        "finished_at": iso(run.finished_at),
        "duration_ms": run.duration_ms,
        "exit_code": run.exit_code,
        "signal": run.signal,
        "error": run.error,
        "outcome": run.outcome.value,
        **usage_to_dict(run.usage),
    }


def worker_to_dict(worker: Worker) -> dict[str, Any]:
    return {
        "id": worker.id,
        "host": worker.host,
        "pid": worker.pid,
        "state": worker.state,
        "slots": worker.slots,
        "busy": worker.busy,
        "queues": None if worker.queues is None else list(worker.queues),
        "started_at": iso(worker.started_at),
        "heartbeat_at": iso(worker.heartbeat_at),
        "jobs_done": worker.jobs_done,
    }


def usage_to_dict(usage: Usage | None) -> dict[str, Any]:
    return dict.fromkeys(Usage._fields) if usage is None else usage._asdict()


def point_to_dict(point: Point) -> dict[str, Any]:
    """The JSON object of a point. Times are of the completed jobs; percentiles are interpolated from a histogram."""
    return {
        "at": iso(from_ms(point.at_ms)),
        "covers_ms": point.covers_ms,
        **point.counts._asdict(),
        "waiting": point.waiting,
        "running": point.running,
        "oldest_waiting_ms": point.oldest_ms,
        "duration_ms": _summarize(point.run),
        "wait_ms": _summarize(point.wait),
    }


def _summarize(times: TimeBuckets) -> dict[str, float | None]:
    average = times.total_ms / times.jobs if times.jobs else None
    return {"count": times.jobs, "avg": average, **{name: percentile_ms(times, part) for name, part in _PERCENTILES}}
