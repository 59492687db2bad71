"""The pages of schedules: all of them with their last runs, and one with its next and last runs and a form to change it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final, NamedTuple

from queuectl.config import environ
from queuectl.cron import operations as use
from queuectl.cron.expression import explain
from queuectl.cron.operations import ScheduleDetails, ScheduleEdit, find_zone, local_zone_name
from queuectl.cron.schedule import PastRun, Schedule, format_catch_up
from queuectl.errors import InvalidInput, QueuectlError, Unavailable
from queuectl.store_threads import WebSession
from queuectl.units import format_duration, from_ms
from queuectl.web.api.queues import cron_context
from queuectl.web.pages.render import Notice, PageRequest, Redirect, View, confirm, done, exact, part, refused_form

UPCOMING: Final = 10
RUNS_SHOWN: Final = 20
MAX_SHOWN: Final = 200  # schedules; the others are found by name
FIELDS: Final = ("schedule", "tz", "overlap", "catch_up", "jitter", "until", "command", "queue")
GONE: Final = "gone"  # of a job that was removed


class RunDot(NamedTuple):
    """A past run of a schedule. `kind`: the state of its job; skipped: it had none; gone: the job was removed."""

    kind: str
    title: str
    job: str | None
    x: int = 0


def show(session: WebSession, ask: PageRequest, error: QueuectlError | None = None) -> View:
    fields, name = (ask.query if error is None else ask.form), ask.query.one("match") or ""
    known = use.list_schedules(session.reads)
    found = [one for one in known if name in one.schedule.name]
    values: dict[str, Any] = {
        "schedules": [_row(session, one) for one in found[:MAX_SHOWN]],
        "known": len(known),
        "found": len(found),
        "most": MAX_SHOWN,
        "match": name,
        **_form(fields.text, error),
        **refused_form(ask, "/cron", error),
        "zone": _zone_here(),
    }
    return View("cron.html", "Schedules", values, status=200 if error is None else 422)


def show_one(session: WebSession, ask: PageRequest, error: QueuectlError | None = None) -> View:
    details = use.show(session.reads, ask.param("name"))
    schedule = details.schedule
    zone = find_zone(schedule.tz)
    until = None if schedule.until_ms is None else from_ms(schedule.until_ms).astimezone(zone)
    present = {
        "schedule": schedule.expression,
        "tz": schedule.tz,
        "overlap": schedule.overlap.value,
        "catch_up": format_catch_up(schedule.catch_up),
        "jitter": format_duration(schedule.jitter_ms) if schedule.jitter_ms else "",
        "until": "" if until is None else until.strftime("%Y-%m-%d %H:%M:%S").removesuffix(":00"),
        "command": schedule.fields.get("command") or "",
        "queue": schedule.fields.get("queue") or "",
    }
    values: dict[str, Any] = {
        **_row(session, details),
        "present": present,
        "next": _in_zone(use.upcoming(session.reads, schedule.name, UPCOMING), schedule.tz),
        "runs": [{"at": from_ms(run.at_ms), "run": run, "dot": _dot(run)} for run in details.ticks[:RUNS_SHOWN]],
        "waiting": schedule.waiting,
        "is_argv": "argv" in schedule.fields,
        "zone": schedule.tz,
        **_form(present.get if error is None else ask.form.text, error),
        **refused_form(ask, f"/cron/{part(schedule.name)}", error),
    }
    return View("schedule.html", f"Schedule {schedule.name}", values, status=200 if error is None else 422)


def _row(session: WebSession, one: ScheduleDetails) -> dict[str, Any]:
    schedule, last = one.schedule, one.last
    past = session.reads.schedules.runs(schedule.name, limit=RUNS_SHOWN)
    dots = [_dot(run, x) for x, run in enumerate(reversed(past))]
    return {
        **schedule.to_dict(last),
        "words": explain_schedule(schedule),
        "next_at": None if schedule.tick_ms is None else from_ms(schedule.tick_ms),
        "last_at": None if last is None else from_ms(last.at_ms),
        "dots": dots,
        "summary": _summarize(dots),
    }


def explain_schedule(schedule: Schedule) -> str:
    """The expression in words, with the time zone where it matters."""
    words = explain(schedule.expression)
    return words if schedule.expression.startswith("every") else f"{words}, {schedule.tz}"


def _dot(run: PastRun, x: int = 0) -> RunDot:
    kind = "skipped" if run.job is None else GONE if run.state is None else run.state.value
    title = f"{exact(from_ms(run.at_ms))}: {run.reason or run.error or kind}" + (
        ", run by hand" if run.is_by_hand else ""
    )
    return RunDot(kind, title, run.job if run.state is not None else None, x)


def _summarize(dots: Sequence[RunDot]) -> str:
    counts: dict[str, int] = {}
    for dot in dots:
        counts[dot.kind] = counts.get(dot.kind, 0) + 1
    runs = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    return f"Last {len(dots)} runs: {runs}" if dots else "No runs yet"


def _form(value_of: Callable[[str], str | None], error: QueuectlError | None) -> dict[str, Any]:
    """The values of the form. An error is shown at its field."""
    at = error.subject if isinstance(error, InvalidInput) else None
    return {"value_of": lambda name: value_of(name) or "", "error": error, "error_at": at if at in FIELDS else None}


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


def remove(session: WebSession, ask: PageRequest) -> View | Redirect:
    name = ask.param("name")
    if not ask.is_confirmed:
        text = "The schedule stops. Jobs that it has enqueued are kept."
        return confirm(ask, "Remove", "schedule", text, name=name, back="/cron", is_grave=True)
    session.schedules.remove(name)
    return Redirect("/cron", done(f"Schedule {name} removed. Its jobs are kept."))


def set_paused(session: WebSession, ask: PageRequest, *, paused: bool) -> Notice:
    name = ask.param("name")
    if use.show(session.reads, name).schedule.is_paused is paused:
        # An undo would revert an earlier action.
        return done(f"Schedule {name} is already {'paused' if paused else 'running'}")
    return _set_paused(name, paused, session)._replace(undo=partial(_set_paused, name, not paused))


def _set_paused(name: str, paused: bool, session: WebSession) -> Notice:
    (session.schedules.pause if paused else session.schedules.resume)(name)
    return done(f"Schedule {name} {'paused' if paused else 'resumed'}")


def _given(form: Mapping[str, str | None]) -> dict[str, Any]:
    return {name: value for name, value in form.items() if value is not None}


def add(session: WebSession, ask: PageRequest) -> View | Redirect:
    form = ask.form
    given = _given({name: form.text(name) if name == "command" else form.one(name) for name in FIELDS})
    try:
        zone = given.pop("tz", None) or local_zone_name(environ())
        added = session.schedules.add(form.one("name") or "", given.pop("schedule", ""), tz=zone, **given)
    except Unavailable:
        raise
    except QueuectlError as error:
        return show(session, ask, error)
    return Redirect("/cron", done(f"Schedule {added['name']} added"))


def edit(session: WebSession, ask: PageRequest) -> View | Redirect:
    """Change a schedule. The form has all fields; an empty one keeps its value, or removes jitter and until."""
    name, form = ask.param("name"), ask.form
    given = _given({field: form.one(field) for field in FIELDS[:6]})
    given |= {field: use.NO_VALUE for field in ("jitter", "until") if field not in given}
    fields: dict[str, Any] = {"queue": form.one("queue")} if form.has("queue") else {}
    if form.text("command"):
        fields["command"] = form.text("command")
    try:
        use.edit(name, ScheduleEdit(**given, fields=fields), cron_context(session))
    except Unavailable:
        raise
    except QueuectlError as error:
        return show_one(session, ask, error)
    return Redirect(f"/cron/{part(name)}", done(f"Schedule {name} changed"))
