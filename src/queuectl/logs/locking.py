"""Locks on logs. Who may read a file may lock it, too, and keep whoever writes there waiting for ever: a job that can read its
log would hold up the keeper, and with it the jobs of all others. So the lock on a log that others may read is a byte of a file
beside it, which they may not open.
"""

from __future__ import annotations

import fcntl
import os
import stat
import struct
from typing import Final

from queuectl.logs.access import SHARED

NAME: Final = ".lock"  # no id of a job begins like this
NONE: Final = -1


def lock(fd: int, path: str) -> tuple[int, os.stat_result]:
    """Wait until nobody else has it. Returns a descriptor to be closed with the log, or NONE, and how it is then. Raises OSError."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        if not is_shared(os.fstat(fd)):
            fcntl.flock(fd, fcntl.LOCK_EX)
    found = os.fstat(fd)
    if not is_shared(found):
        return NONE, found
    aside = lock_aside(path, found.st_ino)
    return aside, os.fstat(fd)


def lock_aside(path: str, inode: int) -> int:
    """Of the log there, the file of this number. Raises OSError."""
    aside = os.open(
        os.path.join(os.path.dirname(path), NAME), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
    )
    try:
        # Of the open file, not of the process: the keeper has more than one thread.
        start = inode & ((1 << 62) - 1)
        order = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, start, 1, 0)
        fcntl.fcntl(aside, fcntl.F_OFD_SETLKW, order)
    except OSError:
        os.close(aside)
        raise
    return aside


def is_shared(found: os.stat_result) -> bool:
    return bool(stat.S_IMODE(found.st_mode) & SHARED)
