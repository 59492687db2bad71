"""Queues and batches."""

from __future__ import annotations

from typing import Any, Final

from queuectl.errors import InvalidInput
from queuectl.operations import queues as use
from queuectl.text import short_repr
from queuectl.web.api.operation import PAGING, ApiRequest, Operations, listing, paginate, parse_object, parse_texts
from queuectl.web.schemas import FLAG, ID, QUEUE_SETTINGS, TEXT, array, only, ref
from queuectl.web.store_threads import StoreSession

QUEUES: Final = Operations("queues")
BATCHES: Final = Operations("batches")

_QUEUE: Final = ref("Queue")
_SETTINGS: Final = only(paused=FLAG, **QUEUE_SETTINGS)


@QUEUES.get("/queues", "List queues with their job counts, limits and current rate.", listing(_QUEUE), params=PAGING)
def list_queues(session: StoreSession, call: ApiRequest) -> Any:
    return paginate(call, session.queues(), name="name")


@QUEUES.get("/queues/{name}", "Show a queue, also if it is empty.", _QUEUE)
def show_queue(session: StoreSession, call: ApiRequest) -> Any:
    return use.view(session.reads, use.check_queue(call.path["name"])).to_dict()


@QUEUES.patch("/queues/{name}", "Change the settings of a queue.", _QUEUE, body={**_SETTINGS, "minProperties": 1})
def change_queue(session: StoreSession, call: ApiRequest) -> Any:
    return session.set_queue(call.path["name"], **parse_object(call.body, "body", known=list(_SETTINGS["properties"])))


@QUEUES.post("/queues/{name}/pause", "Pause a queue: no more jobs start.", _QUEUE)
def pause_queue(session: StoreSession, call: ApiRequest) -> Any:
    return session.set_queue(call.path["name"], paused=True)


@QUEUES.post("/queues/{name}/resume", "Resume a queue.", _QUEUE)
def resume_queue(session: StoreSession, call: ApiRequest) -> Any:
    return session.set_queue(call.path["name"], paused=False)


@QUEUES.post(
    "/queues/{name}/move",
    "Move waiting jobs to another queue: all, or those named.",
    ref("Answer"),
    body=only("to", to=TEXT, ids=array(ID)),
    slow=True,
)
def move_jobs(session: StoreSession, call: ApiRequest) -> Any:
    body = parse_object(call.body, "body", known=["to", "ids"])
    to = body.get("to")
    if not isinstance(to, str):
        raise InvalidInput("to", f"expected the name of a queue, got {short_repr(to)}", hint='like {"to": "slow"}')
    return session.move(call.path["name"], to, *parse_texts(body.get("ids"), "ids"))


@BATCHES.get("/batches", "List batches with their progress.", listing(ref("Batch")), params=PAGING)
def list_batches(session: StoreSession, call: ApiRequest) -> Any:
    return paginate(call, session.batches(), name="name")


@BATCHES.get("/batches/{name}", "Show the progress of a batch.", ref("Batch"))
def show_batch(session: StoreSession, call: ApiRequest) -> Any:
    return session.batch(call.path["name"])
