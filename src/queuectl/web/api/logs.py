"""The log of a job: whole, a byte range, numbered lines, those with a text, or followed."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from queuectl.config import host_name
from queuectl.errors import UsageError
from queuectl.operations import logs
from queuectl.operations.logs import LogView, Piece
from queuectl.store_threads import StorePools, WebSession
from queuectl.web.api.operation import ApiRequest, Operations, Param, reject_nul
from queuectl.web.api.streams import EVENT_STREAM, PLAIN, Feed, stream
from queuectl.web.middleware import Refused
from queuectl.web.schemas import TEXT, ref

LOGS: Final = Operations("jobs")

RUN: Final = Param("run", "Only the log of this run.", {"type": "integer", "minimum": 1})
MAX_RANGE_BYTES: Final = 8 * 1024 * 1024  # bytes of one range

Span = tuple[int | None, int | None]  # first and last byte, inclusive


@LOGS(
    "GET /jobs/{id}/logs",
    "Show the log of a job. Supports `Range`, and streams events with `Accept: text/event-stream`.",
    {"type": "string"},
    params=(
        RUN,
        Param("tail", "Only this many lines from the end.", {"type": "integer", "minimum": 0}),
        Param(
            "from_line",
            "Only from this line on, counted from 1. As events, the first one is `line`, with the number of its first line.",
            {"type": "integer", "minimum": 1},
        ),
        Param("markers", "Include the START and END markers of runs.", {"type": "boolean", "default": True}),
        Param("follow", "Follow the log until the job has ended.", {"type": "boolean", "default": False}),
    ),
    media_type="text/plain",
    also={EVENT_STREAM: {"type": "string"}},
)
async def show_logs(request: Request, query: Mapping[str, Any], pools: StorePools, feed: Feed) -> Response:
    view = LogView(query["run"], query["markers"], query["tail"], query["from_line"])
    ref = reject_nul(request.path_params["id"], "id")
    # Before the response begins, so that an unknown job is a 404.
    job_id = await pools.reads.ask(lambda session: _known(session, ref, view, follow=query["follow"]))
    if EVENT_STREAM in request.headers.get("accept", ""):
        # With `tail` the start of the output changes, so an offset from an earlier response is meaningless.
        is_part = view.tail is not None or view.from_line is not None
        skip = 0 if is_part else _resumed(request.headers.get("last-event-id"))
        pieces = _follow if query["follow"] else _read_pieces
        events = _events(stream(pools.streaming, partial(pieces, job_id, view)), skip)
        return StreamingResponse(events, media_type=EVENT_STREAM)
    if query["follow"]:
        return StreamingResponse(stream(pools.streaming, partial(_follow_bytes, job_id, view)), media_type=PLAIN)
    if (wanted := request.headers.get("range")) is not None and (span := _read_range(wanted)) is not None:
        return await pools.reads.ask(lambda session: _part(session, job_id, view, span))
    headers = {"Accept-Ranges": "bytes"}
    return StreamingResponse(stream(pools.streaming, partial(_read, job_id, view)), media_type=PLAIN, headers=headers)


def _known(session: WebSession, ref: str, view: LogView, *, follow: bool) -> str:
    job_id = session.reads.resolve(ref)
    if view.run is not None and not follow:
        for _ in _read(job_id, view, session):  # raises for an unknown run
            break
    return job_id


def _read(job_id: str, view: LogView, session: WebSession) -> Iterator[bytes]:
    return logs.read_log(session.reads, job_id, view, host=host_name())


def _read_pieces(job_id: str, view: LogView, session: WebSession) -> Iterator[Piece]:
    return (Piece(job_id, data) for data in _read(job_id, view, session))


def _follow(job_id: str, view: LogView, session: WebSession) -> Iterator[Piece]:
    return logs.follow_logs(session.reads, session.clock, [job_id], view, host=host_name())


def _follow_bytes(job_id: str, view: LogView, session: WebSession) -> Iterator[bytes]:
    return (piece.data for piece in _follow(job_id, view, session))


async def _events(pieces: AsyncIterator[Piece], skip: int) -> AsyncIterator[bytes]:
    """Yield `output` events, then `end`. Their ID is the byte offset, so that a client can resume after a disconnect. A piece with a
    line number is preceded by a `line` event."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    at = 0
    yield b"retry: 1000\n\n"
    async for _, piece, line in pieces:
        at += len(piece)
        if at <= skip:
            continue
        if line is not None:
            yield f"event: line\ndata: {line}\n\n".encode()
        text = decoder.decode(piece[max(0, len(piece) - (at - skip)) :])
        if text:
            yield f"id: {at}\nevent: output\ndata: {json.dumps(text)}\n\n".encode()
    yield f"id: {at}\nevent: end\ndata: {json.dumps(decoder.decode(b'', final=True))}\n\n".encode()


