"""Signals: they wake the loop, which reads from a pipe which ones have arrived, and decides.

The interpreter writes their numbers into the pipe at once. Handlers would run in the main thread only, and not before a call into a
library returns: too late if the library waits for a server that hangs.
"""

from __future__ import annotations

import contextlib
import os
import signal
from types import FrameType
from typing import Any, Final, Self

from queuectl.process.client import LEAVE_SIGNAL
from queuectl.process.spawn import ignored_from_start
from queuectl.store.types import StopMode

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class SignalPipe:
    """Becomes readable at any signal, SIGCHLD included. `drain` counts those that ask us to stop."""

    def __init__(self, *, ignore_hangup: bool) -> None:
        self.stops = 0
        self.last_stop = 0
        self.is_leaving = False  # asked to exit while our runs continue
        self._ignore_hangup = ignore_hangup or signal.getsignal(signal.SIGHUP) is signal.SIG_IGN  # nohup
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._old_handlers: dict[int, Any] = {}
        self._old_fd = -1

    def __enter__(self) -> Self:
        # A handler becomes the default in a new program, an ignored signal stays ignored: so also those get one that nohup, cron or a shell
        # made us ignore. They are restored at the end: a worker that restarts in place must still ignore SIGHUP under nohup.
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        self._old_fd = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for number in {*ignored_from_start(), *STOP_SIGNALS, LEAVE_SIGNAL, signal.SIGCHLD}:
            self._old_handlers[number] = signal.signal(number, _ignore)
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(self._old_fd)
        for number, handler in self._old_handlers.items():
            signal.signal(number, handler)
        os.close(self._read)
        os.close(self._write)

    def fileno(self) -> int:
        return self._read

    @property
    def stop_mode(self) -> StopMode | None:
        """What the signals ask for that have arrived."""
        if self.stops >= 2:
            return StopMode.NOW
        if self.stops == 1:
            return StopMode.FINISH
        return StopMode.RESTART if self.is_leaving else None

    def drain(self) -> None:
        """Count the signals that have arrived since the last call."""
        with contextlib.suppress(BlockingIOError):
            while numbers := os.read(self._read, 4096):
                for number in numbers:
                    self._note(number)

    def _note(self, number: int) -> None:
        self.is_leaving |= number == LEAVE_SIGNAL
        if number not in STOP_SIGNALS or (number == signal.SIGHUP and self._ignore_hangup):
            return
        self.stops += 1
        self.last_stop = number


def _ignore(number: int, _: FrameType | None) -> None:
    """The interpreter has written the number into the pipe."""
