"""Workers: who works, and asking them to stop or to begin anew. Nobody is waited for: a job may take a day to finish."""

from __future__ import annotations

from typing import Any, Final

from queuectl.errors import WorkerNotFound
from queuectl.job.model import Worker
from queuectl.store.protocol import StopMode
from queuectl.web.api.listing import PAGING, listing, page
from queuectl.web.api.operation import Call, Operation
from queuectl.web.api.schemas import FLAG, optional, ref
from queuectl.web.api.words import a_flag, an_object
from queuectl.web.desk import Desk


def list_workers(desk: Desk, call: Call) -> Any:
    serves = desk.is_serving()
    return page(call, [_shown(worker, lives=serves(worker)) for worker in desk.reads.workers()], name="id")


def stop_worker(desk: Desk, call: Call) -> Any:
    return _request(desk, [_named(desk, call)], _mode(call))


def stop_workers(desk: Desk, call: Call) -> Any:
    mode = _mode(call)
    return _request(desk, [worker.id for worker in desk.reads.workers()], mode)


def restart_worker(desk: Desk, call: Call) -> Any:
    return _request(desk, [_named(desk, call)], StopMode.RESTART)


def _mode(call: Call) -> StopMode:
    now = a_flag(an_object(call.body, "body", known=["now"]), "now")
    return StopMode.NOW if now else StopMode.FINISH


def _named(desk: Desk, call: Call) -> str:
    name = call.path["id"]
    if not any(worker.id == name for worker in desk.reads.workers()):
        raise WorkerNotFound(name)
    return name


def _request(desk: Desk, names: list[str], mode: StopMode) -> dict[str, Any]:
    for name in names:
        desk.open_store().request_stop(name, mode)
    return {"done": names, "refused": []}


def _shown(worker: Worker, *, lives: bool) -> dict[str, Any]:
    return worker.to_dict() if lives else {**worker.to_dict(), "state": "lost"}


_NOW: Final = {"type": "object", "additionalProperties": False, "properties": optional(now=FLAG)}

OPERATIONS: Final = (
    Operation(
        "GET",
        "/workers",
        list_workers,
        "Who works, and on how much.",
        listing(ref("Worker")),
        PAGING,
        tag="workers",
    ),
    Operation(
        "POST",
        "/workers/stop",
        stop_workers,
        "Ask all workers of the store to finish what they run and end, or to end it now; does not wait for them.",
        ref("Answer"),
        body=_NOW,
        tag="workers",
    ),
    Operation(
        "POST",
        "/workers/{id}/stop",
        stop_worker,
        "Ask a worker to finish what it runs and end, or to end it now; does not wait for it.",
        ref("Answer"),
        body=_NOW,
        tag="workers",
    ),
    Operation(
        "POST",
        "/workers/{id}/restart",
        restart_worker,
        "Ask a worker to begin anew while its jobs run on; does not wait for it.",
        ref("Answer"),
        tag="workers",
    ),
)
