"""Schedules: jobs that are added by the clock."""

from __future__ import annotations

from typing import Any, Final

from queuectl.config import environ
from queuectl.errors import InvalidInput
from queuectl.job.model import iso
from queuectl.job.shown import shown
from queuectl.queue.schedules import Wish
from queuectl.web.api.jobs import fields_of, location
from queuectl.web.api.listing import PAGING, listing, page
from queuectl.web.api.operation import Call, Made, Operation, Param
from queuectl.web.api.schemas import MOMENT, array, ref
from queuectl.web.api.words import a_flag
from queuectl.web.desk import Desk
from queuectl.zones import local_zone_name

_OWN: Final = ("name", "schedule")
_MANNER: Final = ("overlap", "catch_up", "jitter", "until")


def list_schedules(desk: Desk, call: Call) -> Any:
    return page(call, list(desk.schedules), name="name")


def show_schedule(desk: Desk, call: Call) -> Any:
    return desk.schedules.get(call.path["name"])


def add_schedule(desk: Desk, call: Call) -> Any:
    fields = fields_of(call.body)
    for name in _OWN:
        if not isinstance(fields.get(name), str):
            hint = 'like {"name": "nightly", "schedule": "0 2 * * *", "command": "make backup"}'
            raise InvalidInput(name, f"expected a text, got {shown(fields.get(name))}", hint=hint)
    said = {name: value for name, value in fields.items() if value is not None}
    name, expression = said.pop("name"), said.pop("schedule")
    zone = said.pop("tz", None) or local_zone_name(environ())
    replace = a_flag(said, "replace")
    said.pop("replace", None)
    manner = {word: said.pop(word) for word in _MANNER if word in said}
    made = desk.schedule(Wish(name, expression, zone, said, **manner), replace=replace)
    return Made(made, location=f"/cron/{name}")


def remove_schedule(desk: Desk, call: Call) -> Any:
    desk.schedules.remove(call.path["name"])
    return {"done": [call.path["name"]], "refused": []}


def pause_schedule(desk: Desk, call: Call) -> Any:
    desk.schedules.pause(call.path["name"])
    return desk.schedules.get(call.path["name"])


def resume_schedule(desk: Desk, call: Call) -> Any:
    desk.schedules.resume(call.path["name"])
    return desk.schedules.get(call.path["name"])


def run_schedule(desk: Desk, call: Call) -> Any:
    job = desk.schedules.run(call.path["name"])
    return Made({**job.to_dict(), "duplicate": False}, location=location(job))


def next_of_schedule(desk: Desk, call: Call) -> Any:
    return [iso(at) for at in desk.schedules.next(call.path["name"], call.query["n"])]


_SCHEDULE: Final = ref("Schedule")
_WITH_TICKS: Final = ref("ScheduleShown")

OPERATIONS: Final = (
    Operation(
        "GET",
        "/cron",
        list_schedules,
        "All schedules, with their last and next times.",
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
        "One schedule, and what became of its last times.",
        _WITH_TICKS,
        tag="cron",
    ),
    Operation(
        "DELETE", "/cron/{name}", remove_schedule, "Remove a schedule; its jobs stay.", ref("Answer"), tag="cron"
    ),
    Operation("POST", "/cron/{name}/pause", pause_schedule, "Let it rest.", _WITH_TICKS, tag="cron"),
    Operation("POST", "/cron/{name}/resume", resume_schedule, "Go on with it, from now on.", _WITH_TICKS, tag="cron"),
    Operation("POST", "/cron/{name}/run", run_schedule, "Add its job now.", ref("Enqueued"), status=201, tag="cron"),
    Operation(
        "GET",
        "/cron/{name}/next",
        next_of_schedule,
        "When it will be due.",
        array(MOMENT),
        (Param("n", "How many times.", {"type": "integer", "minimum": 1, "maximum": 1000, "default": 5}),),
        tag="cron",
    ),
)
