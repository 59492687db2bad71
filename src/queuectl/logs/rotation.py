"""The two segments of a log on the disk, each with at most half of `log-limit`.

`ID.log` is written to. When it is full, it is renamed to `ID.log.1`, which replaces the one before it, and a new `ID.log` begins. Offsets
count every byte that was ever written, so a new segment begins with a line of ours that states its offset. A job cannot print that line:
its output begins behind a START line. The line itself is not counted.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Iterator
from typing import Final, NamedTuple

from queuectl.units import format_size

ROTATED_SUFFIX: Final = ".1"
MAX_HEADER_BYTES: Final = 96

# Neither through a link, which may lead anywhere, nor waiting for the reader of a pipe.
FLAGS: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_HEADER: Final = re.compile(rb"--- CONTINUED at byte ([0-9]{1,19}) of the log \(log-limit ([^\n]{1,24})\) ---\n")


class Header(NamedTuple):
    """The byte at `place` of a segment is the byte `offset` of the log. `limit`: the reason for rotation, as text."""

    place: int = 0
    offset: int = 0
    limit: bytes = b""


class SegmentSize(NamedTuple):
    header: Header
    end: int  # the offset behind its last byte


def rotated(log: str) -> str:
    return log + ROTATED_SUFFIX


def header_line(offset: int, limit: int) -> bytes:
    return b"--- CONTINUED at byte %d of the log (log-limit %b) ---\n" % (offset, format_size(limit).encode())


def read_header(fd: int) -> Header:
    """Raises OSError."""
    found = _HEADER.match(os.pread(fd, MAX_HEADER_BYTES, 0))
    return Header(found.end(), int(found[1]), found[2]) if found else Header()


def measure(fd: int) -> SegmentSize:
    """Raises OSError."""
    header = read_header(fd)
    return SegmentSize(header, header.offset + max(0, os.fstat(fd).st_size - header.place))


def open_segment(path: str, flags: int = os.O_RDONLY) -> int:
    """Raises OSError, also if it is not a regular file."""
    fd = os.open(path, flags | FLAGS, 0o600)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "not a regular file")
    return fd


@contextlib.contextmanager
def opened(path: str, flags: int = os.O_RDONLY) -> Iterator[int]:
    """As `open_segment`, until the end of the block."""
    fd = open_segment(path, flags)
    try:
        yield fd
    finally:
        os.close(fd)


def end_of_rotated(log: str) -> int:
    """The offset behind the last byte of the rotated segment, 0 if there is none. Raises OSError."""
    with contextlib.suppress(FileNotFoundError), opened(rotated(log)) as fd:
        return measure(fd).end
    return 0


def rotate(log: str, limit: int, *, full: int | None = None) -> int:
    """Make room for a new segment. Returns the offset at which it begins. `full`: the segment that is full; if another writer has replaced
    it already, nothing is renamed. Raises OSError."""
    with contextlib.ExitStack() as stack:
        replaced = None
        with contextlib.suppress(FileNotFoundError):
            replaced = stack.enter_context(opened(rotated(log), os.O_WRONLY))
        with contextlib.suppress(FileNotFoundError):  # another writer is rotating it
            if full is None or os.path.samestat(os.stat(log, follow_symlinks=False), os.fstat(full)):
                os.rename(log, rotated(log))
                if replaced is not None:
                    os.ftruncate(replaced, 0)  # a reader may have it open: it must not use space any longer
    # Measured after the rename: another writer may have appended before, and notices it if it does so after it.
    end = end_of_rotated(log)
    remove_oversized(log, limit)
    return end


def remove_oversized(log: str, limit: int) -> None:
    """Remove a rotated segment from before the limit was lowered. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        if os.stat(rotated(log), follow_symlinks=False).st_size > limit // 2:
            os.unlink(rotated(log))


def is_rotated(log: str) -> bool:
    """Whether it has two segments."""
    return os.path.lexists(rotated(log))


def log_exists(log: str) -> bool:
    return os.path.lexists(log) or is_rotated(log)


def disk_size(log: str) -> int:
    """Of both segments. Raises FileNotFoundError if there is none, and OSError."""
    size = None
    for path in (log, rotated(log)):
        with contextlib.suppress(FileNotFoundError):
            size = (size or 0) + os.stat(path, follow_symlinks=False).st_size
    if size is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), log)
    return size


def remove_log(log: str) -> None:
    """Both segments, the newer one last: as long as it is there, so is the log. Raises OSError, but not if there is none."""
    for path in (rotated(log), log):
        if os.path.lexists(path):  # few logs exist: cheaper than an exception
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
