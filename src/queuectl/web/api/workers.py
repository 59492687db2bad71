"""Workers: list, stop and restart them. Requests return at once: a job may take a day to finish."""

from __future__ import annotations

from typing import Any, Final

from queuectl.errors import WorkerNotFound
from queuectl.jobs.model import Worker
from queuectl.store.types import StopMode
from queuectl.web.api.operation import PAGING, ApiRequest, Operation, listing, paginate, parse_flag, parse_object
from queuectl.web.schemas import FLAG, optional, ref
from queuectl.web.store_threads import StoreSession


def list_workers(session: StoreSession, call: ApiRequest) -> Any:
    serves = session.is_serving()
    return paginate(call, [_shown(worker, is_alive=serves(worker)) for worker in session.reads.workers()], name="id")


def stop_worker(session: StoreSession, call: ApiRequest) -> Any:
    return _request(session, [_named(session, call)], _mode(call))


def stop_workers(session: StoreSession, call: ApiRequest) -> Any:
    mode = _mode(call)
    return _request(session, [worker.id for worker in session.reads.workers()], mode)


def restart_worker(session: StoreSession, call: ApiRequest) -> Any:
    return _request(session, [_named(session, call)], StopMode.RESTART)


def _mode(call: ApiRequest) -> StopMode:
    now = parse_flag(parse_object(call.body, "body", known=["now"]), "now")
    return StopMode.NOW if now else StopMode.FINISH


def _named(session: StoreSession, call: ApiRequest) -> str:
    name = call.path["id"]
    if not any(worker.id == name for worker in session.reads.workers()):
        raise WorkerNotFound(name)
    return name


def _request(session: StoreSession, names: list[str], mode: StopMode) -> dict[str, Any]:
    for name in names:
        session.open_store().request_stop(name, mode)
    return {"done": names, "refused": []}


def _shown(worker: Worker, *, is_alive: bool) -> dict[str, Any]:
    return worker.to_dict() if is_alive else {**worker.to_dict(), "state": "lost"}


_NOW: Final = {"type": "object", "additionalProperties": False, "properties": optional(now=FLAG)}

OPERATIONS: Final = (
    Operation(
        "GET",
        "/workers",
        list_workers,
        "List workers.",
        listing(ref("Worker")),
        PAGING,
        tag="workers",
    ),
    Operation(
        "POST",
        "/workers/stop",
        stop_workers,
        "Ask all workers to stop, after their running jobs or (`now`) at once. Does not wait for them.",
        ref("Answer"),
        body=_NOW,
        tag="workers",
    ),
    Operation(
        "POST",
        "/workers/{id}/stop",
        stop_worker,
        "Ask a worker to stop, after its running jobs or (`now`) at once. Does not wait for it.",
        ref("Answer"),
        body=_NOW,
        tag="workers",
    ),
    Operation(
        "POST",
        "/workers/{id}/restart",
        restart_worker,
        "Ask a worker to restart while its jobs continue. Does not wait for it.",
        ref("Answer"),
        tag="workers",
    ),
)
