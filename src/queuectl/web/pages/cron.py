"""The page of schedules: their next and last runs, and forms to add and change them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

from queuectl.config import environ
from queuectl.cron import operations as use
from queuectl.cron.operations import find_zone, local_zone_name
from queuectl.errors import InvalidInput, QueuectlError, Unavailable, UnknownName
from queuectl.store_threads import WebSession
from queuectl.text import closest_match
from queuectl.units import from_ms
from queuectl.web.pages.render import Fields, Notice, PageRequest, Redirect, View, confirm, done, part

UPCOMING: Final = 5
NEW: Final = "+"  # in the URL of the form for a new one: no schedule can have this name
_ACTIONS: Final = ("run", "pause", "resume", "remove")


def show(session: WebSession, ask: PageRequest) -> View:
    return _page(session, ask.query, None)


def _page(session: WebSession, fields: Fields, error: QueuectlError | None) -> View:
    rows = []
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
        "new": NEW,
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


def do(session: WebSession, ask: PageRequest) -> View | Redirect | Notice:
    name, verb = ask.param("name"), ask.param("verb")
    if name == NEW:
        return _add(session, ask)
    match verb:
        case "run" | "remove" if not ask.is_confirmed:
            return _confirm(ask, name, verb)
        case "run":
            job = session.schedules.run(name)
            return Redirect(f"/jobs/{part(job.id)}", done(f"Job {job.id} of the schedule {name} added"))
        case "pause" | "resume":
            return _pause(name, verb == "pause", session)
        case "remove":
            session.schedules.remove(name)
            return done(f"Schedule {name} removed; its jobs stay")
        case _:
            raise UnknownName("action", verb, nearest=closest_match(verb, _ACTIONS), known=list(_ACTIONS))


def _confirm(ask: PageRequest, name: str, verb: str) -> View:
    label, text = {
        "run": ("Run now", "Enqueue a job of this schedule now. Its next runs stay as they are."),
        "remove": ("Remove", "Remove the schedule. Jobs that it has enqueued stay."),
    }[verb]
    return confirm(ask, label, "schedule", text, name=name, back="/cron", is_grave=verb == "remove")


def _pause(name: str, paused: bool, session: WebSession, *, is_undo: bool = False) -> Notice:
    if paused:
        session.schedules.pause(name)
    else:
        session.schedules.resume(name)
    undo = None if is_undo else partial(_pause, name, not paused, is_undo=True)
    return done(f"Schedule {name} {'paused' if paused else 'resumed'}", undo=undo)


def _add(session: WebSession, ask: PageRequest) -> View | Redirect:
    form = ask.form
    job: dict[str, Any] = {"command": form.text("command")}
    if (queue := form.one("queue")) is not None:
        job["queue"] = queue
    overlap = form.one("overlap") or "skip"
    try:
        zone = form.one("tz") or local_zone_name(environ())
        added = session.schedules.add(
            form.one("name") or "", form.one("schedule") or "", tz=zone, overlap=overlap, **job
        )
    except Unavailable:
        raise
    except QueuectlError as error:
        return _page(session, form, error)
    return Redirect("/cron", done(f"Schedule {added['name']} added"))
