"""Waiting until jobs have ended: so long as one request may take, and then again."""

from __future__ import annotations

from typing import Any, Final

from queuectl.errors import UsageError
from queuectl.job.duration import parse_duration_ms
from queuectl.job.lifecycle import FINAL, State
from queuectl.queue import batches
from queuectl.queue import wait as use
from queuectl.store.protocol import Filter
from queuectl.web.api.operation import Call, Operation, Param, Room
from queuectl.web.api.schemas import array, ref
from queuectl.web.api.words import SELECTORS, to_filter
from queuectl.web.desk import Desk

MOST_SECONDS: Final = 60.0  # longer, and a proxy on the way takes it for dead


def wait_for_job(desk: Desk, call: Call) -> Any:
    return desk.wait(call.path["id"], timeout=_seconds(call)).to_dict()


def wait_for_jobs(desk: Desk, call: Call) -> Any:
    where, seconds = to_filter(call.query, desk.reads), _seconds(call)
    if bool(call.query["id"]) == (where != Filter(calls=where.calls)):
        raise UsageError("expected either ids or what to choose by", hint="like ?id=7f3a&id=81bc, or ?queue=mail")
    if call.query["id"]:
        ids = [desk.reads.resolve(one) for one in call.query["id"]]
    else:
        where = where if where.states else where._replace(states=frozenset(State) - FINAL)
        ids = [job.id for job in desk.reads.choose(where)]
    ids = list(dict.fromkeys(ids))
    if not ids:
        return []
    ended = use.wait(desk.reads, desk.clock, ids, any_of_them=call.query["any"], timeout=seconds)
    return [job.to_dict() for job in ended]


def wait_for_batch(desk: Desk, call: Call) -> Any:
    return batches.wait(desk.reads, desk.clock, call.path["name"], timeout=_seconds(call)).to_dict()


def _seconds(call: Call) -> float:
    return min(parse_duration_ms(call.query["timeout"], subject="timeout") / 1000, MOST_SECONDS)


_TIMEOUT: Final = Param(
    "timeout", "At most so long, and never longer than 60 s; then 504.", {"type": "string", "default": "30s"}
)

OPERATIONS: Final = (
    Operation(
        "GET",
        "/wait",
        wait_for_jobs,
        "Jobs, once all of them have ended: those named, or those that match now and have not ended.",
        array(ref("Job")),
        (
            Param("id", "This job; up to 100 of them.", many=True),
            *SELECTORS,
            Param("any", "Until one of them has.", {"type": "boolean", "default": False}),
            _TIMEOUT,
        ),
        room=Room.WAIT,
    ),
    Operation(
        "GET", "/jobs/{id}/wait", wait_for_job, "The job, once it has ended.", ref("Job"), (_TIMEOUT,), room=Room.WAIT
    ),
    Operation(
        "GET",
        "/batches/{name}/wait",
        wait_for_batch,
        "The batch, once none of its jobs waits or runs.",
        ref("Batch"),
        (_TIMEOUT,),
        tag="batches",
        room=Room.WAIT,
    ),
)
