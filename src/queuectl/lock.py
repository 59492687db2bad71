"""Is that worker alive? It holds a lock on a file of its own, and the kernel frees the lock whatever ends it.

Whoever gets the lock knows that the holder is gone, whatever its pid belongs to now.
"""

from __future__ import annotations

import contextlib
import fcntl
import os


class Lock:
    """A lock that is held until it is released, or until this process ends."""

    def __init__(self, path: str, fd: int) -> None:
        self._path = path
        self._fd = fd

    @property
    def mark(self) -> str:
        """Tells this file from any other that has, or will have, its path: in another container, on another machine."""
        return _mark(os.fstat(self._fd))

    def fileno(self) -> int:
        """Whoever else gets this descriptor holds the lock too."""
        return self._fd

    def release(self) -> None:
        os.close(self._fd)

    def remove(self) -> None:
        """Release the lock and remove its file: nobody will be asked about any more."""
        with contextlib.suppress(OSError):  # the whole home may be gone by now
            os.unlink(self._path)
        os.close(self._fd)


def take_lock(path: str, *, create: bool = True) -> Lock | None:
    """The lock on this file, or None if somebody holds it (or, without `create`, if there is no such file)."""
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
        # Its last holder may have removed the file between our open and our lock: then we hold a lock on nothing.
        if _is_same_file(fd, path):
            return Lock(path, fd)
        os.close(fd)


def mark_of(path: str) -> str | None:
    """The mark of the file that is there now, None if there is none, or none that we may see."""
    try:
        return _mark(os.stat(path))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None


def is_held(path: str) -> bool:
    """Whether somebody holds the lock on this file. Asked with a shared lock: any number may ask at once."""
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
    return f"{status.st_ino}.{status.st_mtime_ns}"  # nobody writes into it, so this is when it was made


def _is_same_file(fd: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False
