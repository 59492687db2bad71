"""Who changed what."""

from __future__ import annotations

from typing import Any, Final

from queuectl.queue import audit as use
from queuectl.queue.cursor import LARGEST, not_ours, pack
from queuectl.web.api.listing import listing, read_cursor
from queuectl.web.api.operation import Call, Operation, Param, Room
from queuectl.web.api.schemas import COUNT, FLAG, MOMENT, array, exactly
from queuectl.web.api.words import CURSOR, LIMIT
from queuectl.web.desk import Desk


def list_audit(desk: Desk, call: Call) -> Any:
    said, reads = call.query, desk.reads
    before = None if said["cursor"] is None else _before(said["cursor"])
    about: dict[str, Any] = {"since": said["since"], "subject": said["id"], "who": said["who"], "before": before}
    # One more than is asked for: whether it is there says whether this is the last page.
    found = [one.to_dict() for one in use.records(reads, **about, limit=said["limit"] + 1, now_ms=reads.now_ms)]
    items, more = found[: said["limit"]], found[said["limit"] :]
    return {"items": items, "next_cursor": pack([items[-1]["seq"]]) if more else None}


def _before(cursor: str) -> int:
    (seq,) = read_cursor(cursor, int)
    if not 0 <= seq <= LARGEST:
        raise not_ours()
    return int(seq)


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
        listing(_RECORD),
        (
            Param("since", "Only since then: how long ago, like `90m`, or a time."),
            Param("id", "Only of this job, queue, schedule, worker or setting."),
            Param("who", "Only by this user, uid, host, program or token."),
            LIMIT,
            CURSOR,
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
