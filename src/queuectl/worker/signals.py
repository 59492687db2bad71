"""Signals: they wake the loop, which reads from a pipe which ones have come, and decides.

The interpreter writes their numbers into the pipe at once. Handlers would run in the main thread only, and not before a call into
a library returns: too late if the library waits for a server that hangs.
"""

from __future__ import annotations

import contextlib
import os
import signal
from types import FrameType
from typing import Any, Final, Self

from queuectl.process.dispositions import ignored_from_start
from queuectl.process.leaving import LEAVE

STOPPING: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class SignalPipe:
    """Becomes readable at any signal, the end of a child included. `hush` counts those that ask us to stop."""

    def __init__(self, *, ignore_hangup: bool) -> None:
        self.stops = 0
        self.last_stop = 0
        self.is_leaving = False  # whoever restarts us wants us gone, and what we run to go on
        self._ignore_hangup = ignore_hangup or signal.getsignal(signal.SIGHUP) is signal.SIG_IGN  # nohup
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._old_handlers: dict[int, Any] = {}
        self._old_fd = -1

    def __enter__(self) -> Self:
        # Programs that we start must find default dispositions, see process/dispositions.py. The old ones are restored at the
        # end: a worker that starts again in place must still ignore SIGHUP under nohup.
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        self._old_fd = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for number in (*ignored_from_start(), *STOPPING, LEAVE, signal.SIGCHLD):
            self._handle(number)
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(self._old_fd)
        for number, handler in self._old_handlers.items():
            signal.signal(number, handler)
        os.close(self._read)
        os.close(self._write)

    def fileno(self) -> int:
        return self._read

    def drain(self) -> None:
        """Count the signals that have come since the last call."""
        with contextlib.suppress(BlockingIOError):
            while numbers := os.read(self._read, 4096):
                for number in numbers:
                    self._note(number)

    def _handle(self, number: int) -> None:
        if number not in self._old_handlers:
            self._old_handlers[number] = signal.signal(number, _ignore)

    def _note(self, number: int) -> None:
        self.is_leaving |= number == LEAVE
        if number not in STOPPING or (number == signal.SIGHUP and self._ignore_hangup):
            return
        self.stops += 1
        self.last_stop = number


def _ignore(number: int, _: FrameType | None) -> None:
    """The interpreter has written the number into the pipe."""
