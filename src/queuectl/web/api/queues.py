"""Queues, batches and schedules."""

from __future__ import annotations

import random
from typing import Any, Final

from queuectl.config import environ, working_directory
from queuectl.cron import operations
from queuectl.cron.operations import CronContext, ScheduleEdit, ScheduleRequest, local_zone_name
from queuectl.errors import InvalidInput
from queuectl.jobs.spec import Defaults
from queuectl.operations import queues as use
from queuectl.store_threads import WebSession
from queuectl.text import short_repr
from queuectl.units import iso
from queuectl.web.api.jobs import added, fields_of, location
from queuectl.web.api.operation import (
    PAGING,
    ApiRequest,
    Created,
    Operations,
    Param,
    listing,
    paginate,
    read_field,
)
from queuectl.web.schemas import COUNT, FLAG, ID, QUEUE_SETTINGS, TEXT, TIME, array, exactly, only, ref

QUEUES: Final = Operations("queues")
BATCHES: Final = Operations("batches")
CRON: Final = Operations("cron")

_QUEUE: Final = ref("Queue")


@QUEUES("GET /queues", "List queues with their job counts, limits and current rate.", listing(_QUEUE), params=PAGING)
def list_queues(session: WebSession, call: ApiRequest) -> Any:
    return paginate(call, session.queues(), name="name")


@QUEUES("GET /queues/{name}", "Show a queue, even if it is empty.", _QUEUE)
def show_queue(session: WebSession, call: ApiRequest) -> Any:
    return use.view(session.reads, use.check_queue(call.path["name"])).to_dict()


@QUEUES(
    "GET /queues/{name}/waiting",
    "List the reasons why the jobs of a queue wait, each with the number of jobs.",
    array(exactly(code=TEXT, jobs=COUNT, more=FLAG, message=TEXT)),
)
def explain_queue(session: WebSession, call: ApiRequest) -> Any:
    name = use.check_queue(call.path["name"])
    return [one.to_dict() for one in queue_waiting(session, name)]


def queue_waiting(session: WebSession, name: str) -> list[use.Waiting]:
    alive = [worker for worker in session.workers() if worker.state != "lost"]
    return use.waiting(session.reads, name, alive=alive, now_ms=session.reads.now_ms())


@QUEUES(
    "PATCH /queues/{name}",
    "Change the settings of a queue.",
    _QUEUE,
    body={**only(paused=FLAG, **QUEUE_SETTINGS), "minProperties": 1},
    checks_types=False,
)
def change_queue(session: WebSession, call: ApiRequest) -> Any:
    return session.set_queue(call.path["name"], **call.body)


@QUEUES("POST /queues/{name}/pause", "Pause a queue. No new jobs start.", _QUEUE)
def pause_queue(session: WebSession, call: ApiRequest) -> Any:
    return session.set_queue(call.path["name"], paused=True)


@QUEUES("POST /queues/{name}/resume", "Resume a queue.", _QUEUE)
def resume_queue(session: WebSession, call: ApiRequest) -> Any:
    return session.set_queue(call.path["name"], paused=False)


@QUEUES(
    "POST /queues/{name}/move",
    "Move waiting jobs to another queue: all, or the given IDs.",
    ref("Answer"),
    body=only("to", to=TEXT, ids=array(ID)),
    slow=True,
)
def move_jobs(session: WebSession, call: ApiRequest) -> Any:
    to, ids = call.body.get("to"), call.body.get("ids") or ()
    if to is None:
        raise InvalidInput("to", "expected the name of a queue, got null", hint='for example {"to": "slow"}')
    return session.move(call.path["name"], to, *ids)


@BATCHES("GET /batches", "List batches with their progress.", listing(ref("Batch")), params=PAGING)
def list_batches(session: WebSession, call: ApiRequest) -> Any:
    return paginate(call, session.batches(), name="name")


@BATCHES("GET /batches/{name}", "Show the progress of a batch.", ref("Batch"))
def show_batch(session: WebSession, call: ApiRequest) -> Any:
    return session.batch(call.path["name"])


# ── schedules ───────────────────────────────────────────────────────────────────────────────────────────────────────

