"""Jobs: adding, looking, and what can be done to one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from queuectl.config import host_name
from queuectl.errors import InvalidInput
from queuectl.job.duration import parse_duration_ms
from queuectl.job.model import Job
from queuectl.queue import explain as explaining
from queuectl.queue import inspect
from queuectl.queue.filters import parse_sort
from queuectl.store.protocol import Sort
from queuectl.web.api.operation import Call, Made, Operation, Param, Room
from queuectl.web.api.schemas import TEXT, array, exactly, ref
from queuectl.web.api.words import CURSOR, LIMIT, SELECTORS, to_filter
from queuectl.web.desk import Desk

_MOST_SECONDS: Final = 60.0  # that one request may wait: longer, and a proxy on the way takes it for dead


def list_jobs(desk: Desk, call: Call) -> Any:
    where = to_filter(call.query, desk.reads)
    sort, descending = parse_sort(call.query["sort"])
    start, limit = int(call.query["cursor"] or 0), call.query["limit"]
    found = list(desk.reads.jobs(where, sort=sort, descending=descending, limit=limit + 1, offset=start))
    cursor = str(start + limit) if len(found) > limit else None
    return {"items": [job.to_dict() for job in found[:limit]], "next_cursor": cursor}


def enqueue(desk: Desk, call: Call) -> Any:
    """One job for an object, many, all or none, for an array."""
    if isinstance(call.body, list):
        return Made([_added(job) for job in desk.add_many([fields_of(item) for item in call.body])])
    job = desk.add(fields_of(call.body))
    return Made(_added(job), is_new=not job.is_duplicate)


def fields_of(value: object) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise InvalidInput(
        "body", "expected the fields of a job, or a list of them", hint='like {"command": "make report"}'
    )


def _added(job: Job) -> dict[str, Any]:
    return {**job.to_dict(), "duplicate": job.is_duplicate}


def show_job(desk: Desk, call: Call) -> Any:
    shown = inspect.show(
        desk.reads,
        call.path["id"],
        host=host_name(),
        output_limit=desk.settings.output_limit,
        is_alive=desk.is_serving(),
    )
    return shown.to_dict()


def explain_job(desk: Desk, call: Call) -> Any:
    return explaining.explain(desk.reads, call.path["id"], is_alive=desk.is_serving()).to_dict()


def show_graph(desk: Desk, call: Call) -> Any:
    return desk.graph(call.path["id"])


def wait_for_job(desk: Desk, call: Call) -> Any:
    seconds = parse_duration_ms(call.query["timeout"], subject="timeout") / 1000
    return desk.wait(call.path["id"], timeout=min(seconds, _MOST_SECONDS)).to_dict()


def edit_job(desk: Desk, call: Call) -> Any:
    return desk.change(call.path["id"], fields_of(call.body)).to_dict()


def clone_job(desk: Desk, call: Call) -> Any:
    fields = {} if call.body is None else fields_of(call.body)
    return Made(desk.copy(call.path["id"], fields).to_dict())


def cancel_job(desk: Desk, call: Call) -> Any:
    return desk.cancel(call.path["id"]).to_dict()


def retry_job(desk: Desk, call: Call) -> Any:
    return desk.retry(call.path["id"]).to_dict()


def hold_job(desk: Desk, call: Call) -> Any:
    return desk.hold(call.path["id"]).to_dict()


def release_job(desk: Desk, call: Call) -> Any:
    return desk.release(call.path["id"]).to_dict()


def run_job_now(desk: Desk, call: Call) -> Any:
    return desk.run_now(call.path["id"]).to_dict()


def _act(path: str, does: Callable[[Desk, Call], Any], summary: str, *, room: Room = Room.ASK) -> Operation:
    return Operation("POST", f"/jobs/{{id}}/{path}", does, summary, ref("Job"), room=room)


_SORT: Final = Param(
    "sort",
    "By what; a - before it reverses the order.",
    {"type": "string", "enum": [sign + sort.value for sort in Sort for sign in ("", "-")], "default": "created"},
)

OPERATIONS: Final = (
    Operation(
        "GET",
        "/jobs",
        list_jobs,
        "The jobs that match, a page at a time.",
        ref("Jobs"),
        (*SELECTORS, _SORT, LIMIT, CURSOR),
    ),
    Operation(
        "POST",
        "/jobs",
        enqueue,
        "Add a job, or with an array many of them, all or none.",
        {"oneOf": [ref("Enqueued"), array(ref("Enqueued"))]},
        body={"oneOf": [ref("NewJob"), array(ref("NewJob"))]},
        status=201,
    ),
    Operation(
        "GET", "/jobs/{id}", show_job, "Everything about one job: its history and the end of its output.", ref("Shown")
    ),
    Operation("PATCH", "/jobs/{id}", edit_job, "Change a job that waits.", ref("Job"), body={"type": "object"}),
    Operation(
        "GET", "/jobs/{id}/explain", explain_job, "Why a job is not running.", exactly(id=TEXT, reasons=array({}))
    ),
    Operation(
        "GET", "/jobs/{id}/graph", show_graph, "What a job waits for, and what waits for it.", {"type": "object"}
    ),
    Operation(
        "GET",
        "/jobs/{id}/wait",
        wait_for_job,
        "The job, once it has ended.",
        ref("Job"),
        (Param("timeout", "At most so long, and never longer than 60 s.", {"type": "string", "default": "30s"}),),
        room=Room.WAIT,
    ),
    _act("cancel", cancel_job, "Call a job off; answers when it is so, also if it runs.", room=Room.WAIT),
    _act("retry", retry_job, "Give a failed, dead or cancelled job another chance."),
    _act("hold", hold_job, "Keep a job that waits from being run."),
    _act("release", release_job, "Let go a job that is held."),
    _act("run-now", run_job_now, "Make a job due now."),
    Operation(
        "POST",
        "/jobs/{id}/clone",
        clone_job,
        "Add a new job with the same fields, but for those given.",
        ref("Job"),
        body={"type": "object"},
        status=201,
    ),
)
