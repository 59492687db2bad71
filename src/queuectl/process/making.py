"""A thread that makes processes, so that the worker need not wait until a new program is loaded.

It is the only one besides the loop's, and knows nothing but its two lines: what to make, and what was made.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
from collections.abc import Iterator, Sequence
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Final

from queuectl.clock import Clock, boot_ticks
from queuectl.process.libc import Call

# So many may wait to be made when `put` returns. With more, what has ended is settled in smaller and dearer portions;
# with fewer, the thread has nothing to do while we settle.
FEW: Final = 2

_TRY_NEXT: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EACCES})


class Making:
    """A process to be made, and what became of it."""

    __slots__ = ("after", "at", "before", "call", "crash", "enter", "errors", "programs")

    def __init__(self, call: Call, programs: Sequence[bytes], *, enter: bytes | None) -> None:
        """The first of the programs that can be run is. `enter`: we go there ourselves, since the call cannot."""
        self.call = call
        self.programs = programs
        self.enter = enter
        self.errors: list[int] = []  # one for each program that was tried in vain
        self.at = 0.0
        self.before = self.after = 0  # the clock of the kernel's process table
        self.crash: BaseException | None = None

    @property
    def is_made(self) -> bool:
        return len(self.errors) < len(self.programs)

    def run(self, clock: Clock) -> None:
        self.before, self.at = boot_ticks(), clock.monotonic()
        if self.enter is not None:
            try:
                os.chdir(self.enter)
            except (OSError, ValueError) as exc:
                self.errors = [getattr(exc, "errno", errno.EINVAL)] * len(self.programs)
                return
        for program in self.programs:
            error = self.call.make(program)
            if not error:
                break
            self.errors.append(error)
            if error not in _TRY_NEXT:
                self.errors += [error] * (len(self.programs) - len(self.errors))
                break
        self.after = boot_ticks()


class Maker:
    """Makes what is put, in that order. Becomes readable when nothing is left to make."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wanted: SimpleQueue[Making | None] = SimpleQueue()
        self._made: SimpleQueue[Making] = SimpleQueue()
        self._few = Lock()  # taken by who puts, let go by the thread: a sign, not a guard
        self._few.acquire()
        self._idle = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._thread: Thread | None = None
        self.pending = 0  # put, and not taken yet

    def fileno(self) -> int:
        return self._idle

    def put(self, makings: Sequence[Making]) -> None:
        """Returns when few wait to be made."""
        self.pending += len(makings)
        if not self._has_thread():
            for making in makings:
                self._make(making)
            return
        for making in makings:
            self._wanted.put(making)
        while self._wanted.qsize() > FEW:
            self._few.acquire()

    def take(self, *, wait: bool) -> Iterator[Making]:
        """What has been made since, in order; with `wait`, all that was put. Raises what the thread raised."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._idle)
        with contextlib.suppress(Empty):
            while self.pending:
                making = self._made.get(block=wait)
                self.pending -= 1
                if making.crash is not None:
                    raise making.crash
                yield making

    def close(self) -> None:
        if self._thread is not None:
            self._wanted.put(None)
            self._thread.join()
        os.close(self._idle)

    def _work(self) -> None:
        # Signals are for the loop; what is made gets an empty mask all the same.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        while (making := self._wanted.get()) is not None:
            if self._few.locked() and self._wanted.qsize() <= FEW:
                self._few.release()
            self._make(making)

    def _make(self, making: Making) -> None:
        try:
            making.run(self._clock)
        except BaseException as exc:  # noqa: BLE001 - raised again by `take`
            making.crash = exc
        self._made.put(making)
        if self._wanted.empty():
            os.eventfd_write(self._idle, 1)

    def _has_thread(self) -> bool:
        if self._thread is None:
            thread = Thread(target=self._work, name="maker", daemon=True)
            try:
                thread.start()
            except (
                RuntimeError
            ):  # there is no room for one: then we make processes ourselves, if there is room for them
                return False
            self._thread = thread
        return True
