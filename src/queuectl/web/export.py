"""Jobs as text, as `export` prints them: a stream of any length. The values of environments are left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from queuectl.queue import export as use
from queuectl.queue.portable import export_rules
from queuectl.store.protocol import Filter
from queuectl.web.api.operation import Operation, Param
from queuectl.web.api.words import SELECTORS, to_filter
from queuectl.web.bridge import stream
from queuectl.web.desk import Desk
from queuectl.web.rooms import Rooms

MEDIA_TYPES: Final = {"json": "application/json", "jsonl": "application/jsonl"}


def export_jobs(desk: Desk, call: object) -> None:
    """Stands in the table for `answer`, which is of another kind: it streams."""


OPERATION: Final = Operation(
    "GET",
    "/export",
    export_jobs,
    "The jobs that match in the order of enqueue, as `queuectl import` takes them; values of environments are left out.",
    {"type": "string"},
    (
        *SELECTORS,
        Param(
            "format", "One array, or a job a line.", {"type": "string", "enum": list(MEDIA_TYPES), "default": "jsonl"}
        ),
        Param("history", "With all runs of each job.", {"type": "boolean", "default": False}),
        Param("rules", "Also what is said about queues, and schedules.", {"type": "boolean", "default": False}),
    ),
    media_type="application/jsonl",
    also={"application/json": {"type": "array", "items": {"type": "object"}}},
    tag="house",
)


async def answer(request: Request, rooms: Rooms) -> Response:
    query = OPERATION.read_query(request.query_params.multi_items())
    where = await rooms.reads.ask(lambda desk: to_filter(query, desk.reads))
    pieces = stream(rooms.streaming, partial(_chunks, query, where))
    return StreamingResponse(pieces, media_type=MEDIA_TYPES[query["format"]])


def _chunks(query: Mapping[str, Any], where: Filter, desk: Desk) -> Iterator[bytes]:
    jobs = use.export(desk.reads, where, history=query["history"], show_env=False)
    rules = export_rules(desk.reads, show_env=False) if query["rules"] else ()
    return use.spooled(piece.encode() for piece in use.lay_out(chain(rules, jobs), use.Format(query["format"])))
