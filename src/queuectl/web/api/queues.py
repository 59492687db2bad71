"""Queues and batches."""

from __future__ import annotations

from typing import Any, Final

from queuectl.errors import InvalidInput
from queuectl.job.shown import shown
from queuectl.queue import queues as use
from queuectl.web.api.listing import PAGING, listing, page
from queuectl.web.api.operation import Call, Operation, Room
from queuectl.web.api.schemas import DURATION, FLAG, ID, SIZE, TEXT, Schema, array, optional, ref
from queuectl.web.api.words import an_object, texts
from queuectl.web.desk import Desk

_NUMBER_OR_NONE: Final[Schema] = {"type": ["integer", "string"], "description": 'A number, or "none" to take it away.'}
_SIZE_OR_NONE: Final[Schema] = {**SIZE, "description": 'Like 2GiB, or "none" to take it away.'}
_RULES: Final = optional(
    paused=FLAG,
    concurrency=_NUMBER_OR_NONE,
    per_key=_NUMBER_OR_NONE,
    rate=TEXT,
    priority=_NUMBER_OR_NONE,
    max_retries=_NUMBER_OR_NONE,
    timeout=DURATION,
    memory=_SIZE_OR_NONE,
    cpu_time=DURATION,
    nice=_NUMBER_OR_NONE,
    open_files=_NUMBER_OR_NONE,
    processes=_NUMBER_OR_NONE,
    file_size=_SIZE_OR_NONE,
    on_success=TEXT,
    on_failure=TEXT,
    on_dead=TEXT,
)


def list_queues(desk: Desk, call: Call) -> Any:
    return page(call, desk.queues(), name="name")


def show_queue(desk: Desk, call: Call) -> Any:
    return use.view(desk.reads, use.check_queue(call.path["name"])).to_dict()


def change_queue(desk: Desk, call: Call) -> Any:
    return desk.set_queue(call.path["name"], **an_object(call.body, "body", known=list(_RULES)))


def pause_queue(desk: Desk, call: Call) -> Any:
    return desk.set_queue(call.path["name"], paused=True)


def resume_queue(desk: Desk, call: Call) -> Any:
    return desk.set_queue(call.path["name"], paused=False)


def move_jobs(desk: Desk, call: Call) -> Any:
    said = an_object(call.body, "body", known=["to", "ids"])
    to = said.get("to")
    if not isinstance(to, str):
        raise InvalidInput("to", f"expected the name of a queue, got {shown(to)}", hint='like {"to": "slow"}')
    return desk.move(call.path["name"], to, *texts(said.get("ids"), "ids"))


def list_batches(desk: Desk, call: Call) -> Any:
    return page(call, desk.batches(), name="name")


def show_batch(desk: Desk, call: Call) -> Any:
    return desk.batch(call.path["name"])


_QUEUE: Final = ref("Queue")
_BATCH: Final = ref("Batch")

OPERATIONS: Final = (
    Operation(
        "GET",
        "/queues",
        list_queues,
        "Every queue: its jobs, its limits, its rate now.",
        listing(_QUEUE),
        PAGING,
        tag="queues",
    ),
    Operation("GET", "/queues/{name}", show_queue, "One queue, also if there is nothing of it.", _QUEUE, tag="queues"),
    Operation(
        "PATCH",
        "/queues/{name}",
        change_queue,
        "Change what holds for a queue.",
        _QUEUE,
        body={"type": "object", "additionalProperties": False, "properties": _RULES, "minProperties": 1},
        tag="queues",
    ),
    Operation("POST", "/queues/{name}/pause", pause_queue, "Let nothing more of it start.", _QUEUE, tag="queues"),
    Operation("POST", "/queues/{name}/resume", resume_queue, "Let its jobs start again.", _QUEUE, tag="queues"),
    Operation(
        "POST",
        "/queues/{name}/move",
        move_jobs,
        "Put the jobs that wait in it into another queue: all, or those named.",
        ref("Answer"),
        body={
            "type": "object",
            "additionalProperties": False,
            "required": ["to"],
            "properties": {"to": TEXT, **optional(ids=array(ID))},
        },
        tag="queues",
        room=Room.WAIT,
    ),
    Operation(
        "GET",
        "/batches",
        list_batches,
        "Jobs under one name, and how far they are.",
        listing(_BATCH),
        PAGING,
        tag="batches",
    ),
    Operation("GET", "/batches/{name}", show_batch, "How far a batch is.", _BATCH, tag="batches"),
)
