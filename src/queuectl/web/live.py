"""What changes, as it changes: one look at the store for all who watch, and never faster than a person can.

A change is noticed by asking the store whether there was one, which costs next to nothing. What it was is then looked up
once, however many changes there were and however many watch: a thousand a second are four messages.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from queuectl.clock import Left
from queuectl.errors import QueuectlError
from queuectl.queue import inspect
from queuectl.queue.pick import find
from queuectl.web.api.operation import Operation, Param
from queuectl.web.desk import Desk
from queuectl.web.problems import Refused, to_document
from queuectl.web.rooms import Room

LOOK_EVERY: Final = 0.25
REST: Final = 5  # as in wait: who looks on must not keep busy those who work
SIGN_EVERY: Final = 15.0  # of life, where nothing changes: so long a proxy waits
MOST_LISTENERS: Final = 256


def watch_events(desk: Desk, call: object) -> None:
    """Stands in the table for `Feed.stream`, which is of another kind: it does not end."""


EVENTS: Final = Operation(
    "GET",
    "/events",
    watch_events,
    "Server-sent events: `status` whenever something has changed, `job` for each job that is named, `problem` while the store is away.",
    {"type": "string"},
    (
        Param("id", "Also whenever this job changes; up to 100 of them.", many=True),
        Param("brief", "Only that something has changed: `status` is empty.", {"type": "boolean", "default": False}),
    ),
    tag="figures",
    media_type="text/event-stream",
)


class News(NamedTuple):
    number: int
    event: str
    data: Any

    def encode(self) -> bytes:
        return f"id: {self.number}\nevent: {self.event}\ndata: {json.dumps(self.data)}\n\n".encode()


class Feed:
    """Looks while anybody listens. Each listener gets the newest there is when it is ready: what it was too slow for is left out."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._listeners: set[asyncio.Event] = set()
        self._news: list[News] = []
        self._number = 0
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def check(self) -> None:
        """Before an answer begins: afterwards nobody can be refused in words."""
        if len(self._listeners) >= MOST_LISTENERS:
            hint = f"at most {MOST_LISTENERS} may: close some"
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "too-many-listeners", "too many are watching", hint=hint)

    @asynccontextmanager
    async def listen(self) -> AsyncIterator[asyncio.Event]:
        bell = asyncio.Event()
        self._listeners.add(bell)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch())
        elif self._news:
            bell.set()  # what is known already
        try:
            yield bell
        finally:
            self._listeners.discard(bell)

    async def stream(self, ids: Sequence[str], *, brief: bool = False) -> AsyncIterator[bytes]:
        """Server-sent events: `status`, and `job` for each of these ids whenever it changes; `problem` while the store is away.
        `brief`: without the figures, which a page has by its own question; of very many queues they are long."""
        seen: dict[str, Any] = {}
        yield b"retry: 2000\n\n"
        async with self.listen() as bell:
            while await self._wait(bell):
                if not bell.is_set():
                    yield b": still here\n\n"
                    continue
                bell.clear()
                for news in list(self._news):
                    yield (news._replace(data={}) if brief and news.event == "status" else news).encode()
                if ids:
                    for news in await self._jobs(ids, seen):
                        yield news.encode()

    async def _wait(self, bell: asyncio.Event) -> bool:
        """For the bell, or until it is time for a sign of life. Whether to go on."""
        with suppress(TimeoutError):
            await asyncio.wait_for(bell.wait(), SIGN_EVERY)
        return not self._closed

    async def _jobs(self, ids: Sequence[str], seen: dict[str, Any]) -> list[News]:
        with suppress(QueuectlError):  # said by `problem` already
            jobs = await self._room.ask(lambda desk: [job.to_dict() for job in find(desk.reads, ids).values()])
            changed = [job for job in jobs if seen.get(job["id"]) != job]
            seen.update((job["id"], job) for job in changed)
            return [News(self._number, "job", job) for job in changed]
        return []

    async def _watch(self) -> None:
        loop, is_well, is_due, rest_until = asyncio.get_running_loop(), True, False, 0.0
        was_there: bool | None = None  # the store; None: nobody has looked yet
        while self._listeners and not self._closed:
            try:
                # Asked also while looks rest: that the store is gone has to be told at once.
                is_there, has_changed = await self._room.ask(_glance)
                is_due = is_due or has_changed or is_there is not was_there or not is_well
                began = loop.time()
                if is_due and began >= rest_until:
                    self._tell("status", await self._room.ask(_look))
                    was_there, is_well, is_due = is_there, True, False
                    rest_until = loop.time() + REST * (loop.time() - began)
            except Left:
                return
            except QueuectlError as error:
                if is_well:
                    self._tell("problem", to_document(error))
                is_well, rest_until = False, 0.0
            await asyncio.sleep(LOOK_EVERY)

    def _tell(self, event: str, data: Any) -> None:
        self._number += 1
        self._news = [News(self._number, event, data)]
        for bell in self._listeners:
            bell.set()

    def close(self) -> None:
        self._closed = True
        for bell in self._listeners:
            bell.set()


def _glance(desk: Desk) -> tuple[bool, bool]:
    """Whether there is a store, and whether something has changed in it since the last time."""
    return (True, desk.reads.changed()) if desk.has_store else (False, False)


def _look(desk: Desk) -> dict[str, Any]:
    seen = inspect.status(desk.reads, is_alive=desk.is_serving())
    return {**seen.to_dict(), "totals": desk.reads.totals()}