_SCHEDULE: Final = ref("ScheduleShown")
_OPTIONS: Final = ("overlap", "catch_up", "jitter", "until")


@CRON("GET /cron", "List schedules with their last and next runs.", listing(ref("Schedule")), params=PAGING)
def list_schedules(session: WebSession, call: ApiRequest) -> Any:
    return paginate(call, list(session.schedules), name="name")


@CRON("POST /cron", "Add a schedule.", ref("Schedule"), body=ref("NewSchedule"), status=201)
def add_schedule(session: WebSession, call: ApiRequest) -> Any:
    given = {name: value for name, value in fields_of(call.body).items() if value is not None}
    for name in ("name", "schedule"):
        if not isinstance(given.get(name), str):
            hint = 'for example {"name": "nightly", "schedule": "0 2 * * *", "command": "make backup"}'
            raise InvalidInput(name, f"expected text, got {short_repr(given.get(name))}", hint=hint)
    schedule_name, expression = given.pop("name"), given.pop("schedule")
    zone = given.pop("tz", None) or local_zone_name(environ())
    replace = bool(read_field(given.pop("replace", None), "replace", FLAG))
    options = {name: given.pop(name) for name in _OPTIONS if name in given}
    request = ScheduleRequest(schedule_name, expression, zone, given, **options)
    made = operations.add(request, cron_context(session), replace=replace)
    return Created(made.to_dict(None), location=f"/cron/{schedule_name}")


def cron_context(session: WebSession) -> CronContext:
    defaults = Defaults.of(session.settings, cwd=working_directory())
    return CronContext(lambda: session.reads, session.open_store, lambda: defaults, random.random)


@CRON("GET /cron/{name}", "Show a schedule with its last runs.", _SCHEDULE)
def show_schedule(session: WebSession, call: ApiRequest) -> Any:
    return session.schedules.get(call.path["name"])


@CRON(
    "PATCH /cron/{name}",
    "Change a schedule. Omitted fields keep their value; `none` removes jitter and until, null a field of the job.",
    _SCHEDULE,
    body=ref("ScheduleChange"),
)
def edit_schedule(session: WebSession, call: ApiRequest) -> Any:
    given = dict(fields_of(call.body))
    own = {name: given.pop(name) for name in ("schedule", "tz", *_OPTIONS) if name in given}
    for name in ("schedule", "tz", "overlap", "catch_up"):
        if not isinstance(own.get(name), str | None):
            raise InvalidInput(name, f"expected text, got {short_repr(own[name])}", hint="write it in quotes")
    operations.edit(call.path["name"], ScheduleEdit(**own, fields=given), cron_context(session))
    return session.schedules.get(call.path["name"])


@CRON("DELETE /cron/{name}", "Remove a schedule. Its jobs are kept.", ref("Answer"))
def remove_schedule(session: WebSession, call: ApiRequest) -> Any:
    session.schedules.remove(call.path["name"])
    return {"done": [call.path["name"]], "refused": []}


@CRON("POST /cron/{name}/pause", "Pause a schedule.", _SCHEDULE)
def pause_schedule(session: WebSession, call: ApiRequest) -> Any:
    session.schedules.pause(call.path["name"])
    return session.schedules.get(call.path["name"])


@CRON("POST /cron/{name}/resume", "Resume a schedule. Missed runs are skipped.", _SCHEDULE)
def resume_schedule(session: WebSession, call: ApiRequest) -> Any:
    session.schedules.resume(call.path["name"])
    return session.schedules.get(call.path["name"])


@CRON("POST /cron/{name}/run", "Enqueue a job of the schedule now.", ref("Enqueued"), status=201)
def run_schedule(session: WebSession, call: ApiRequest) -> Any:
    job = session.schedules.run(call.path["name"])
    return Created(added(job), location=location(job))


@CRON(
    "GET /cron/{name}/next",
    "List the next run times.",
    array(TIME),
    params=(Param("n", "Number of run times.", {"type": "integer", "minimum": 1, "maximum": 1000, "default": 5}),),
)
def next_of_schedule(session: WebSession, call: ApiRequest) -> Any:
    return [iso(at) for at in session.schedules.next(call.path["name"], call.query["n"])]
