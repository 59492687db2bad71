"""Write the output of a run into the log of its job, within its limit.

Several processes may write to one log for a while: the supervisor of the present run, and that of an earlier one, for processes that its
run has left behind. Without locks, since a job could hold one for ever: each chunk is appended in one call, its offset follows from the
position after it, and another look at the directory shows whether another writer has rotated the log meanwhile.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from queuectl.logs import acl
from queuectl.logs.markers import MAX_MARKER_BYTES, end_line, is_end_line
from queuectl.logs.rotation import (
    MAX_HEADER_BYTES,
    Header,
    end_of_rotated,
    header_line,
    measure,
    open_segment,
    opened,
    read_header,
    remove_log,
    remove_oversized,
    rotate,
    rotated,
)

if TYPE_CHECKING:  # the supervisor imports little
    from queuectl.jobs.outcome import Settlement

# A segment ends at the end of a line if there is one in this part of what would still fit.
LINE_SEARCH_PART: Final = 4

_FLAGS: Final = os.O_RDWR | os.O_APPEND

_Inode = tuple[int, int]


class LogWriter:
    """Writes the output of one run. Creates the log with the first byte of it. Everything raises OSError.

    `log_from`: the offset of its output, None before there is any. `written`: how many bytes of its output were written, or dropped
    because of the limit. `limit` may be changed.
    """

    __slots__ = (
        "_end",
        "_fd",
        "_head",
        "_header",
        "_inode",
        "_is_first",
        "_is_over",
        "_is_within_line",
        "_path",
        "_position",
        "_reader",
        "_size",
        "limit",
        "log_from",
        "written",
    )

    def __init__(
        self, path: str, head: Callable[[], bytes], *, is_first: bool, limit: int, reader: int | None = None
    ) -> None:
        """`head` returns the START marker. `is_first`: the first run of the job: a log of that name belongs to a removed one. `reader`: a user
        that may read the log, besides us."""
        self.log_from: int | None = None
        self.written = 0
        self.limit = limit
        self._path = path
        self._head = head
        self._is_first = is_first
        self._reader = reader
        self._is_over = False  # the run has ended; processes that it has left behind may print
        self._fd: int | None = None
        self._inode: _Inode | None = None  # of the segment that was written to last
        self._position = Header()  # of that segment
        self._header = b""  # not empty: the segment is empty, and begins with this line
        self._size = -1  # of the segment after our last write, if that was the last one
        self._end = 0  # the offset behind our last write
        self._is_within_line = False  # there

    def append(self, data: bytes) -> None:
        """Append output, behind the START marker if it is the first. If it fails, a part may have been written: see `written`."""
        if self.log_from is None:
            self._begin()
        rest, room = memoryview(data), self.limit // 2 - MAX_HEADER_BYTES
        if len(rest) > 2 * room:  # what would be removed at once is not written at all
            skipped = len(rest) - 2 * room
            skipped += data[skipped : skipped + room // LINE_SEARCH_PART].find(b"\n") + 1
            if self._open() is not None:
                self._rotate(skipped)
            self.written += skipped
            rest = rest[skipped:]
        while rest:
            size = self._open()
            if size is None:
                self.written += len(rest)
                return
            room = self.limit // 2 - size - len(self._header)
            count = len(rest) if len(rest) <= room else _fitting(rest, room)
            if count:
                self._write(rest[:count], is_output=True)
            if count < len(rest):
                self._rotate()
            rest = rest[count:]

    def append_line(self, line: bytes) -> int | None:
        """Append a line of ours, at the beginning of a line. Returns the offset behind what was printed before; None if the log was
        removed."""
        size = self._open()
        if size is None:
            return None
        if size > self._position.place and size + len(line) + 1 > self.limit // 2:
            self._rotate()
        if self._ends_within_line():
            line = b"\n" + line
        self._write(memoryview(line))
        return self._end - len(line)

    def end(self, line: Callable[[], bytes], *, has_followers: bool = False) -> int | None:
        """Append the END marker, which `line` returns. Returns the offset behind the output; None if the run has printed nothing, and so has no log.
        `has_followers`: processes that it has left behind may print, so it has one."""
        if self.log_from is None:
            if has_followers:
                self._begin()
            elif self._is_first and os.path.lexists(self._path):
                remove_log(self._path)
        log_to = None if self.log_from is None else self.append_line(line())
        self._is_over = True
        return log_to

    def close(self) -> None:
        """Opened again when there is more to write."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _begin(self) -> None:
        if self._is_first:
            remove_log(self._path)
        if self._open() is None:
            return
        self._share()
        self.append_line(self._head())
        self.log_from = self._end

    def _share(self) -> None:
        """Let the reader read the log, and no other user. Where the file system cannot do that, none may."""
        assert self._fd is not None
        if self._reader is None and not os.fstat(self._fd).st_mode & acl.SHARED:
            return
        readers = () if self._reader is None else (self._reader,)
        for segment in (self._path, rotated(self._path)):
            with contextlib.suppress(OSError), opened(segment) as fd:
                acl.grant_only(fd, readers, acl.READ)

    def _ends_within_line(self) -> bool:
        assert self._fd is not None
        size = os.fstat(self._fd).st_size
        if size in (0, self._size):
            return self._is_within_line
        return os.pread(self._fd, 1, size - 1) != b"\n"

    # ── segments ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _open(self) -> int | None:
        """Open the segment that is written to now, unless it is open. Returns its size; None if the log was removed after the end of the
        run: it is not created again."""
        try:
            found = os.stat(self._path, follow_symlinks=False)
        except FileNotFoundError:
            found = None
        if self._fd is not None and found is not None and _inode(found) == self._inode:
            if found.st_size < self._size:  # a user has truncated it
                self._locate(found.st_size)
            return found.st_size
        is_gone = found is None and _inode_of(rotated(self._path)) != self._inode
        if self._is_over and is_gone:
            return None
        fd = self._open_file()
        status, position = os.fstat(fd), read_header(fd)
        is_other = self._inode not in (None, _inode(status))
        if self._is_over and is_other and status.st_size and not position.offset:  # the log of a new job with this ID
            os.close(fd)
            return None
        self.close()
        self._fd, self._inode = fd, _inode(status)
        if is_other or status.st_size != self._size:
            self._locate(status.st_size)
        return status.st_size

    def _open_file(self) -> int:
        try:
            return open_segment(self._path, _FLAGS | os.O_CREAT)
        except (
            FileNotFoundError
        ):  # a user has removed our directory; if the data directory is gone, it is not recreated
            with contextlib.suppress(FileExistsError):
                os.mkdir(os.path.dirname(self._path), 0o700)
            return open_segment(self._path, _FLAGS | os.O_CREAT)

    def _locate(self, size: int) -> None:
        """Find out which offset the segment begins with."""
        assert self._fd is not None
        self._size, self._header, self._position = -1, b"", read_header(self._fd)
        if size:
            return
        remove_oversized(self._path, self.limit)
        # Also if a writer has died between the rename and the first write.
        offset = max(self._end, end_of_rotated(self._path))
        if offset:
            self._header = header_line(offset, self.limit)
            self._position = Header(len(self._header), offset)
            _copy_access(self._path, self._fd)

    def _rotate(self, skipped: int = 0) -> None:
        """Begin a new segment, whose offset is higher by what is skipped."""
        self._end = max(self._end, rotate(self._path, self.limit, full=self._fd)) + skipped
        self._open()

    def _write(self, data: memoryview, *, is_output: bool = False) -> None:
        """Append to the open segment, whatever its size."""
        while data:
            assert self._fd is not None
            header = self._header
            count = os.write(self._fd, header + bytes(data) if header else data) - len(header)
            if count < 0:  # a segment with half a header would have wrong offsets
                os.ftruncate(self._fd, 0)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            size = os.lseek(self._fd, 0, os.SEEK_CUR)
            if header:
                self._header, self._position = b"", read_header(self._fd)
            self._size = size
            self._is_within_line = data[count - 1] != ord(b"\n") if count else self._is_within_line
            count = self._counted(count, self._position.offset + size - self._position.place)
            self.written += count if is_output else 0
            data = data[count:]

    def _counted(self, count: int, end: int) -> int:
        """How many of the bytes that we have just written belong to the log: those behind the end of a segment that another writer has
        rotated meanwhile do not, and are written again."""
        if _inode_of(self._path) == self._inode:
            self._end = end
            return count
        is_rotated = _inode_of(rotated(self._path)) == self._inode
        self._end = max(self._end, end - count)
        if self._open() is None or not (is_rotated or self._position.offset):  # removed
            self._end = max(self._end, end)
            return count
        if not is_rotated:  # more than once: it is unknown whether our bytes were counted
            self._end = self._position.offset
            return 0
        counted = max(0, min(count, self._position.offset - (end - count)))
        self._end = end - count + counted
        return counted


