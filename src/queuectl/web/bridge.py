"""From a thread that makes pieces one by one to a client that takes them as slowly as it likes, in bounded memory."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Final

from queuectl.clock import Clock, SystemClock
from queuectl.errors import QueuectlError
from queuectl.web.desk import Desk, Room

AHEAD: Final = 8  # pieces that are made before they are asked for


class Left(Exception):
    """Nobody is there any more to go on for."""


class Leaving:
    """A clock whose sleep ends when the client has gone: so do those who wait by it."""

    now_ms = SystemClock().now_ms
    monotonic = staticmethod(SystemClock.monotonic)

    def __init__(self, left: threading.Event) -> None:
        self._left = left

    def sleep(self, seconds: float) -> None:
        if self._left.wait(seconds):
            raise Left


Produce = Callable[[Desk, Clock], Iterator[bytes]]


async def stream(room: Room, produce: Produce) -> AsyncIterator[bytes]:
    """All that `produce` makes, in order. Closing this ends it, at its next piece or sleep."""
    loop = asyncio.get_running_loop()
    pieces: asyncio.Queue[bytes | QueuectlError | None] = asyncio.Queue(AHEAD)
    left = threading.Event()

    def hand_over(piece: bytes | QueuectlError | None) -> None:
        asyncio.run_coroutine_threadsafe(pieces.put(piece), loop).result()

    def work(desk: Desk) -> None:
        try:
            for piece in produce(desk, Leaving(left)):
                if left.is_set():
                    return
                hand_over(piece)
        except Left:
            return
        except QueuectlError as error:
            hand_over(error)
        else:
            hand_over(None)

    task = asyncio.ensure_future(room.ask(work))
    try:
        while (piece := await pieces.get()) is not None:
            if isinstance(piece, QueuectlError):
                raise piece
            yield piece
    finally:
        left.set()
        while not task.done():  # it may stand before a full queue
            while not pieces.empty():
                pieces.get_nowait()
            await asyncio.wait([task], timeout=0.05)
