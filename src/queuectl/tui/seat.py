"""Where the view asks the store: threads, each with a queue of its own, so that a store that is slow never holds the screen."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Final, TypeVar

from queuectl.client import Queue
from queuectl.clock import Leaving, Left
from queuectl.config import host_name
from queuectl.errors import StoreGone, Unavailable
from queuectl.job.model import Worker
from queuectl.store.open import store_exists, store_path, store_shown
from queuectl.store.protocol import Reads

T = TypeVar("T")

LEAVE: Final = 1.0  # as long as whoever quits waits for those who are in the middle of something


class Seat(Queue):
    """A queue with its doors open: for the view, which asks for what only use-cases know."""

    def __init__(self, home: str, db: str | None, clock: Leaving) -> None:
        super().__init__(home, db, clock=clock, trust_home=True)  # the command has checked it
        self.clock = clock
        self.host = host_name()
        self._was_there = False

    @property
    def store_name(self) -> str:
        """For people: without a password."""
        return store_shown(self._home, self._db) or store_path(self._home, self._db)

    def find(self) -> Reads | None:
        """The store; None while there is none. Raises StoreGone where there was one: to show nothing then would be a lie."""
        is_open = self._store is not None or self._reads is not None
        if not is_open and not store_exists(self._home, self._db):
            if self._was_there:
                raise StoreGone(self.store_name)
            return None
        self._was_there = True
        return self._look()

    def is_serving(self) -> Callable[[Worker], bool]:
        return self._is_serving()


class Room:
    """A thread with a seat in it."""

    def __init__(self, home: str, db: str | None) -> None:
        self.clock = Leaving(threading.Event())
        self._seat = Seat(home, db, self.clock)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="seat")

    async def ask(self, question: Callable[[Seat], T]) -> T:
        """Raises Left if the room was closed meanwhile."""
        if self.clock.left.is_set():
            raise Left
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._answer, question)
        except asyncio.CancelledError:
            if self.clock.left.is_set():  # it had not begun when the room was closed
                raise Left from None
            raise

    def _answer(self, question: Callable[[Seat], T]) -> T:
        try:
            return question(self._seat)
        except Unavailable:
            self._seat.close()  # whatever it was connected to: the next question begins anew
            raise

    def close(self) -> Future[None]:
        """Done when the store has been let go of, by the thread that holds it."""
        self.clock.left.set()
        done = self._thread.submit(self._seat.close)
        self._thread.shutdown(wait=False)
        return done


class Rooms:
    """All rooms of a view: one to look, one to act, and one for each thing that takes long: a log that is followed, a cancel.

    What is done is done in the order of the keys: two steps of a priority at a time would both begin at the same one.
    """

    def __init__(self, home: str, db: str | None) -> None:
        self._home, self._db = home, db
        self._open: set[Room] = set()
        self._closing: set[Future[None]] = set()
        self.looking, self.acting = self.open(), self.open()

    def open(self) -> Room:
        room = Room(self._home, self._db)
        self._open.add(room)
        return room

    def shut(self, room: Room) -> None:
        self._open.discard(room)
        done = room.close()
        self._closing.add(done)
        done.add_done_callback(self._closing.discard)

    async def act_apart(self, question: Callable[[Seat], T]) -> T:
        """In a room of its own: nobody who acts stands behind it."""
        room = self.open()
        try:
            return await room.ask(question)
        finally:
            self.shut(room)

    def close(self) -> None:
        for room in list(self._open):
            self.shut(room)
        wait(list(self._closing), timeout=LEAVE)
