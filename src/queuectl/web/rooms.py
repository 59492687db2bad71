"""Where the questions of many clients are answered: a few threads, each with a queue of its own.

The rest of the house is synchronous and a store belongs to a thread. Who has to wait for something sits in a room of its own kind,
with so many seats and no more: those who only ask never stand behind them, a cancel never behind somebody who reads a log, and a
server's connections are not used up.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Final, Self, TypeVar

from queuectl.clock import Clock, Leaving
from queuectl.errors import QueuectlError, Unavailable
from queuectl.web.desk import Desk
from queuectl.web.problems import Refused

T = TypeVar("T")
MakeDesk = Callable[[Clock], Desk]

ASKING: Final = 8  # as many as SQLite and a server's connections bear; beyond that a question waits its turn
WAITING: Final = 24
STREAMING: Final = 32


class Room:
    """Some threads, with a desk each that is opened when it is first needed and kept."""

    def __init__(self, make: MakeDesk, *, size: int, name: str) -> None:
        self._make = make
        self._left = threading.Event()
        self._local = threading.local()
        self._threads = ThreadPoolExecutor(size, thread_name_prefix=name)

    async def ask(self, question: Callable[[Desk], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._answer, question)

    def _answer(self, question: Callable[[Desk], T]) -> T:
        desk = getattr(self._local, "desk", None)
        if desk is None:
            desk = self._local.desk = self._make(Leaving(self._left))
        try:
            return question(desk)
        except Exception as error:
            if isinstance(error, Unavailable) or not isinstance(error, QueuectlError):
                desk.close()  # whatever it was connected to: the next question begins anew
            raise

    def leave(self) -> None:
        self._left.set()

    def close(self, *, wait: bool = True) -> None:
        self.leave()
        self._threads.shutdown(wait=wait, cancel_futures=True)


class Lounge:
    """For those who wait: a thread and a desk for each while it does, and a word at once for whom there is no seat."""

    def __init__(self, make: MakeDesk, *, size: int, name: str) -> None:
        self._make = make
        self._size = size
        self._seated: set[threading.Event] = set()
        self._threads = ThreadPoolExecutor(size, thread_name_prefix=name)

    def seat(self, question: Callable[[Desk], T], left: threading.Event) -> asyncio.Future[T]:
        """Begin at once, or raise Refused. `left`: set by whoever asked, once the answer is not wanted any more: then it is Left."""
        if len(self._seated) >= self._size:
            raise Refused(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "too-many-waiting",
                f"{self._size} others wait for something here",
                hint="try again in a moment, or let go of some",
                headers={"Retry-After": "1"},
            )
        self._seated.add(left)
        asked = asyncio.get_running_loop().run_in_executor(self._threads, self._answer, question, left)
        # When the thread is free, not when whoever asked is: one that was cut off may still be on its way out.
        asked.add_done_callback(lambda _: self._seated.discard(left))
        return asked

    async def ask(self, question: Callable[[Desk], T], left: threading.Event | None = None) -> T:
        return await asyncio.shield(self.seat(question, left or threading.Event()))

    def _answer(self, question: Callable[[Desk], T], left: threading.Event) -> T:
        with self._make(Leaving(left)) as desk:
            return question(desk)

    def leave(self) -> None:
        for left in list(self._seated):
            left.set()

    def close(self) -> None:
        self.leave()
        self._threads.shutdown(wait=True, cancel_futures=True)


class Rooms:
    def __init__(self, make: MakeDesk) -> None:
        self.asking = Room(make, size=ASKING, name="ask")
        self.waiting = Lounge(make, size=WAITING, name="wait")
        self.streaming = Lounge(make, size=STREAMING, name="stream")
        # One desk: whether something has changed is a question about what that one has seen.
        self.watching = Room(make, size=1, name="watch")
        # Apart: whoever is told of an alert may be slow.
        self.alerting = Room(make, size=1, name="alert")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def leave(self) -> None:
        """Let all go home who wait: this server ends."""
        for room in (self.asking, self.waiting, self.streaming, self.watching, self.alerting):
            room.leave()

    def close(self) -> None:
        for room in (self.asking, self.waiting, self.streaming, self.watching):
            room.close()
        # Not for whoever is slow to be told: what was not told is tried again, by another.
        self.alerting.close(wait=False)
