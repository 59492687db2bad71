"""The page of schedules: their next and last runs, and forms to add and change them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

from queuectl.config import environ
from queuectl.cron import operations as use
from queuectl.cron.operations import find_zone, local_zone_name
from queuectl.errors import InvalidInput, QueuectlError, Unavailable
from queuectl.store_threads import WebSession
from queuectl.units import from_ms
from queuectl.web.pages.render import Notice, PageRequest, Redirect, View, confirm, done, part

UPCOMING: Final = 5


def show(session: WebSession, ask: PageRequest, error: QueuectlError | None = None) -> View:
    fields, rows = (ask.query if error is None else ask.form), []
    for one in use.list_schedules(session.reads):
        schedule = one.schedule
        rows.append(
            {
                **schedule.to_dict(one.last),
                "next": _in_zone(use.upcoming(session.reads, schedule.name, UPCOMING), schedule.tz),
                "last_at": None if one.last is None else from_ms(one.last.at_ms),
            }
        )
    values = {
        "schedules": rows,
        "value_of": lambda name: fields.text(name) or "",
        "error": error,
        "zone": _zone_here(),
    }
    return View("cron.html", "Schedules", values, status=200 if error is None else 422)


def _in_zone(times_ms: Sequence[int], zone: str) -> list[tuple[datetime, str]]:
    """Each time with its text in the time zone of the schedule; all with seconds, or none."""
    moments = [from_ms(at).astimezone(find_zone(zone)) for at in times_ms]
    form = "%a %Y-%m-%d %H:%M:%S" if any(moment.second for moment in moments) else "%a %Y-%m-%d %H:%M"
    return [(moment, moment.strftime(form)) for moment in moments]


def _zone_here() -> str:
    """The default time zone; empty if that of this host has no IANA name, so that a schedule has to name one."""
    try:
        return local_zone_name(environ())
    except InvalidInput:
        return ""


def run(session: WebSession, ask: PageRequest) -> View | Redirect:
    name = ask.param("name")
    if not ask.is_confirmed:
        text = "Enqueue a job of this schedule now. The next runs do not change."
        return confirm(ask, "Run now", "schedule", text, name=name, back="/cron")
    job = session.schedules.run(name)
    return Redirect(f"/jobs/{part(job.id)}", done(f"Job {job.id} of the schedule {name} enqueued"))


def remove(session: WebSession, ask: PageRequest) -> View | Notice:
    name = ask.param("name")
    if not ask.is_confirmed:
        text = "The schedule stops. Jobs that it has enqueued are kept."
        return confirm(ask, "Remove", "schedule", text, name=name, back="/cron", is_grave=True)
    session.schedules.remove(name)
    return done(f"Schedule {name} removed. Its jobs are kept.")


def set_paused(session: WebSession, ask: PageRequest, *, paused: bool) -> Notice:
    name = ask.param("name")
    if use.show(session.reads, name).schedule.is_paused is paused:
        # An undo would revert an earlier action.
        return done(f"Schedule {name} is already {'paused' if paused else 'running'}")
    return _set_paused(name, paused, session)._replace(undo=partial(_set_paused, name, not paused))


def _set_paused(name: str, paused: bool, session: WebSession) -> Notice:
    (session.schedules.pause if paused else session.schedules.resume)(name)
    return done(f"Schedule {name} {'paused' if paused else 'resumed'}")


def add(session: WebSession, ask: PageRequest) -> View | Redirect:
    form = ask.form
    given: dict[str, Any] = {
        "command": form.text("command"),
        "queue": form.one("queue"),
        "overlap": form.one("overlap"),
    }
    fields = {name: value for name, value in given.items() if value is not None}
    try:
        zone = form.one("tz") or local_zone_name(environ())
        added = session.schedules.add(form.one("name") or "", form.one("schedule") or "", tz=zone, **fields)
    except Unavailable:
        raise
    except QueuectlError as error:
        return show(session, ask, error)
    return Redirect("/cron", done(f"Schedule {added['name']} added"))
