"""Streamed responses: the log of a job (whole, a byte range, or followed), and the export of jobs."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from functools import partial
from http import HTTPStatus
from itertools import chain
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from queuectl.config import host_name
from queuectl.operations import export as use
from queuectl.operations import logs
from queuectl.operations.export import export_config
from queuectl.operations.logs import LogView
from queuectl.store.types import Filter
from queuectl.store_threads import StorePools, WebSession
from queuectl.web.api.operation import SELECTORS, Operations, Param, reject_nul, to_filter
from queuectl.web.middleware import Refused
from queuectl.web.sse import Feed, stream

PLAIN: Final = "text/plain; charset=utf-8"
EVENTS: Final = "text/event-stream"
MAX_RANGE_BYTES: Final = 8 * 1024 * 1024  # bytes of one range

Span = tuple[int | None, int | None]  # first and last byte, inclusive


STREAMS: Final = Operations("jobs")


@STREAMS(
    "GET /jobs/{id}/logs",
    "The log of a job, as bytes. Supports Range. With Accept: text/event-stream, as events.",
    {"type": "string"},
    params=(
        Param("run", "Only this run.", {"type": "integer", "minimum": 1}),
        Param("tail", "Only the last lines.", {"type": "integer", "minimum": 0}),
        Param("markers", "Include the START and END markers of runs.", {"type": "boolean", "default": True}),
        Param("follow", "Follow the log until the job has ended.", {"type": "boolean", "default": False}),
    ),
    media_type="text/plain",
    also={EVENTS: {"type": "string"}},
)
async def show_logs(request: Request, query: Mapping[str, Any], pools: StorePools, feed: Feed) -> Response:
    view = LogView(run=query["run"], markers=query["markers"], tail=query["tail"])
    ref = reject_nul(request.path_params["id"], "id")
    # Before the response begins, so that an unknown job is a 404.
    job_id = await pools.reads.ask(lambda session: _known(session, ref, view, follow=query["follow"]))
    if EVENTS in request.headers.get("accept", ""):
        # With `tail` the start of the output changes, so an offset from an earlier response is meaningless.
        skip = 0 if view.tail is not None else _resumed(request.headers.get("last-event-id"))
        events = _events(stream(pools.streaming, partial(_follow if query["follow"] else _read, job_id, view)), skip)
        return StreamingResponse(events, media_type=EVENTS)
    if query["follow"]:
        return StreamingResponse(stream(pools.streaming, partial(_follow, job_id, view)), media_type=PLAIN)
    if (wanted := request.headers.get("range")) is not None and (span := _read_range(wanted)) is not None:
        return await pools.reads.ask(lambda session: _part(session, job_id, view, span))
    headers = {"Accept-Ranges": "bytes"}
    return StreamingResponse(stream(pools.streaming, partial(_read, job_id, view)), media_type=PLAIN, headers=headers)


def _known(session: WebSession, ref: str, view: LogView, *, follow: bool) -> str:
    job_id = session.reads.resolve(ref)
    if view.run is not None and not follow:
        for _ in logs.read_log(session.reads, job_id, view, host=host_name()):  # raises for an unknown run
            break
    return job_id


def _read(job_id: str, view: LogView, session: WebSession) -> Iterator[bytes]:
    return logs.read_log(session.reads, job_id, view, host=host_name())


def _follow(job_id: str, view: LogView, session: WebSession) -> Iterator[bytes]:
    return (piece.data for piece in logs.follow_logs(session.reads, session.clock, [job_id], view, host=host_name()))


async def _events(pieces: AsyncIterator[bytes], skip: int) -> AsyncIterator[bytes]:
    """Yield `output` events, then `end`. Their ID is the byte offset, so that a client can resume after a disconnect."""
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
    """Parse one range of bytes. Any other Range header is ignored, as RFC 9110 allows."""
    found = re.fullmatch(r"bytes=(\d{0,15})-(\d{0,15})", text.strip())
    if found is None or not any(found.groups()):
        return None
    first, last = (int(digits) if digits else None for digits in found.groups())
    return first, last


def _part(session: WebSession, job_id: str, view: LogView, span: Span) -> Response:
    size = sum(len(piece) for piece in logs.read_log(session.reads, job_id, view, host=host_name()))
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
    for piece in logs.read_log(session.reads, job_id, view, host=host_name()):
        kept += piece[max(0, first - at) : max(0, last + 1 - at)]
        at += len(piece)
        if at > last:
            break
    headers = {"Content-Range": f"bytes {first}-{first + len(kept) - 1}/{size}", "Accept-Ranges": "bytes"}
    return Response(bytes(kept), status_code=206, media_type=PLAIN, headers=headers)


MEDIA_TYPES: Final = {"json": "application/json", "jsonl": "application/jsonl"}


@STREAMS(
    "GET /export",
    "Export jobs in the order of enqueue, in the format of `queuectl import`, without the values of environment variables.",
    {"type": "string"},
    params=(
        *SELECTORS,
        Param(
            "format",
            "One array, or one job per line.",
            {"type": "string", "enum": list(MEDIA_TYPES), "default": "jsonl"},
        ),
        Param("history", "Include all runs of each job.", {"type": "boolean", "default": False}),
        Param("rules", "Include queue settings and schedules.", {"type": "boolean", "default": False}),
    ),
    media_type="application/jsonl",
    also={"application/json": {"type": "array", "items": {"type": "object"}}},
    tag="maintenance",
)
async def export_jobs(request: Request, query: Mapping[str, Any], pools: StorePools, feed: Feed) -> Response:
    where = await pools.reads.ask(lambda session: to_filter(query, session.reads))
    pieces = stream(pools.streaming, partial(_chunks, query, where))
    return StreamingResponse(pieces, media_type=MEDIA_TYPES[query["format"]])


def _chunks(query: Mapping[str, Any], where: Filter, session: WebSession) -> Iterator[bytes]:
    jobs = use.export_jobs(session.reads, where, history=query["history"], show_env=False)
    rules = export_config(session.reads, show_env=False) if query["rules"] else ()
    return use.spool(
        piece.encode() for piece in use.format_records(chain(rules, jobs), use.ExportFormat(query["format"]))
    )
