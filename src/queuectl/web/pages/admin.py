"""The pages of workers and settings."""

from __future__ import annotations

from typing import Any

from queuectl.config import change_settings
from queuectl.errors import WorkerNotFound
from queuectl.jobs.model import Job
from queuectl.jobs.states import State
from queuectl.settings import KEYS, resolve_key
from queuectl.store.types import Filter, StopMode
from queuectl.store_threads import WebSession
from queuectl.web.pages.render import Notice, PageRequest, View, confirm, done

MAX_RUNNING_SHOWN = 200  # in total


def show_workers(session: WebSession, ask: PageRequest) -> View:
    workers = sorted(session.workers(), key=lambda worker: worker.id)
    by_worker: dict[str | None, list[Job]] = {}
    for job in session.reads.jobs(Filter(frozenset({State.PROCESSING})), limit=MAX_RUNNING_SHOWN):
        by_worker.setdefault(job.worker, []).append(job)
    values = {
        "workers": workers,
        "running": by_worker,
        "slots": sum(worker.slots for worker in workers if worker.state != "lost"),
        "busy": sum(worker.busy for worker in workers if worker.state != "lost"),
    }
    return View("workers.html", "Workers", values)


def stop_worker(session: WebSession, ask: PageRequest) -> View | Notice:
    name, now = ask.param("id"), ask.form.has("now")
    if not any(worker.id == name for worker in session.reads.workers()):
        raise WorkerNotFound(name)
    if not ask.is_confirmed:
        jobs = "Running jobs are killed and requeued" if now else "Running jobs finish"
        label, text = "Stop now" if now else "Stop", f"{jobs}, then the worker stops."
        return confirm(ask, label, "worker", text, name=name, back="/workers", is_grave=now)
    session.open_store().claims.request_stop(name, StopMode.NOW if now else StopMode.FINISH)
    how = "kills its jobs and stops" if now else "finishes its running jobs and stops"
    return done(f"Worker {name} {how}")


def show_settings(session: WebSession, ask: PageRequest) -> View:
    about = {key.name: key for key in KEYS}
    rows: list[dict[str, Any]] = [
        {
            **entry._asdict(),
            "about": about[entry.key].about,
            "form": about[entry.key].form,
            "default_text": about[entry.key].text(about[entry.key].default),
        }
        for entry in session.settings.entries()
    ]
    return View("settings.html", "Settings", {"settings": rows})


def change_setting(session: WebSession, ask: PageRequest) -> Notice:
    key = ask.param("key")
    resolve_key(key)
    before = session.reads.config().get(key)
    wanted = None if ask.form.has("unset") else ask.form.one("value") or ""
    return _change_setting(session, key, wanted, before=before)


def _change_setting(session: WebSession, key: str, value: str | None, *, before: str | None) -> Notice:
    changes = change_settings(session.reads.config(), {key: value})
    session.open_store().set_config(changes)
    (name,) = changes
    text = session.settings.entry(name).text
    message = f"{name} reset to its default, {text}" if value is None else f"{name} set to {text}"

    def back(again: WebSession) -> Notice:
        return _change_setting(again, name, before, before=None)._replace(undo=None)

    return done(message, undo=back)
