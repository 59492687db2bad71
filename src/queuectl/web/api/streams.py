"""Streamed responses: server-sent events, logs (whole, a byte range, or followed) and the export of jobs.

One task polls the database for all listeners to events. Asking whether something has changed is cheap; the status is then read once,
for any number of changes and listeners: a thousand changes a second become four messages.
"""

from __future__ import annotations

import asyncio
import codecs
import json
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from http import HTTPStatus
from itertools import chain
from typing import Any, Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from queuectl.clock import Cancelled
from queuectl.config import host_name
from queuectl.errors import QueuectlError
from queuectl.operations import export as use
from queuectl.operations import inspect, logs
from queuectl.operations.bulk import find_jobs
from queuectl.operations.export import export_config
from queuectl.operations.logs import LogView
from queuectl.store.types import Filter
from queuectl.store_threads import StorePool, StorePools, WaitPool, WebSession
from queuectl.web.api.operation import SELECTORS, Operations, Param, reject_nul, to_filter
from queuectl.web.middleware import CutOff, Refused, to_document

EVENTS: Final = Operations("status")
STREAMS: Final = Operations("jobs")

PLAIN: Final = "text/plain; charset=utf-8"
EVENT_STREAM: Final = "text/event-stream"
MAX_BUFFERED_CHUNKS: Final = 8  # produced ahead of the client
STALLED_SECONDS: Final = 60.0  # a client that reads nothing for this long is disconnected, to free its thread


Produce = Callable[[WebSession], Iterator[bytes]]


def stream(pool: WaitPool, produce: Produce) -> AsyncIterator[bytes]:
    """Stream the chunks of `produce`, which runs in a thread. It starts at once, so that errors are raised before the response
    begins. Closing the iterator stops it at its next chunk or sleep."""
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
    slots = threading.Semaphore(MAX_BUFFERED_CHUNKS)
    cancelled = threading.Event()

    def send_chunk(chunk: bytes) -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(chunks.put_nowait, chunk)

    def work(session: WebSession) -> None:
        for chunk in produce(session):
            if not slots.acquire(timeout=STALLED_SECONDS) or cancelled.is_set():
                raise CutOff
            send_chunk(chunk)

    def end(done: asyncio.Future[None]) -> None:
        error = None if done.cancelled() else done.exception()
        chunks.put_nowait(CutOff() if isinstance(error, Cancelled) else error if isinstance(error, Exception) else None)

    async def take() -> AsyncIterator[bytes]:
        try:
            while (chunk := await chunks.get()) is not None:
                if isinstance(chunk, Exception):
                    raise chunk
                slots.release()
                yield chunk
        finally:
            cancelled.set()
            slots.release()  # it may be blocked on a full buffer

    pool.run(work, cancelled).add_done_callback(end)
    return take()


# ── events ──────────────────────────────────────────────────────────────────────────────────────────────────────────

POLL_SECONDS: Final = 0.25
REST_FACTOR: Final = 5  # pause this many times the duration of a read, so that polling does not slow down workers
KEEPALIVE_SECONDS: Final = 15.0  # send a comment if nothing changes: proxies close idle connections
MAX_LISTENERS: Final = 256


class Message(NamedTuple):
    number: int
    event: str
    data: Any

    def encode(self) -> bytes:
        return f"id: {self.number}\nevent: {self.event}\ndata: {json.dumps(self.data)}\n\n".encode()


