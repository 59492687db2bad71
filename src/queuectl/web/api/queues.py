"""Queues and batches."""

from __future__ import annotations

from typing import Any, Final

from queuectl.errors import InvalidInput
from queuectl.operations import queues as use
from queuectl.text import short_repr
from queuectl.web.api.operation import PAGING, ApiRequest, Operation, listing, paginate, parse_object, parse_texts
from queuectl.web.schemas import DURATION, FLAG, ID, SIZE, TEXT, Schema, array, optional, ref
from queuectl.web.store_threads import StoreSession

_NUMBER_OR_NONE: Final[Schema] = {"type": ["integer", "string"], "description": 'A number, or "none" to remove it.'}
_SIZE_OR_NONE: Final[Schema] = {**SIZE, "description": 'Like 2GiB, or "none" to remove it.'}
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


def list_queues(session: StoreSession, call: ApiRequest) -> Any:
    return paginate(call, session.queues(), name="name")


def show_queue(session: StoreSession, call: ApiRequest) -> Any:
    return use.view(session.reads, use.check_queue(call.path["name"])).to_dict()


def change_queue(session: StoreSession, call: ApiRequest) -> Any:
    return session.set_queue(call.path["name"], **parse_object(call.body, "body", known=list(_RULES)))


def pause_queue(session: StoreSession, call: ApiRequest) -> Any:
    return session.set_queue(call.path["name"], paused=True)


def resume_queue(session: StoreSession, call: ApiRequest) -> Any:
    return session.set_queue(call.path["name"], paused=False)


def move_jobs(session: StoreSession, call: ApiRequest) -> Any:
    body = parse_object(call.body, "body", known=["to", "ids"])
    to = body.get("to")
    if not isinstance(to, str):
        raise InvalidInput("to", f"expected the name of a queue, got {short_repr(to)}", hint='like {"to": "slow"}')
    return session.move(call.path["name"], to, *parse_texts(body.get("ids"), "ids"))


def list_batches(session: StoreSession, call: ApiRequest) -> Any:
    return paginate(call, session.batches(), name="name")


def show_batch(session: StoreSession, call: ApiRequest) -> Any:
    return session.batch(call.path["name"])


_QUEUE: Final = ref("Queue")
_BATCH: Final = ref("Batch")

OPERATIONS: Final = (
    Operation(
        "GET",
        "/queues",
        list_queues,
        "List queues with their job counts, limits and current rate.",
        listing(_QUEUE),
        PAGING,
        tag="queues",
    ),
    Operation("GET", "/queues/{name}", show_queue, "Show a queue, also if it is empty.", _QUEUE, tag="queues"),
    Operation(
        "PATCH",
        "/queues/{name}",
        change_queue,
        "Change the settings of a queue.",
        _QUEUE,
        body={"type": "object", "additionalProperties": False, "properties": _RULES, "minProperties": 1},
        tag="queues",
    ),
    Operation("POST", "/queues/{name}/pause", pause_queue, "Pause a queue: no more jobs start.", _QUEUE, tag="queues"),
    Operation("POST", "/queues/{name}/resume", resume_queue, "Resume a queue.", _QUEUE, tag="queues"),
    Operation(
        "POST",
        "/queues/{name}/move",
        move_jobs,
        "Move waiting jobs to another queue: all, or those named.",
        ref("Answer"),
        body={
            "type": "object",
            "additionalProperties": False,
            "required": ["to"],
            "properties": {"to": TEXT, **optional(ids=array(ID))},
        },
        tag="queues",
        slow=True,
    ),
    Operation(
        "GET",
        "/batches",
        list_batches,
        "List batches with their progress.",
        listing(_BATCH),
        PAGING,
        tag="batches",
    ),
    Operation("GET", "/batches/{name}", show_batch, "Show the progress of a batch.", _BATCH, tag="batches"),
)