def _resumed(text: str | None) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 16 else 0


def _read_range(text: str) -> Span | None:
    """Parse one range of bytes. Any other Range header is ignored, as RFC 9110 allows."""
    found = re.fullmatch(r"bytes=(\d{0,15})-(\d{0,15})", text.strip())
    if found is None or not any(found.groups()):
        return None
    first, last = (int(digits) if digits else None for digits in found.groups())
    return first, last


def _part(session: WebSession, job_id: str, view: LogView, span: Span) -> Response:
    size = sum(len(piece) for piece in _read(job_id, view, session))
    first, last = span
    if first is None:  # a suffix range
        first, last = max(0, size - (last or 0)), size - 1
    last = min(size - 1 if last is None else last, size - 1, first + MAX_RANGE_BYTES - 1)
    if first >= size or last < first:
        raise Refused(
            HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
            "no-such-range",
            f"the log has {size} bytes",
            hint="request a range within it",
            headers={"Content-Range": f"bytes */{size}"},
        )
    kept, at = bytearray(), 0
    for piece in _read(job_id, view, session):
        kept += piece[max(0, first - at) : max(0, last + 1 - at)]
        at += len(piece)
        if at > last:
            break
    headers = {"Content-Range": f"bytes {first}-{first + len(kept) - 1}/{size}", "Accept-Ranges": "bytes"}
    return Response(bytes(kept), status_code=206, media_type=PLAIN, headers=headers)


# ── numbered lines ──────────────────────────────────────────────────────────────────────────────────────────────────

MAX_LOG_LINES: Final = 5000  # in one response
MAX_LOG_BYTES: Final = 4 * 1024 * 1024


@LOGS(
    "GET /jobs/{id}/logs/lines",
    "Show numbered lines of the log of a job: from a line on, or the last ones.",
    ref("LogLines"),
    params=(
        RUN,
        Param("from_line", "The number of the first line, counted from 1.", {"type": "integer", "minimum": 1}),
        Param(
            "limit",
            "Maximum number of lines. Fewer if they are very long.",
            {"type": "integer", "minimum": 1, "maximum": MAX_LOG_LINES, "default": 500},
        ),
    ),
)
def show_log_lines(session: WebSession, call: ApiRequest) -> Any:
    job_id, (run, first, count) = session.reads.resolve(call.path["id"]), call.query.values()
    window = logs.read_lines(
        session.reads, job_id, run=run, first=first, count=count, max_bytes=MAX_LOG_BYTES, host=host_name()
    )
    return {"first": window.first, "lines": window.lines, "total": window.total}


@LOGS(
    "GET /jobs/{id}/logs/search",
    "Search the log of a job for a text, in upper or lower case.",
    ref("LogMatches"),
    params=(
        Param("text", "The text.", {**TEXT, "minLength": 1}),
        RUN,
        Param("from_line", "Search from this line on.", {"type": "integer", "minimum": 1, "default": 1}),
        Param(
            "limit",
            "Maximum number of matching lines.",
            {"type": "integer", "minimum": 1, "maximum": MAX_LOG_LINES, "default": 1000},
        ),
    ),
)
def search_log(session: WebSession, call: ApiRequest) -> Any:
    job_id, (text, run, from_line, limit) = session.reads.resolve(call.path["id"]), call.query.values()
    if not text:
        raise UsageError("no text to search for", hint="for example ?text=error")
    found = logs.search_log(session.reads, job_id, text, run=run, from_line=from_line, limit=limit, host=host_name())
    return {"items": [match._asdict() for match in found.items], "next_line": found.next_line}
