"""The file of a SQLite database, seen from outside of SQLite."""

from __future__ import annotations

import os
from typing import Final

from queuectl import errors

MEMORY: Final = ":memory:"
_BESIDE: Final = ("-wal", "-shm", "-journal")  # the files that SQLite makes and opens on its own


def is_sealed(path: str) -> bool:
    """Whether nobody can write beside the file, on a read-only disk for example, and all there is to know is in it.

    SQLite reads a write-ahead log only together with an index of it, which it makes beside the file.
    """
    if path == MEMORY or not os.path.exists(path) or os.access(os.path.dirname(path) or ".", os.W_OK):
        return False
    return is_closed(path)


def is_closed(path: str) -> bool:
    """Whether all that the database holds is in its one file."""
    try:
        return os.path.getsize(f"{path}-wal") == 0
    except OSError:
        return True


def sealed(path: str) -> str:
    """A name by which SQLite reads the file without making anything beside it."""
    from urllib.parse import quote

    return f"file:{quote(path)}?mode=ro&immutable=1"


def inode_of(path: str) -> tuple[int, int] | None:
    try:
        found = status_of(path)
    except OSError:  # SQLite is about to fail for the same reason
        return None
    return None if found is None else (found.st_dev, found.st_ino)


def status_of(path: str) -> os.stat_result | None:
    """None if there is no such file. Raises OSError if that cannot be known."""
    # Never by opening the file: closing any descriptor of it would drop SQLite's locks on it in this process.
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def refuse_links(path: str) -> None:
    """Raise StoreFailed if a file that SQLite opens beside the database is a symbolic link: SQLite would follow it."""
    for ending in _BESIDE:
        if os.path.islink(path + ending):
            raise errors.StoreFailed(path, f"{path}{ending} is a symbolic link", hint=f"remove it: rm {path}{ending}")