class Feed:
    """Polls while there are listeners. Each listener gets the latest message when it is ready; a slow one misses some."""

    def __init__(self, pool: StorePool[WebSession]) -> None:
        self._pool = pool
        self._listeners: set[asyncio.Event] = set()
        self._messages: list[Message] = []
        self._number = 0
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def check(self) -> None:
        """Reject a listener before the response begins: later an error cannot be sent."""
        if len(self._listeners) >= MAX_LISTENERS:
            hint = f"at most {MAX_LISTENERS}: close some"
            raise Refused(
                HTTPStatus.SERVICE_UNAVAILABLE, "too-many-listeners", "too many event streams are open", hint=hint
            )

    @asynccontextmanager
    async def listen(self) -> AsyncIterator[asyncio.Event]:
        changed = asyncio.Event()
        self._listeners.add(changed)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch())
        elif self._messages:
            changed.set()  # send the current message
        try:
            yield changed
        finally:
            self._listeners.discard(changed)

    async def stream(self, ids: Sequence[str], *, brief: bool = False) -> AsyncIterator[bytes]:
        """Yield events: `status`, and `job` when one of these jobs changes; `problem` while the database is unavailable.
        `brief`: without the status, which is long with very many queues; pages read what they need themselves."""
        seen: dict[str, Any] = {}
        yield b"retry: 2000\n\n"
        async with self.listen() as changed:
            while await self._wait(changed):
                if not changed.is_set():
                    yield b": keep-alive\n\n"
                    continue
                changed.clear()
                for message in list(self._messages):
                    yield (message._replace(data={}) if brief and message.event == "status" else message).encode()
                if ids:
                    for message in await self._jobs(ids, seen):
                        yield message.encode()

    async def _wait(self, changed: asyncio.Event) -> bool:
        """Wait for a change or until a keep-alive is due. Returns whether to continue."""
        with suppress(TimeoutError):
            await asyncio.wait_for(changed.wait(), KEEPALIVE_SECONDS)
        return not self._closed

    async def _jobs(self, ids: Sequence[str], seen: dict[str, Any]) -> list[Message]:
        with suppress(QueuectlError):  # `problem` reports it
            jobs = await self._pool.ask(
                lambda session: [job.to_dict() for job in find_jobs(session.reads, ids).values()]
            )
            changed = [job for job in jobs if seen.get(job["id"]) != job]
            seen.update((job["id"], job) for job in changed)
            return [Message(self._number, "job", job) for job in changed]
        return []

    async def _watch(self) -> None:
        loop, is_well, is_due, rest_until = asyncio.get_running_loop(), True, False, 0.0
        had_store: bool | None = None  # None: not read yet
        while self._listeners and not self._closed:
            try:
                # Also during a pause: a missing database has to be reported at once.
                has_store, has_changed = await self._pool.ask(_poll)
                is_due = is_due or has_changed or has_store is not had_store or not is_well
                began = loop.time()
                if is_due and began >= rest_until:
                    self._publish("status", await self._pool.ask(_read_status))
                    had_store, is_well, is_due = has_store, True, False
                    rest_until = loop.time() + REST_FACTOR * (loop.time() - began)
            except Cancelled:
                return
            except QueuectlError as error:
                if is_well:
                    self._publish("problem", to_document(error))
                is_well, rest_until = False, 0.0
            await asyncio.sleep(POLL_SECONDS)

    def _publish(self, event: str, data: Any) -> None:
        self._number += 1
        self._messages = [Message(self._number, event, data)]
        for changed in self._listeners:
            changed.set()

    def close(self) -> None:
        self._closed = True
        for changed in self._listeners:
            changed.set()


def _poll(session: WebSession) -> tuple[bool, bool]:
    """Whether there is a database, and whether something in it has changed since the last poll."""
    return (True, session.reads.changed()) if session.has_store else (False, False)


def _read_status(session: WebSession) -> dict[str, Any]:
    seen = inspect.status(session.reads, is_alive=session.is_serving())
    return {**seen.to_dict(), "totals": session.reads.totals()}


@EVENTS(
    "GET /events",
    "Stream events: `status` after every change, `job` for each watched job, `problem` while the database is unavailable.",
    {"type": "string"},
    params=(
        Param("id", "Also send `job` when this job changes. Up to 100 IDs.", many=True),
        Param("brief", "Send `status` events without data.", {"type": "boolean", "default": False}),
    ),
    media_type=EVENT_STREAM,
)
async def watch_events(request: Request, query: Mapping[str, Any], pools: StorePools, feed: Feed) -> Response:
    feed.check()
    return StreamingResponse(feed.stream(query["id"], brief=query["brief"]), media_type=EVENT_STREAM)


# ── logs and export ─────────────────────────────────────────────────────────────────────────────────────────────────

MAX_RANGE_BYTES: Final = 8 * 1024 * 1024  # bytes of one range

Span = tuple[int | None, int | None]  # first and last byte, inclusive


@STREAMS(
    "GET /jobs/{id}/logs",
    "Show the log of a job. Supports `Range`, and streams events with `Accept: text/event-stream`.",
    {"type": "string"},
    params=(
        Param("run", "Only the log of this run.", {"type": "integer", "minimum": 1}),
        Param("tail", "Only this many lines from the end.", {"type": "integer", "minimum": 0}),
        Param("markers", "Include the START and END markers of runs.", {"type": "boolean", "default": True}),
        Param("follow", "Follow the log until the job has ended.", {"type": "boolean", "default": False}),
    ),
    media_type="text/plain",
    also={EVENT_STREAM: {"type": "string"}},
)
async def show_logs(request: Request, query: Mapping[str, Any], pools: StorePools, feed: Feed) -> Response:
    view = LogView(run=query["run"], markers=query["markers"], tail=query["tail"])
    ref = reject_nul(request.path_params["id"], "id")
    # Before the response begins, so that an unknown job is a 404.
    job_id = await pools.reads.ask(lambda session: _known(session, ref, view, follow=query["follow"]))
    if EVENT_STREAM in request.headers.get("accept", ""):
        # With `tail` the start of the output changes, so an offset from an earlier response is meaningless.
        skip = 0 if view.tail is not None else _resumed(request.headers.get("last-event-id"))
        events = _events(stream(pools.streaming, partial(_follow if query["follow"] else _read, job_id, view)), skip)
        return StreamingResponse(events, media_type=EVENT_STREAM)
    if query["follow"]:
        return StreamingResponse(stream(pools.streaming, partial(_follow, job_id, view)), media_type=PLAIN)
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


MEDIA_TYPES: Final = {"json": "application/json", "jsonl": "application/jsonl"}


@STREAMS(
    "GET /export",
    "Export jobs for `queuectl db import`, oldest first, without the values of environment variables.",
    {"type": "string"},
    params=(
        *SELECTORS,
        Param(
            "format",
            "One array, or one object per line.",
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
