"""Schedules: list, add, pause, resume, run and remove them."""

from __future__ import annotations

from typing import Any, Final

from queuectl.config import environ
from queuectl.cron.operations import ScheduleRequest
from queuectl.cron.zones import local_zone_name
from queuectl.errors import InvalidInput
from queuectl.text import short_repr
from queuectl.units import iso
from queuectl.web.api.jobs import added, fields_of, location
from queuectl.web.api.operation import PAGING, ApiRequest, Created, Operations, Param, listing, paginate, parse_flag
from queuectl.web.schemas import TIME, array, ref
from queuectl.web.store_threads import StoreSession

CRON: Final = Operations("cron")

_SHOWN: Final = ref("ScheduleShown")
_OPTIONS: Final = ("overlap", "catch_up", "jitter", "until")


@CRON.get("/cron", "List schedules with their last and next runs.", listing(ref("Schedule")), params=PAGING)
def list_schedules(session: StoreSession, call: ApiRequest) -> Any:
    return paginate(call, list(session.schedules), name="name")


@CRON.post("/cron", "Add a schedule.", ref("Schedule"), body=ref("NewSchedule"), status=201)
def add_schedule(session: StoreSession, call: ApiRequest) -> Any:
    given = {name: value for name, value in fields_of(call.body).items() if value is not None}
    for name in ("name", "schedule"):
        if not isinstance(given.get(name), str):
            hint = 'like {"name": "nightly", "schedule": "0 2 * * *", "command": "make backup"}'
            raise InvalidInput(name, f"expected text, got {short_repr(given.get(name))}", hint=hint)
    schedule_name, expression = given.pop("name"), given.pop("schedule")
    zone = given.pop("tz", None) or local_zone_name(environ())
    replace = parse_flag(given, "replace")
    given.pop("replace", None)
    options = {name: given.pop(name) for name in _OPTIONS if name in given}
    made = session.schedule(ScheduleRequest(schedule_name, expression, zone, given, **options), replace=replace)
    return Created(made, location=f"/cron/{schedule_name}")


@CRON.get("/cron/{name}", "Show a schedule with its last runs.", _SHOWN)
def show_schedule(session: StoreSession, call: ApiRequest) -> Any:
    return session.schedules.get(call.path["name"])


@CRON.delete("/cron/{name}", "Remove a schedule; its jobs stay.", ref("Answer"))
def remove_schedule(session: StoreSession, call: ApiRequest) -> Any:
    session.schedules.remove(call.path["name"])
    return {"done": [call.path["name"]], "refused": []}


@CRON.post("/cron/{name}/pause", "Pause a schedule.", _SHOWN)
def pause_schedule(session: StoreSession, call: ApiRequest) -> Any:
    session.schedules.pause(call.path["name"])
    return session.schedules.get(call.path["name"])


@CRON.post("/cron/{name}/resume", "Resume a schedule. Missed runs are skipped.", _SHOWN)
def resume_schedule(session: StoreSession, call: ApiRequest) -> Any:
    session.schedules.resume(call.path["name"])
    return session.schedules.get(call.path["name"])


@CRON.post("/cron/{name}/run", "Enqueue its job now.", ref("Enqueued"), status=201)
def run_schedule(session: StoreSession, call: ApiRequest) -> Any:
    job = session.schedules.run(call.path["name"])
    return Created(added(job), location=location(job))


@CRON.get(
    "/cron/{name}/next",
    "List the next run times.",
    array(TIME),
    params=(Param("n", "Number of times.", {"type": "integer", "minimum": 1, "maximum": 1000, "default": 5}),),
)
def next_of_schedule(session: StoreSession, call: ApiRequest) -> Any:
    return [iso(at) for at in session.schedules.next(call.path["name"], call.query["n"])]
