"""The lock file that shows whether a worker is alive. The kernel releases the lock however the worker ends.

The process that acquires the lock knows that the holder is dead, even if its PID is in use again.
"""

from __future__ import annotations

import contextlib
import fcntl
import os


class Lock:
    """A lock, held until it is released or this process ends."""

    def __init__(self, path: str, fd: int) -> None:
        self._path = path
        self._fd = fd

    @property
    def mark(self) -> str:
        """Identifies this file among all that have or will have its path, in another container or on another host."""
        return _mark(os.fstat(self._fd))

    def fileno(self) -> int:
        """A process that inherits this descriptor holds the lock, too."""
        return self._fd

    def release(self) -> None:
        os.close(self._fd)

    def remove(self) -> None:
        """Release the lock and remove its file."""
        with contextlib.suppress(OSError):  # the data directory may have been removed
            os.unlink(self._path)
        os.close(self._fd)


def take_lock(path: str, *, create: bool = True) -> Lock | None:
    """The lock on this file; None if another process holds it or, without `create`, if there is no such file."""
    flags = os.O_RDWR | os.O_NOFOLLOW | (os.O_CREAT if create else 0)
    while True:
        try:
            fd = os.open(path, flags, 0o600)
        except FileNotFoundError:
            if create:
                raise
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        # The last holder may have removed the file between our open and our lock: then this lock is on no file.
        if _is_same_file(fd, path):
            return Lock(path, fd)
        os.close(fd)


def mark_of(path: str) -> str | None:
    """The mark of the file that exists now; None if there is none, or it cannot be read."""
    try:
        return _mark(os.stat(path))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None


def is_held(path: str) -> bool:
    """Whether a process holds the lock on this file. Uses a shared lock, so that several may ask at once."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def _mark(status: os.stat_result) -> str:
    return f"{status.st_ino}.{status.st_mtime_ns}"  # never written to, so this is the time of its creation


def _is_same_file(fd: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False
