"""Schedules: list, add, pause, resume, run and remove them."""

from __future__ import annotations

from typing import Any, Final

from queuectl.config import environ
from queuectl.cron.operations import ScheduleRequest
from queuectl.cron.zones import local_zone_name
from queuectl.errors import InvalidInput
from queuectl.text import short_repr
from queuectl.units import iso
from queuectl.web.api.jobs import fields_of, location
from queuectl.web.api.operation import PAGING, ApiRequest, Created, Operation, Param, listing, paginate, parse_flag
from queuectl.web.schemas import TIME, array, ref
from queuectl.web.store_threads import StoreSession

_REQUIRED: Final = ("name", "schedule")
_OPTIONS: Final = ("overlap", "catch_up", "jitter", "until")


def list_schedules(session: StoreSession, call: ApiRequest) -> Any:
    return paginate(call, list(session.schedules), name="name")


def show_schedule(session: StoreSession, call: ApiRequest) -> Any:
    return session.schedules.get(call.path["name"])


def add_schedule(session: StoreSession, call: ApiRequest) -> Any:
    fields = fields_of(call.body)
    for name in _REQUIRED:
        if not isinstance(fields.get(name), str):
            hint = 'like {"name": "nightly", "schedule": "0 2 * * *", "command": "make backup"}'
            raise InvalidInput(name, f"expected text, got {short_repr(fields.get(name))}", hint=hint)
    given = {name: value for name, value in fields.items() if value is not None}
    schedule_name, expression = given.pop("name"), given.pop("schedule")
    zone = given.pop("tz", None) or local_zone_name(environ())
    replace = parse_flag(given, "replace")
    given.pop("replace", None)
    options = {name: given.pop(name) for name in _OPTIONS if name in given}
    made = session.schedule(ScheduleRequest(schedule_name, expression, zone, given, **options), replace=replace)
    return Created(made, location=f"/cron/{schedule_name}")


def remove_schedule(session: StoreSession, call: ApiRequest) -> Any:
    session.schedules.remove(call.path["name"])
    return {"done": [call.path["name"]], "refused": []}


def pause_schedule(session: StoreSession, call: ApiRequest) -> Any:
    session.schedules.pause(call.path["name"])
    return session.schedules.get(call.path["name"])


def resume_schedule(session: StoreSession, call: ApiRequest) -> Any:
    session.schedules.resume(call.path["name"])
    return session.schedules.get(call.path["name"])


def run_schedule(session: StoreSession, call: ApiRequest) -> Any:
    job = session.schedules.run(call.path["name"])
    return Created({**job.to_dict(), "duplicate": False}, location=location(job))


def next_of_schedule(session: StoreSession, call: ApiRequest) -> Any:
    return [iso(at) for at in session.schedules.next(call.path["name"], call.query["n"])]


_SCHEDULE: Final = ref("Schedule")
_WITH_TICKS: Final = ref("ScheduleShown")

OPERATIONS: Final = (
    Operation(
        "GET",
        "/cron",
        list_schedules,
        "List schedules with their last and next runs.",
        listing(_SCHEDULE),
        PAGING,
        tag="cron",
    ),
    Operation(
        "POST", "/cron", add_schedule, "Add a schedule.", _SCHEDULE, body=ref("NewSchedule"), status=201, tag="cron"
    ),
    Operation(
        "GET",
        "/cron/{name}",
        show_schedule,
        "Show a schedule with its last runs.",
        _WITH_TICKS,
        tag="cron",
    ),
    Operation(
        "DELETE", "/cron/{name}", remove_schedule, "Remove a schedule; its jobs stay.", ref("Answer"), tag="cron"
    ),
    Operation("POST", "/cron/{name}/pause", pause_schedule, "Pause a schedule.", _WITH_TICKS, tag="cron"),
    Operation(
        "POST",
        "/cron/{name}/resume",
        resume_schedule,
        "Resume a schedule. Missed runs are skipped.",
        _WITH_TICKS,
        tag="cron",
    ),
    Operation(
        "POST", "/cron/{name}/run", run_schedule, "Enqueue its job now.", ref("Enqueued"), status=201, tag="cron"
    ),
    Operation(
        "GET",
        "/cron/{name}/next",
        next_of_schedule,
        "List the next run times.",
        array(TIME),
        (Param("n", "Number of times.", {"type": "integer", "minimum": 1, "maximum": 1000, "default": 5}),),
        tag="cron",
    ),
)
