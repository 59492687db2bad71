"""Signals: handlers only take note and wake the loop; the loop decides."""

from __future__ import annotations

import contextlib
import os
import signal
from types import FrameType
from typing import Any, Final, Self

from queuectl.process.leaving import LEAVE

STOPPING: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class SignalPipe:
    """Counts the signals that ask us to stop and becomes readable at any signal, the end of a child included."""

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
        # A job must find the default dispositions and an empty mask. A handler becomes the default at exec, an ignored
        # signal stays ignored: so whatever our parent made us ignore gets a handler that does nothing.
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        self._old_fd = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for number in signal.valid_signals():
            # Python itself ignores these two, and subprocess restores them.
            if signal.getsignal(number) is signal.SIG_IGN and number not in (signal.SIGPIPE, signal.SIGXFSZ):
                self._handle(number)
        for number in (*STOPPING, LEAVE, signal.SIGCHLD):
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

    def hush(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(self._read, 4096):
                pass

    def _handle(self, number: int) -> None:
        if number not in self._old_handlers:
            self._old_handlers[number] = signal.signal(number, self._note)

    def _note(self, number: int, _: FrameType | None) -> None:
        self.is_leaving |= number == LEAVE
        if number not in STOPPING or (number == signal.SIGHUP and self._ignore_hangup):
            return
        self.stops += 1
        self.last_stop = number
