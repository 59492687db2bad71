"""Making several processes, two at a time.

Whoever makes a process waits until its program is loaded: the kernel gives the core to the new one first. Made one after the
other, they leave the second core idle for a fifth of the time, so a second thread takes every one that the first one does not.
A third would find nothing to do.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Sequence

from queuectl.clock import Clock
from queuectl.process.libc import KNOWS_DIRECTORIES
from queuectl.process.making import Made, Making, Unmade


class Row:
    """What is to be made, in this order."""

    def __init__(self, orders: Sequence[tuple[Making | Unmade, int]], clock: Clock) -> None:
        """With each the descriptor that it prints to, which is closed once it is made."""
        self._made: list[tuple[Made, float] | None] = [None] * len(orders)
        self._orders = orders
        self._clock = clock
        self._next = iter(range(len(orders)))  # asked by both
        self._is_over = threading.Event()

    def __len__(self) -> int:
        return len(self._made)

    def take(self) -> int | None:
        return next(self._next, None)

    def make(self, number: int) -> None:
        making, out = self._orders[number]
        at = self._clock.monotonic()
        self._made[number] = making.run(), at
        if out >= 0:
            os.close(out)

    def go_alone(self) -> None:
        self._is_over.set()

    def help(self) -> None:
        while (number := self.take()) is not None:
            self.make(number)
        self._is_over.set()

    def wait(self) -> list[tuple[Made, float]]:
        """Until the helper, too, has made what it has taken. Returns what became of each, and when it was begun."""
        self._is_over.wait()
        return [one for one in self._made if one is not None]


class Helper:
    """The second thread: there from the first row of more than one on."""

    def __init__(self) -> None:
        self._rows: queue.SimpleQueue[Row] | None = None

    def join(self, row: Row) -> None:
        # Where the C library cannot be told a working directory, the whole process goes there: one at a time.
        if len(row) < 2 or not KNOWS_DIRECTORIES:
            row.go_alone()
            return
        if self._rows is None:
            rows: queue.SimpleQueue[Row] = queue.SimpleQueue()
            try:
                threading.Thread(target=self._work, args=(rows,), daemon=True).start()
            except RuntimeError:  # the system has no room for another thread
                row.go_alone()
                return
            self._rows = rows
        self._rows.put(row)

    @staticmethod
    def _work(rows: queue.SimpleQueue[Row]) -> None:
        while True:
            rows.get().help()
