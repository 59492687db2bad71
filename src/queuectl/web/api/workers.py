"""Workers: who works, and asking them to stop."""

from __future__ import annotations

from typing import Any, Final

from queuectl.errors import InvalidInput, WorkerNotFound
from queuectl.job.model import Worker
from queuectl.job.shown import shown
from queuectl.store.protocol import StopMode
from queuectl.web.api.operation import Call, Operation
from queuectl.web.api.schemas import FLAG, array, ref
from queuectl.web.api.words import an_object
from queuectl.web.desk import Desk


def list_workers(desk: Desk, call: Call) -> Any:
    serves = desk.is_serving()
    return [_shown(worker, lives=serves(worker)) for worker in desk.reads.workers()]


def stop_worker(desk: Desk, call: Call) -> Any:
    """Asks, and does not wait: a job may take a day to finish."""
    now = an_object(call.body, "body", known=["now"]).get("now", False)
    if not isinstance(now, bool):
        raise InvalidInput("now", f"expected true or false, got {shown(now)}", hint='like {"now": true}')
    name = call.path["id"]
    if not any(worker.id == name for worker in desk.reads.workers()):
        raise WorkerNotFound(name)
    desk.open_store().request_stop(name, StopMode.NOW if now else StopMode.FINISH)
    return {"done": [name], "refused": []}


def _shown(worker: Worker, *, lives: bool) -> dict[str, Any]:
    return worker.to_dict() if lives else {**worker.to_dict(), "state": "lost"}


OPERATIONS: Final = (
    Operation("GET", "/workers", list_workers, "Who works, and on how much.", array(ref("Worker")), tag="workers"),
    Operation(
        "POST",
        "/workers/{id}/stop",
        stop_worker,
        "Ask a worker to finish what it runs and end, or to end it now; does not wait for it.",
        ref("Answer"),
        body={"type": "object", "additionalProperties": False, "properties": {"now": FLAG}},
        tag="workers",
    ),
)
