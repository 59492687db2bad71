"""Thread pools for the requests of many clients. The core is synchronous, and a store belongs to one thread.

Requests that only read and requests that change something use different pools, so that a client with a read token cannot hold up
the changes of others. Requests that may wait long (for a job, a log, a receiver) have pools of their own as well. Every pool is
bounded, and so is the number of connections to a PostgreSQL server.
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

# Threads of each pool. Quick requests beyond that wait for their turn; slow ones are refused.
READS: Final = 8
CHANGES: Final = 4
SLOW_READS: Final = 24
SLOW_CHANGES: Final = 16
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
        self.reads = Room(make, size=READS, name="read")
        self.changes = Room(make, size=CHANGES, name="change")
        self.slow_reads = Lounge(make, size=SLOW_READS, name="slow-read")
        self.slow_changes = Lounge(make, size=SLOW_CHANGES, name="slow-change")
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
        """End the requests that wait: the server stops."""
        for room in (*self._of_requests(), self.alerting):
            room.leave()

    def close(self) -> None:
        for room in self._of_requests():
            room.close()
        # Not for whoever is slow to be told: what was not told is tried again, by another.
        self.alerting.close(wait=False)

    def _of_requests(self) -> tuple[Room | Lounge, ...]:
        return (self.reads, self.changes, self.slow_reads, self.slow_changes, self.streaming, self.watching)
