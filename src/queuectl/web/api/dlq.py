"""The dead letter queue: jobs that failed for good."""

from __future__ import annotations

from typing import Any, Final

from queuectl.job.lifecycle import State
from queuectl.job.model import from_ms, iso
from queuectl.queue import dlq as use
from queuectl.store.insight import MOST_DEATHS
from queuectl.web.api.bulk import ACTIONS, RETRY_DEAD, TARGETS, act_on_chosen
from queuectl.web.api.jobs import SORT, job_page, job_shown
from queuectl.web.api.operation import Call, Operation, Room
from queuectl.web.api.schemas import COUNT, MOMENT, TEXT, array, exactly, maybe, ref
from queuectl.web.api.words import CURSOR, LIMIT, SELECTORS, an_object
from queuectl.web.desk import Desk

_KNOWN: Final = ("ids", "where", "preview")


def list_dead(desk: Desk, call: Call) -> Any:
    return job_page(desk, {**call.query, "state": (State.DEAD.value,)})


def show_dead(desk: Desk, call: Call) -> Any:
    return job_shown(desk, use.require_dead(desk.reads, call.path["id"]))


def dead_by_error(desk: Desk, call: Call) -> Any:
    found = desk.reads.dead_by_error(limit=call.query["limit"])
    return [
        {"error": one.error, "queue": one.queue, "jobs": one.jobs, "newest": one.newest, "at": iso(from_ms(one.at_ms))}
        for one in found
    ]


def retry_dead(desk: Desk, call: Call) -> Any:
    return act_on_chosen(desk, RETRY_DEAD, an_object(call.body, "body", known=list(_KNOWN)))


def purge_dead(desk: Desk, call: Call) -> Any:
    return act_on_chosen(desk, ACTIONS["purge"], an_object(call.body, "body", known=list(_KNOWN)))


_DEATHS: Final = exactly(error=TEXT, queue=maybe("string"), jobs=COUNT, newest=TEXT, at=MOMENT)
_CHOOSING: Final = {"type": "object", "additionalProperties": False, "properties": TARGETS}
_BUT_STATE: Final = tuple(param for param in SELECTORS if param.name != "state")

OPERATIONS: Final = (
    Operation(
        "GET",
        "/dlq",
        list_dead,
        "The dead jobs that match, a page at a time.",
        ref("Jobs"),
        (*_BUT_STATE, SORT, LIMIT, CURSOR),
        tag="dlq",
    ),
    Operation(
        "GET",
        "/deaths",
        dead_by_error,
        f"What the last {MOST_DEATHS:,} dead jobs died of, the most frequent first; `newest` is the one that died last.",
        array(_DEATHS),
        (LIMIT,),
        tag="dlq",
    ),
    Operation(
        "POST",
        "/dlq/retry",
        retry_dead,
        "Let dead jobs run again: those named, or all that match.",
        ref("Acted"),
        body=_CHOOSING,
        tag="dlq",
        room=Room.WAIT,
    ),
    Operation(
        "POST",
        "/dlq/purge",
        purge_dead,
        "Remove dead jobs with their history and logs: those named, or all that match.",
        ref("Acted"),
        body=_CHOOSING,
        tag="dlq",
        room=Room.WAIT,
    ),
    Operation("GET", "/dlq/{id}", show_dead, "Everything about a dead job.", ref("Shown"), tag="dlq"),
)
