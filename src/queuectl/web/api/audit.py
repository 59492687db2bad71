"""Who changed what."""

from __future__ import annotations

from typing import Any, Final

from queuectl.queue import audit as use
from queuectl.web.api.operation import Call, Operation, Param, Room
from queuectl.web.api.schemas import COUNT, FLAG, MOMENT, array, exactly
from queuectl.web.desk import Desk

MOST: Final = 1000


def list_audit(desk: Desk, call: Call) -> Any:
    said, reads = call.query, desk.reads
    found = use.records(
        reads, since=said["since"], subject=said["id"], who=said["who"], limit=said["limit"], now_ms=reads.now_ms
    )
    return {"records": [one.to_dict() for one in found]}


def verify_audit(desk: Desk, call: Call) -> Any:
    head = call.query["head"]
    return use.verify(desk.reads, None if head is None else use.parse_link(head, subject="head")).to_dict()


_ANYTHING: Final = {"type": ["object", "null"]}
_TEXT: Final = {"type": "string"}
_LINK: Final = exactly(seq=COUNT, hash=_TEXT)
_RECORD: Final = exactly(
    seq=COUNT,
    at=MOMENT,
    who={"type": "object"},
    what=_TEXT,
    subjects=array(_TEXT),
    before=_ANYTHING,
    after=_ANYTHING,
    hash=_TEXT,
)

OPERATIONS: Final = (
    Operation(
        "GET",
        "/audit",
        list_audit,
        "Who changed what, newest first.",
        exactly(records=array(_RECORD)),
        (
            Param("since", "Only since then: how long ago, like `90m`, or a time."),
            Param("id", "Only of this job, queue, schedule, worker or setting."),
            Param("who", "Only by this user, uid, host, program or token."),
            Param("limit", "At most so many.", {"type": "integer", "minimum": 0, "maximum": MOST, "default": 50}),
        ),
        tag="house",
        room=Room.WAIT,
    ),
    Operation(
        "GET",
        "/audit/verify",
        verify_audit,
        "Whether the records are as they were written; `head` is a place of the chain that was noted before.",
        exactly(whole=FLAG, records=COUNT, base=_LINK, head=_LINK, faults=array(exactly(seq=COUNT, what=_TEXT))),
        (Param("head", "SEQ:HASH, as this operation gives it."),),
        tag="house",
        room=Room.WAIT,
    ),
)
