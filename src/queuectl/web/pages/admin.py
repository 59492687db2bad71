"""The pages of workers and settings."""

from __future__ import annotations

from functools import partial
from typing import Any

from queuectl.jobs.model import Job
from queuectl.jobs.states import State
from queuectl.settings import KEYS, resolve_key
from queuectl.store.types import Filter, StopMode
from queuectl.store_threads import WebSession
from queuectl.web.api.admin import change_setting, known_worker
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
    name, now = known_worker(session, ask.param("id")), ask.form.has("now")
    if not ask.is_confirmed:
        jobs = "Running jobs are killed and requeued" if now else "Running jobs finish"
        label, text = "Stop now" if now else "Stop", f"{jobs}, then the worker stops."
        return confirm(ask, label, "worker", text, name=name, back="/workers", is_grave=now)
    session.open_store().claims.request_stop(name, StopMode.NOW if now else StopMode.FINISH)
    return done(f"Worker {name} is stopping {'now' if now else 'after its running jobs'}")


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


def save_setting(session: WebSession, ask: PageRequest) -> Notice:
    key = resolve_key(ask.param("key")).name
    before = session.reads.config().get(key)
    wanted = None if ask.form.has("unset") else ask.form.one("value") or ""
    return _change_setting(key, wanted, session)._replace(undo=partial(_change_setting, key, before))


def _change_setting(key: str, value: str | None, session: WebSession) -> Notice:
    text = change_setting(session, key, value).text
    return done(f"{key} reset to its default, {text}" if value is None else f"{key} set to {text}")
