"""From a thread that makes pieces one by one to a client that takes them as slowly as it likes, in bounded memory."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from typing import Final

from queuectl.clock import Left
from queuectl.web.desk import Desk
from queuectl.web.rooms import Lounge

AHEAD: Final = 8  # pieces that are made before they are asked for
STALLED: Final = 60.0  # seconds that a client may take none: then its seat is for others


class CutOff(Exception):
    """The client took nothing for so long that it was given up: what it has is not all of it."""


Produce = Callable[[Desk], Iterator[bytes]]


def stream(room: Lounge, produce: Produce) -> AsyncIterator[bytes]:
    """All that `produce` makes, in order. It begins at once, so that whoever finds no seat is refused before an answer has begun.
    Closing this ends it, at its next piece or sleep."""
    loop = asyncio.get_running_loop()
    pieces: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
    places = threading.Semaphore(AHEAD)
    left = threading.Event()

    def hand_over(piece: bytes) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody is there to take it
            loop.call_soon_threadsafe(pieces.put_nowait, piece)

    def work(desk: Desk) -> None:
        for piece in produce(desk):
            if not places.acquire(timeout=STALLED) or left.is_set():
                raise CutOff
            hand_over(piece)

    def end(done: asyncio.Future[None]) -> None:
        error = None if done.cancelled() else done.exception()
        pieces.put_nowait(CutOff() if isinstance(error, Left) else error if isinstance(error, Exception) else None)

    async def take() -> AsyncIterator[bytes]:
        try:
            while (piece := await pieces.get()) is not None:
                if isinstance(piece, Exception):
                    raise piece
                places.release()
                yield piece
        finally:
            left.set()
            places.release()  # it may stand before a full queue

    room.seat(work, left).add_done_callback(end)
    return take()
