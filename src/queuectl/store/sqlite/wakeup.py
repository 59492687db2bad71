"""Wake-ups for workers of the same host: a named pipe per worker, one byte per wake-up.

Not a datagram socket: the path of a socket may have 107 bytes at most, and `import socket` takes longer than the insert of
`enqueue`. Opening a pipe without a reader (its worker died) fails at once.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from typing import Any

from queuectl.paths import wakeup_file


class PipeWakeup:
    polling_because: str | None = None

    def __init__(self, path: str) -> None:
        self._path = path
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        os.mkfifo(path, 0o600)
        # Also for writing: else the pipe is at its end when the last writer closes it, and select never sleeps again.
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW)

    def fileno(self) -> int:
        return self._fd

    def drain(self) -> bool:
        has_any = False
        with contextlib.suppress(BlockingIOError):
            while os.read(self._fd, 4096):
                has_any = True
        return has_any

    def close(self) -> None:
        os.close(self._fd)
        with contextlib.suppress(OSError):  # the data directory may have been removed
            os.unlink(self._path)


class NoWakeup:
    """For a database in memory, which has no other writers."""

    polling_because: str | None = None

    def __init__(self) -> None:
        self._fd, self._other = os.pipe()

    def fileno(self) -> int:
        return self._fd

    def drain(self) -> bool:
        return False

    def close(self) -> None:
        os.close(self._fd)
        os.close(self._other)


def notify(workers: Iterable[tuple[Any, ...]]) -> None:
    """Wake workers, given as (data directory, ID). Never fails: a wake-up is a hint, and workers poll every poll-interval."""
    for home, worker in workers:
        with contextlib.suppress(OSError):  # no reader, a full pipe (the worker wakes up anyway), no data directory
            fd = os.open(wakeup_file(home, worker), os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
            try:
                os.write(fd, b"!")
            finally:
                os.close(fd)
