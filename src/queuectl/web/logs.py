"""What a job printed, over HTTP: all of it, a range of it, or as it comes."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import AsyncIterator, Iterator
from functools import partial
from http import HTTPStatus
from typing import Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from queuectl.config import host_name
from queuectl.queue import logs
from queuectl.queue.logs import LogView
from queuectl.web.api.operation import Operation, Param, without_nul
from queuectl.web.bridge import stream
from queuectl.web.desk import Desk
from queuectl.web.problems import Refused
from queuectl.web.rooms import Rooms

PLAIN: Final = "text/plain; charset=utf-8"
EVENTS: Final = "text/event-stream"
MOST: Final = 8 * 1024 * 1024  # bytes of one range

Span = tuple[int | None, int | None]  # the first and the last, both of them in it


def show_logs(desk: Desk, call: object) -> None:
    """Stands in the table for `answer`, which is of another kind: it streams."""


OPERATION: Final = Operation(
    "GET",
    "/jobs/{id}/logs",
    show_logs,
    "What a job printed: the bytes as they are. Takes Range. With Accept: text/event-stream as events.",
    {"type": "string"},
    (
        Param("run", "Of this run only.", {"type": "integer", "minimum": 1}),
        Param("tail", "The last so many lines.", {"type": "integer", "minimum": 0}),
        Param("markers", "With our lines about where runs begin and end.", {"type": "boolean", "default": True}),
        Param("follow", "Go on until the job has ended for good.", {"type": "boolean", "default": False}),
    ),
    media_type="text/plain",
    also={EVENTS: {"type": "string"}},
)


async def answer(request: Request, rooms: Rooms) -> Response:
    query = OPERATION.read_query(request.query_params.multi_items())
    view = LogView(run=query["run"], markers=query["markers"], tail=query["tail"])
    ref = without_nul(request.path_params["id"], "id")
    # Before the first byte of an answer, so that an unknown job is a 404.
    job_id = await rooms.reads.ask(lambda desk: _known(desk, ref, view, follow=query["follow"]))
    if EVENTS in request.headers.get("accept", ""):
        # The last lines are others than they were: what was counted from their beginning says nothing about them.
        skip = 0 if view.tail is not None else _resumed(request.headers.get("last-event-id"))
        events = _events(stream(rooms.streaming, partial(_follow if query["follow"] else _read, job_id, view)), skip)
        return StreamingResponse(events, media_type=EVENTS)
    if query["follow"]:
        return StreamingResponse(stream(rooms.streaming, partial(_follow, job_id, view)), media_type=PLAIN)
    if (wanted := request.headers.get("range")) is not None and (span := _read_range(wanted)) is not None:
        return await rooms.reads.ask(lambda desk: _part(desk, job_id, view, span))
    headers = {"Accept-Ranges": "bytes"}
    return StreamingResponse(stream(rooms.streaming, partial(_read, job_id, view)), media_type=PLAIN, headers=headers)


def _known(desk: Desk, ref: str, view: LogView, *, follow: bool) -> str:
    job_id = desk.reads.resolve(ref)
    if view.run is not None and not follow:
        for _ in logs.read(desk.reads, job_id, view, host=host_name()):  # raises for a run that there is not
            break
    return job_id


def _read(job_id: str, view: LogView, desk: Desk) -> Iterator[bytes]:
    return logs.read(desk.reads, job_id, view, host=host_name())


def _follow(job_id: str, view: LogView, desk: Desk) -> Iterator[bytes]:
    return (piece.data for piece in logs.follow(desk.reads, desk.clock, [job_id], view, host=host_name()))


async def _events(pieces: AsyncIterator[bytes], skip: int) -> AsyncIterator[bytes]:
    """`output` events whose id is the number of bytes so far, so that a client that was cut off goes on where it was; then `end`."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    at = 0
    yield b"retry: 1000\n\n"
    async for piece in pieces:
        at += len(piece)
        if at <= skip:
            continue
        text = decoder.decode(piece[max(0, len(piece) - (at - skip)) :])
        if text:
            yield f"id: {at}\nevent: output\ndata: {json.dumps(text)}\n\n".encode()
    yield f"id: {at}\nevent: end\ndata: {json.dumps(decoder.decode(b'', final=True))}\n\n".encode()


def _resumed(text: str | None) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 16 else 0


def _read_range(text: str) -> Span | None:
    """One range of bytes; of anything else, as of none, all is sent: RFC 9110 lets a server do so."""
    found = re.fullmatch(r"bytes=(\d{0,15})-(\d{0,15})", text.strip())
    if found is None or not any(found.groups()):
        return None
    first, last = (int(digits) if digits else None for digits in found.groups())
    return first, last


def _part(desk: Desk, job_id: str, view: LogView, span: Span) -> Response:
    size = sum(len(piece) for piece in logs.read(desk.reads, job_id, view, host=host_name()))
    first, last = span
    if first is None:  # the last so many
        first, last = max(0, size - (last or 0)), size - 1
    last = min(size - 1 if last is None else last, size - 1, first + MOST - 1)
    if first >= size or last < first:
        raise Refused(
            HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
            "no-such-range",
            f"the log has {size} bytes",
            hint="ask for some of those",
            headers={"Content-Range": f"bytes */{size}"},
        )
    kept, at = bytearray(), 0
    for piece in logs.read(desk.reads, job_id, view, host=host_name()):
        kept += piece[max(0, first - at) : max(0, last + 1 - at)]
        at += len(piece)
        if at > last:
            break
    headers = {"Content-Range": f"bytes {first}-{first + len(kept) - 1}/{size}", "Accept-Ranges": "bytes"}
    return Response(bytes(kept), status_code=206, media_type=PLAIN, headers=headers)
