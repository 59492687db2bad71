"""Waking a worker from another process: a named pipe a worker, one byte a ring.

A pipe and not a datagram socket: a socket's path may have 107 bytes at most, and `import socket` alone would cost
`enqueue` more than its insert. A pipe without a reader (its worker died) refuses at once.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from typing import Any

from queuectl.home import bell_file


class PipeBell:
    silent_because: str | None = None

    def __init__(self, path: str) -> None:
        self._path = path
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        os.mkfifo(path, 0o600)
        # For writing too: a pipe whose last writer leaves would be at its end, and select would never sleep again.
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW)

    def fileno(self) -> int:
        return self._fd

    def hush(self) -> bool:
        rang = False
        with contextlib.suppress(BlockingIOError):
            while os.read(self._fd, 4096):
                rang = True
        return rang

    def close(self) -> None:
        os.close(self._fd)
        with contextlib.suppress(OSError):  # the whole home may be gone by now
            os.unlink(self._path)


class SilentBell:
    """For a store that nobody else can write to."""

    silent_because: str | None = None

    def __init__(self) -> None:
        self._fd, self._other = os.pipe()

    def fileno(self) -> int:
        return self._fd

    def hush(self) -> bool:
        return False

    def close(self) -> None:
        os.close(self._fd)
        os.close(self._other)


def ring(bells: Iterable[tuple[Any, ...]]) -> None:
    """Ring for each (home, worker). Never fails: a ring is a hint, and a worker looks by itself every poll-interval."""
    for home, worker in bells:
        with contextlib.suppress(OSError):  # no reader, a full pipe (it will wake anyway), a home that is gone
            fd = os.open(bell_file(home, worker), os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
            try:
                os.write(fd, b"!")
            finally:
                os.close(fd)
