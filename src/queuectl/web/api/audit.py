"""The audit log."""

from __future__ import annotations

from typing import Any, Final

from queuectl.operations import audit as use
from queuectl.operations.query import MAX_CURSOR_NUMBER, encode_cursor, invalid_cursor
from queuectl.web.api.operation import CURSOR, LIMIT, ApiRequest, Operation, Param, listing, read_cursor
from queuectl.web.schemas import COUNT, TIME, array, exactly
from queuectl.web.store_threads import StoreSession


def list_audit(session: StoreSession, call: ApiRequest) -> Any:
    query, reads = call.query, session.reads
    before = None if query["cursor"] is None else _before(query["cursor"])
    about: dict[str, Any] = {"since": query["since"], "subject": query["id"], "who": query["who"], "before": before}
    # One more than requested, to know whether there is another page.
    found = [one.to_dict() for one in use.records(reads, **about, limit=query["limit"] + 1, now_ms=reads.now_ms)]
    items, more = found[: query["limit"]], found[query["limit"] :]
    return {"items": items, "next_cursor": encode_cursor([items[-1]["seq"]]) if more else None}


def _before(cursor: str) -> int:
    (seq,) = read_cursor(cursor, int)
    if not 0 <= seq <= MAX_CURSOR_NUMBER:
        raise invalid_cursor()
    return int(seq)


_ANYTHING: Final = {"type": ["object", "null"]}
_TEXT: Final = {"type": "string"}
_RECORD: Final = exactly(
    seq=COUNT,
    at=TIME,
    who={"type": "object"},
    what=_TEXT,
    subjects=array(_TEXT),
    before=_ANYTHING,
    after=_ANYTHING,
)

OPERATIONS: Final = (
    Operation(
        "GET",
        "/audit",
        list_audit,
        "List the audit log, newest first.",
        listing(_RECORD),
        (
            Param("since", "Only since this time: a time, or a duration before now, like `90m`."),
            Param("id", "Only for this job, queue, schedule, worker or setting."),
            Param("who", "Only by this actor: a user, UID, host, program or token."),
            LIMIT,
            CURSOR,
        ),
        tag="maintenance",
        slow=True,
    ),
)
