"""Streamed responses: server-sent events and the export of jobs; logs are in logs.py.

One task polls the database for all listeners to events. Asking whether something has changed is cheap; the status is then read once,
for any number of changes and listeners: a thousand changes a second become four messages.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from http import HTTPStatus
from itertools import chain
from typing import Any, Final, NamedTuple, TypeVar

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from queuectl.clock import Cancelled
from queuectl.errors import QueuectlError
from queuectl.operations import export as use
from queuectl.operations import inspect
from queuectl.operations.bulk import find_jobs
from queuectl.operations.export import export_config
from queuectl.store.types import Filter
from queuectl.store_threads import StorePool, StorePools, WaitPool, WebSession
from queuectl.web.api.operation import SELECTORS, Operations, Param, to_filter
from queuectl.web.middleware import CutOff, Refused, to_document

EVENTS: Final = Operations("status")
STREAMS: Final = Operations("jobs")

PLAIN: Final = "text/plain; charset=utf-8"
EVENT_STREAM: Final = "text/event-stream"
MAX_BUFFERED_CHUNKS: Final = 8  # produced ahead of the client
STALLED_SECONDS: Final = 60.0  # a client that reads nothing for this long is disconnected, to free its thread


Chunk = TypeVar("Chunk")


def stream(pool: WaitPool, produce: Callable[[WebSession], Iterator[Chunk]]) -> AsyncIterator[Chunk]:
    """Stream the chunks of `produce`, which runs in a thread. It starts at once, so that errors are raised before the response
    begins. Closing the iterator stops it at its next chunk or sleep."""
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[Chunk | Exception | None] = asyncio.Queue()
    slots = threading.Semaphore(MAX_BUFFERED_CHUNKS)
    cancelled = threading.Event()

    def send_chunk(chunk: Chunk) -> None:
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

    async def take() -> AsyncIterator[Chunk]:
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


# ── export ──────────────────────────────────────────────────────────────────────────────────────────────────────────

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