def end_log(
    path: str, log_from: int, settlement: Settlement, *, duration: float | None, now_ms: int, limit: int
) -> int | None:
    """Write the END marker of a run whose supervisor is dead, unless it did so before it died. Returns the offset behind the output of the
    run, None if its log was removed. Raises OSError."""
    found = _last_line(path)
    if found is not None and is_end_line(found[1]) and found[0] >= log_from:
        return found[0]
    line = partial(
        end_line,
        settlement.ending,
        exit_code=settlement.exit_code,
        signal=settlement.signal,
        error=settlement.error,
        duration=duration,
        now_ms=now_ms,
    )
    if found is None:
        return None
    writer = LogWriter(path, bytes, is_first=False, limit=limit)
    writer.log_from = log_from
    try:
        return writer.end(line)
    finally:
        writer.close()


def share_log(path: str, reader: int) -> None:
    """Let this user read the log, besides those who may already. Raises OSError."""
    for segment in (path, rotated(path)):
        with contextlib.suppress(FileNotFoundError), opened(segment) as fd:
            acl.grant(fd, [reader], acl.READ)


def _copy_access(path: str, fd: int) -> None:
    with contextlib.suppress(OSError), opened(rotated(path)) as older:
        acl.copy(older, fd)


def _last_line(path: str) -> tuple[int, bytes] | None:
    """The last line of a log and its offset, as far as one of ours may be long; None if there is no log. Raises OSError."""
    for segment in (path, rotated(path)):
        with contextlib.suppress(FileNotFoundError), opened(segment) as fd:
            end = measure(fd).end
            size = os.fstat(fd).st_size
            if size:
                tail = os.pread(fd, MAX_MARKER_BYTES, max(0, size - MAX_MARKER_BYTES))
                line = tail[tail.rfind(b"\n", 0, -1) + 1 :]
                return end - len(line), line
    return None


def _fitting(data: memoryview, room: int) -> int:
    """How many bytes to append where no more than `room` fit: up to the end of a line, if there is one near."""
    if room <= 0:
        return 0
    return bytes(data[:room]).rfind(b"\n", room - room // LINE_SEARCH_PART) + 1 or room


def _inode(status: os.stat_result) -> _Inode:
    return status.st_dev, status.st_ino


def _inode_of(path: str) -> _Inode | None:
    try:
        return _inode(os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return None
