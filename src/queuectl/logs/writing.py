"""Writing into a log, within its limit.

Several may write into one: the worker, its keeper, and the keeper of a worker that is gone, for what a former run has left
running. So whoever writes holds a lock on the file. Whoever finds it full cuts it, see bounds.py; and whoever waited for the
lock meanwhile finds that it has got the lock of a file that is no log any more.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from types import TracebackType
from typing import Final, Self

from queuectl.logs import access
from queuectl.logs.bounds import (
    BESIDE,
    LONGEST_HEAD,
    Bounds,
    Head,
    bounds,
    limit_words,
    moving_line,
    read_head,
)
from queuectl.logs.frames import LONGEST_FRAME
from queuectl.logs.locking import NONE, lock, lock_aside

# So much is there twice while a log is cut; and no more than this part of the limit.
BLOCK: Final = 1024 * 1024
PART: Final = 32
# What is kept begins at the beginning of a line, if one begins within this part of it.
NEAR: Final = 4

# Neither through a link, which may lead anywhere, nor waiting for a reader of something that is no file at all.
_FLAGS: Final = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Writing:
    """A log to which nobody else writes meanwhile. Everything raises OSError."""

    def __init__(self, path: str, *, limit: int, create: bool = False) -> None:
        self._path = path
        self._limit = limit
        self._bounds: Bounds = bounds(limit)
        self._fd, self._aside, self._length = _open(path, _FLAGS | (os.O_CREAT if create else 0))
        self._known: Head | None = None
        self._last = b""  # of what we have written, the last byte

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        os.close(self._fd)
        if self._aside != NONE:
            os.close(self._aside)

    @property
    def is_shared(self) -> bool:
        """Whether others may read it."""
        return self._aside != NONE

    def share(self, reader: int | None, *, too: bool = False) -> None:
        """Let this user read it, and nobody else; None: nobody. `too`: besides whoever may already. Where the file system cannot
        say so, nobody may."""
        if self._aside == NONE:
            self._aside = lock_aside(self._path, os.fstat(self._fd).st_ino)
        with contextlib.suppress(OSError):
            let = access.let_too if too else access.let
            let(self._fd, () if reader is None else (reader,), access.READ)

    def look_again(self) -> bool:
        """Whether it is still in its place, after a while. Our lock does not keep people from removing or emptying it."""
        status = os.fstat(self._fd)
        if status.st_size != self._length:
            self._length, self._known, self._last = status.st_size, None, b""
        return status.st_nlink > 0

    @property
    def size(self) -> int:
        """With what is gone."""
        if not self._length:
            return 0
        gone, start, _, moving = self._head
        return max((self._length if moving is None else moving) - start, 0) + gone

    @property
    def is_within_line(self) -> bool:
        """Once there is room."""
        return self._length > 0 and (self._last or os.pread(self._fd, 1, self._length - 1)) != b"\n"

    def last_line(self, most: int) -> bytes:
        """Of so many bytes at its end, as far as one of ours may be long; empty while the log is being cut."""
        if not self._length or self._is_moving:
            return b""
        start = max(self._head.start, self._length - min(most, LONGEST_FRAME))
        tail = os.pread(self._fd, self._length - start, start)
        return tail[tail.rfind(b"\n", 0, -1) + 1 :]

    def empty(self) -> None:
        os.ftruncate(self._fd, 0)
        self._length, self._known, self._last = 0, None, b""

    def append(self, data: bytes | memoryview) -> None:
        """At its end. If it fails, a part may have been written: see `size`."""
        if self._length + len(data) > self._bounds.full and (skipped := _skip(data, self._bounds.kept)):
            # What would have to go at once is not written at all.
            self._begin_anew(skipped)
            data = data[skipped:]
        self.make_room(len(data))
        self._write(data)

    def append_line(self, line: bytes) -> None:
        """Of ours: at the beginning of a line, also where what was printed has no end. For it a log may be a little longer."""
        full, frame, kept = self._bounds
        self.make_room(min(len(line) + 1 - (frame - full), kept))
        self._write((b"\n" if self.is_within_line else b"") + line)

    def make_room(self, count: int, *, most: int | None = None) -> bool:
        """Whether so many bytes can be appended. Cuts it, or, if that takes to move more than `most` bytes, begins to."""
        full, _, kept = self._bounds
        if count > kept:  # then nothing of what is in it will stay
            return True
        while self._is_moving or self._length + count > full:
            if not self._is_moving:
                self._begin_to_move(min(kept, full - LONGEST_HEAD - count))
            if not self._move(most):
                return False
        return True

    @property
    def _is_moving(self) -> bool:
        return self._length > 0 and self._head.moving is not None

    @property
    def _head(self) -> Head:
        if self._known is None:
            self._known = read_head(os.pread(self._fd, LONGEST_HEAD, 0))
        return self._known

    def _write(self, data: bytes | memoryview) -> None:
        while data:
            written = os.pwrite(self._fd, data, self._length)
            self._length += written
            self._last = bytes(data[written - 1 : written])
            data = data[written:]

    # ── cutting ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _begin_to_move(self, keep: int) -> None:
        self._clear_beside()
        start, limit = self._line_near(self._length - keep), limit_words(self._limit)
        head = Head(start - self._head.start + self._head.gone, start, limit, self._length)
        _put(self._fd, moving_line(head.gone, limit, start, self._length), 0)
        self._known = head

    def _move(self, most: int | None) -> bool:
        """Go on with moving what stays into the file beside this one. Whether that is done."""
        head, done = self._head, 0
        beside = self._open_beside(head)
        try:
            while self._length > head.start:
                if most is not None and done >= most:
                    os.close(beside)
                    return False
                # Whatever is not moved yet is here, whatever is not here was moved: nobody can lose it.
                count = min(self._length - head.start, BLOCK, max(self._limit // PART, LONGEST_HEAD))
                place = self._length - count
                _put(beside, os.pread(self._fd, count, place), head.beside(place))
                os.ftruncate(self._fd, place)
                self._length, done = place, done + count
        except OSError:
            os.close(beside)
            raise
        self._give_place_to(beside, Head(head.gone, len(head.line), head.limit))
        return True

    def _begin_anew(self, skipped: int) -> None:
        """With nothing of what was in it, and without so many bytes that would come next."""
        self._clear_beside()
        head = Head(self.size + skipped, 0, limit_words(self._limit))
        self._give_place_to(self._open_beside(head), head._replace(start=len(head.line)))

    def _give_place_to(self, beside: int, head: Head) -> None:
        try:
            aside, _ = lock(beside, self._path)  # before anybody else can find it
            os.rename(self._path + BESIDE, self._path)
        except OSError:
            os.close(beside)
            raise
        os.ftruncate(self._fd, 0)  # or it would take up room as long as somebody reads it
        self.close()
        self._aside = aside
        self._fd, self._length, self._known, self._last = beside, os.fstat(beside).st_size, head, b""

    def _clear_beside(self) -> None:
        with contextlib.suppress(FileNotFoundError):  # there is one only if somebody was killed at the wrong moment
            os.unlink(self._path + BESIDE)

    def _open_beside(self, head: Head) -> int:
        """The file that will take the place of this one, with its first line."""
        fd = os.open(self._path + BESIDE, _FLAGS | os.O_CREAT, 0o600)
        try:
            access.copy(self._fd, fd)
            _put(fd, head.line, 0)
        except OSError:
            os.close(fd)
            raise
        return fd

    def _line_near(self, begin: int) -> int:
        """Where a line begins, from here on but not far; else here."""
        if begin <= self._head.start:
            return self._head.start
        near = min((self._length - begin) // NEAR, BLOCK)
        # From the byte before it, which says whether one begins here.
        found = os.pread(self._fd, near + 1, begin - 1).find(b"\n")
        return begin if found < 0 else begin + found


def _open(path: str, flags: int) -> tuple[int, int, int]:
    """A descriptor with the lock, what else holds that, and how long the file is."""
    while True:
        fd = os.open(path, flags, 0o600)
        try:
            aside, status = lock(fd, path)
        except OSError:
            os.close(fd)
            raise
        if status.st_nlink and stat.S_ISREG(status.st_mode):
            return fd, aside, status.st_size
        os.close(fd)  # cut, or removed, while we waited for the lock
        if aside != NONE:
            os.close(aside)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")


def _put(fd: int, data: bytes, place: int) -> None:
    if os.pwrite(fd, data, place) < len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _skip(data: bytes | memoryview, kept: int) -> int:
    """How much of it does not fit into what would be kept, up to the end of a line if one is near."""
    over = len(data) - kept
    if over <= 0:
        return 0
    return over + 1 + bytes(data[over : over + kept // NEAR]).find(b"\n")
