"""The pages of workers: all of them, and one with its slots, its running jobs and its latest runs; to stop and restart it."""

from __future__ import annotations

from itertools import islice
from operator import attrgetter
from typing import Any, Final

from queuectl.errors import WorkerNotFound
from queuectl.jobs.model import Job, Worker
from queuectl.jobs.states import State
from queuectl.operations.bulk import find_jobs
from queuectl.store.types import Filter, Sort, StopMode
from queuectl.store_threads import WebSession
from queuectl.text import plural
from queuectl.web.api.admin import known_worker
from queuectl.web.pages.jobs import table
from queuectl.web.pages.render import Notice, PageRequest, View, confirm, done

MAX_SLOTS_SHOWN: Final = 100
MAX_RUNS_SHOWN: Final = 20
# Jobs have no index by worker: the latest runs are searched among so many that ended last.
MAX_ENDED_READ: Final = 300
ENDED: Final = (State.COMPLETED, State.DEAD)


def show(session: WebSession, ask: PageRequest) -> View:
    workers = sorted(session.workers(), key=attrgetter("id"))
    values: dict[str, Any] = {
        "workers": workers,
        "summary": summarize(workers),
    }
    return View("workers.html", "Workers", values)


def summarize(workers: list[Worker]) -> str:
    """The busy slots of the live workers, and the lost workers: their slots run nothing, and their jobs are taken over."""
    alive = [worker for worker in workers if worker.state != "lost"]
    found = []
    if alive:
        slots, busy = sum(worker.slots for worker in alive), sum(worker.busy for worker in alive)
        found.append(f"{busy:,} of {plural(slots, 'slot')} busy")
    if lost := [worker for worker in workers if worker.state == "lost"]:
        jobs = sum(worker.busy for worker in lost)
        found.append(
            f"{plural(len(lost), 'worker')} lost" + (f", {plural(jobs, 'job')} to be taken over" if jobs else "")
        )
    return "; ".join(found)


def show_one(session: WebSession, ask: PageRequest) -> View:
    name = ask.param("id")
    worker = next((one for one in session.workers() if one.id == name), None)
    if worker is None:
        raise WorkerNotFound(name)
    claims = islice(session.reads.running(name), MAX_SLOTS_SHOWN)
    running = sorted(find_jobs(session.reads, [claim.id for claim in claims]).values(), key=attrgetter("seq"))
    started = [job for job in running if job.started_at is not None]
    runs = _latest_runs(session, name)
    values: dict[str, Any] = {
        "worker": worker,
        "running": started,
        "prefetched": [job for job in running if job.started_at is None],
        "free": 0 if worker.state == "lost" else max(0, worker.slots - len(started)),
        "runs": runs,
        "usage": {one.id: one.run.usage for one in session.reads.latest_runs([job.id for job in runs])},
        "most_read": MAX_ENDED_READ,
        **table(session.reads, ENDED),
    }
    return View("worker.html", f"Worker {name}", values)


def _latest_runs(session: WebSession, name: str) -> list[Job]:
    """The jobs that ended last and ran last on this worker, the newest first."""
    ended = [
        job
        for state in ENDED
        for job in session.reads.jobs(Filter(frozenset({state})), sort=Sort.FINISHED, limit=MAX_ENDED_READ)
        if job.worker == name
    ]
    return sorted(ended, key=lambda job: (job.finished_at, job.seq), reverse=True)[:MAX_RUNS_SHOWN]


def stop(session: WebSession, ask: PageRequest) -> View | Notice:
    name, now = known_worker(session, ask.param("id")), ask.form.has("now")
    if not ask.is_confirmed:
        jobs = "Running jobs are killed and requeued" if now else "Running jobs finish"
        label, text = "Stop now" if now else "Stop", f"{jobs}, then the worker stops."
        return confirm(ask, label, "worker", text, name=name, back="/workers", is_grave=now)
    session.open_store().claims.request_stop(name, StopMode.NOW if now else StopMode.FINISH)
    return done(f"Worker {name} is stopping {'now' if now else 'after its running jobs'}")


def restart(session: WebSession, ask: PageRequest) -> View | Notice:
    name = known_worker(session, ask.param("id"))
    if not ask.is_confirmed:
        text = "Running jobs continue, and the restarted worker adopts them."
        return confirm(ask, "Restart", "worker", text, name=name, back="/workers")
    session.open_store().claims.request_stop(name, StopMode.RESTART)
    return done(f"Worker {name} is restarting")
