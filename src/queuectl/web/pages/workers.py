"""Who works, and on what."""

from __future__ import annotations

from typing import Any

from queuectl.errors import WorkerNotFound
from queuectl.job.lifecycle import State
from queuectl.job.model import Worker
from queuectl.store.protocol import Filter, StopMode
from queuectl.web.desk import Desk
from queuectl.web.pages.asked import Ask, Done, Shown, back_to, confirm
from queuectl.web.pages.notices import done

MOST_RUNNING = 200  # that are shown, over all workers


def show(desk: Desk, ask: Ask) -> Shown:
    rows = workers(desk)
    running = list(desk.reads.jobs(Filter(frozenset({State.PROCESSING})), limit=MOST_RUNNING))
    by_worker: dict[str | None, list[Any]] = {}
    for job in running:
        by_worker.setdefault(job.worker, []).append(job)
    values = {
        "workers": rows,
        "running": by_worker,
        "slots": sum(row["slots"] for row in rows if row["state"] != "lost"),
        "busy": sum(row["busy"] for row in rows if row["state"] != "lost"),
    }
    return Shown("workers.html", "Workers", values)


def workers(desk: Desk) -> list[dict[str, Any]]:
    serves = desk.is_serving()
    return [_row(worker, lives=serves(worker)) for worker in sorted(desk.reads.workers(), key=lambda one: one.id)]


def _row(worker: Worker, *, lives: bool) -> dict[str, Any]:
    return {
        "id": worker.id,
        "host": worker.host,
        "pid": worker.pid,
        "state": worker.state if lives else "lost",
        "slots": worker.slots,
        "busy": worker.busy,
        "queues": worker.queues,
        "started_at": worker.started_at,
        "heartbeat_at": worker.heartbeat_at,
        "jobs_done": worker.jobs_done,
    }


def stop(desk: Desk, ask: Ask) -> Shown | Done:
    name, now = ask.param("id"), ask.form.has("now")
    if not any(worker.id == name for worker in desk.reads.workers()):
        raise WorkerNotFound(name)
    if not ask.is_confirmed:
        jobs = "Running jobs are killed and requeued" if now else "Running jobs finish"
        label, text = "Stop now" if now else "Stop", f"{jobs}, then the worker stops."
        return confirm(ask, label, "worker", text, name=name, back="/workers", is_grave=now)
    desk.open_store().request_stop(name, StopMode.NOW if now else StopMode.FINISH)
    how = "ends its jobs and stops" if now else "finishes what it runs and stops"
    return Done(back_to(ask.form, "/workers"), done(f"Worker {name} {how}"))
