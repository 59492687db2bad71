"""Schedules: when they come next, what became of the last time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

from queuectl.config import environ
from queuectl.errors import InvalidInput, QueuectlError, Unavailable, UnknownName
from queuectl.job.model import from_ms
from queuectl.job.nearest import nearest
from queuectl.queue import schedules as use
from queuectl.web.desk import Desk
from queuectl.web.pages.asked import Ask, Done, Fields, Shown, back_to, confirm
from queuectl.web.pages.notices import Notice, done
from queuectl.web.pages.wording import part
from queuectl.zones import find_zone, local_zone_name

UPCOMING: Final = 5
NEW: Final = "+"  # where the form for a new one is sent to: no schedule can have that name
_DEEDS: Final = ("run", "pause", "resume", "remove")


def show(desk: Desk, ask: Ask) -> Shown:
    return _page(desk, ask.query, None)


def _page(desk: Desk, said: Fields, error: QueuectlError | None) -> Shown:
    rows = []
    for one in use.list_schedules(desk.reads):
        schedule = one.schedule
        rows.append(
            {
                **schedule.to_dict(one.last),
                "next": _on_its_clock(use.upcoming(desk.reads, schedule.name, UPCOMING), schedule.tz),
                "last_at": None if one.last is None else from_ms(one.last.at_ms),
            }
        )
    values = {
        "schedules": rows,
        "new": NEW,
        "said": lambda name: said.text(name) or "",
        "error": error,
        "zone": _zone_here(),
    }
    return Shown("cron.html", "Schedules", values, status=200 if error is None else 422)


def _on_its_clock(times_ms: Sequence[int], zone: str) -> list[tuple[datetime, str]]:
    """Each with what the clocks of the schedule's zone show then: people think of a schedule by those. All with seconds or none."""
    moments = [from_ms(at).astimezone(find_zone(zone)) for at in times_ms]
    form = "%a %Y-%m-%d %H:%M:%S" if any(moment.second for moment in moments) else "%a %Y-%m-%d %H:%M"
    return [(moment, moment.strftime(form)) for moment in moments]


def _zone_here() -> str:
    """Empty where this machine's zone has no name that another would know: then a schedule has to say which it means."""
    try:
        return local_zone_name(environ())
    except InvalidInput:
        return ""


def do(desk: Desk, ask: Ask) -> Shown | Done:
    name, verb = ask.param("name"), ask.param("verb")
    to = back_to(ask.form, "/cron")
    if name == NEW:
        return _add(desk, ask)
    match verb:
        case "run" | "remove" if not ask.is_confirmed:
            return _confirm(ask, name, verb)
        case "run":
            job = desk.schedules.run(name)
            return Done(f"/jobs/{part(job.id)}", done(f"Job {job.id} of the schedule {name} added"))
        case "pause" | "resume":
            return Done(to, _pause(name, verb == "pause", desk))
        case "remove":
            desk.schedules.remove(name)
            return Done(to, done(f"Schedule {name} removed; its jobs stay"))
        case _:
            raise UnknownName("action", verb, nearest=nearest(verb, _DEEDS), known=list(_DEEDS))


def _confirm(ask: Ask, name: str, verb: str) -> Shown:
    label, text = {
        "run": ("Run now", "Enqueue a job of this schedule now. Its next runs stay as they are."),
        "remove": ("Remove", "Remove the schedule. Jobs that it has enqueued stay."),
    }[verb]
    return confirm(ask, label, "schedule", text, name=name, back="/cron", is_grave=verb == "remove")


def _pause(name: str, paused: bool, desk: Desk, *, is_undo: bool = False) -> Notice:
    if paused:
        desk.schedules.pause(name)
    else:
        desk.schedules.resume(name)
    undo = None if is_undo else partial(_pause, name, not paused, is_undo=True)
    return done(f"Schedule {name} {'rests' if paused else 'goes on'}", undo=undo)


def _add(desk: Desk, ask: Ask) -> Shown | Done:
    form = ask.form
    job: dict[str, Any] = {"command": form.text("command")}
    if (queue := form.one("queue")) is not None:
        job["queue"] = queue
    overlap = form.one("overlap") or "skip"
    try:
        zone = form.one("tz") or local_zone_name(environ())
        added = desk.schedules.add(form.one("name") or "", form.one("schedule") or "", tz=zone, overlap=overlap, **job)
    except Unavailable:
        raise
    except QueuectlError as error:
        return _page(desk, form, error)
    return Done("/cron", done(f"Schedule {added['name']} added"))
