"""Where the questions of many clients are answered: a few threads, each with a queue of its own.

The rest of the house is synchronous and a store belongs to a thread. Who has to wait for something (the end of a job that is
called off, output that is yet to come) sits at a desk of the waiting room: those who only ask never stand behind them.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Self, TypeVar

from queuectl.client import Queue
from queuectl.config import Settings, here, working_directory
from queuectl.errors import Unavailable
from queuectl.job.change import read_change
from queuectl.job.model import Job, Worker
from queuectl.job.spec import Defaults
from queuectl.queue import amend, schedules
from queuectl.queue.intake import Fields, Given
from queuectl.queue.schedules import Shop, Wish
from queuectl.store.protocol import Reads, Store

T = TypeVar("T")

ASKING: Final = 8  # as many as SQLite and a server's connections bear; beyond that a question waits its turn
WAITING: Final = 64


class Desk(Queue):
    """A queue with its doors open: for the operations of the API, which know the use-cases themselves."""

    @property
    def reads(self) -> Reads:
        return self._look()

    def open_store(self) -> Store:
        return self._write()

    @property
    def settings(self) -> Settings:
        return self._settings()

    @property
    def home(self) -> str:
        return self._home

    def rescue(self) -> None:
        self._rescue()

    # By their fields as JSON has them, not as keyword arguments: a client chooses their names.

    def add(self, fields: Fields) -> Job:
        return self._add(Given([fields], is_batch=False), {})[0]

    def add_many(self, items: list[Fields]) -> list[Job]:
        return self._add(Given(items, is_batch=True), {})

    def change(self, job_id: str, fields: Fields) -> Job:
        change = read_change(fields)
        return self._only(amend.edit(self._write(), [self.get(job_id).id], change))

    def copy(self, job_id: str, fields: Fields) -> Job:
        new = amend.clone(self.reads, self.reads.resolve(job_id), fields)
        store = self._write()
        return store.get(store.enqueue([new])[0])

    def schedule(self, wish: Wish, *, replace: bool) -> dict[str, Any]:
        cwd = working_directory()
        defaults = Defaults.of(self.settings, cwd=cwd)
        shop = Shop(self._look, self._write, lambda: defaults, random.random)
        return schedules.add(wish, shop, replace=replace).to_dict(None)

    def is_serving(self) -> Callable[[Worker], bool]:
        """Whether a worker lives and gives signs of it, as of now."""
        from queuectl.upkeep.liveness import is_serving

        where, reads = here(), self.reads
        now_ms = reads.now_ms()
        return lambda worker: is_serving(worker, here=where, now_ms=now_ms, lease_ms=lambda: self.settings.lease_ms)


class Room:
    """Some threads, with a desk each that is opened when it is first needed."""

    def __init__(self, make: Callable[[], Desk], *, size: int, name: str) -> None:
        self._make = make
        self._local = threading.local()
        self._threads = ThreadPoolExecutor(size, thread_name_prefix=name)

    async def ask(self, question: Callable[[Desk], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._answer, question)

    def _answer(self, question: Callable[[Desk], T]) -> T:
        desk = getattr(self._local, "desk", None)
        if desk is None:
            desk = self._local.desk = self._make()
        try:
            return question(desk)
        except Unavailable:
            desk.close()  # whatever it was connected to: the next question begins anew
            raise

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)


class Rooms:
    def __init__(self, make: Callable[[], Desk]) -> None:
        self.asking = Room(make, size=ASKING, name="ask")
        self.waiting = Room(make, size=WAITING, name="wait")
        # One desk: whether something has changed is a question about what that one has seen.
        self.watching = Room(make, size=1, name="watch")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for room in (self.asking, self.waiting, self.watching):
            room.close()
