"""An open log, and other things to read that are too long to be held."""

from __future__ import annotations

import errno
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Final, NamedTuple, Self

from queuectl.errors import Unavailable
from queuectl.logs.bounds import BESIDE, LONGEST_HEAD, read_head

BLOCK: Final = 256 * 1024


class Span(NamedTuple):
    """The bytes from `start` up to, not including, `stop`."""

    start: int
    stop: int


class Gone(NamedTuple):
    """In the place of bytes that are not there any more."""

    span: Span


class Source(ABC):
    """Something to read that is too long to be held."""

    @property
    def first(self) -> int:
        """What came before this byte is gone."""
        return 0

    @abstractmethod
    def at(self, span: Span) -> bytes:
        """The bytes of a span that is known to be short; fewer if the source ends before it does, none if its first byte is
        gone."""

    def pieces(self, spans: Sequence[Span]) -> Iterator[bytes | Gone]:
        """All that is in these spans. Some of it may go while we read: then the next piece says so."""
        for span in spans:
            place = span.start
            while place < span.stop:
                if place < self.first:
                    before, place = place, min(self.first, span.stop)
                    yield Gone(Span(before, place))
                elif block := self.at(Span(place, min(span.stop, place + BLOCK))):
                    yield block
                    place += len(block)
                elif place >= self.first:  # it ends here; else it was cut just now
                    return

    def read(self, spans: Sequence[Span]) -> Iterator[bytes]:
        """The same without what is gone."""
        return (piece for piece in self.pieces(spans) if not isinstance(piece, Gone))


class Stretch(NamedTuple):
    """A part of a source."""

    source: Source
    span: Span


class Log(Source):
    """The log of a job, by offsets that count what is gone. Its size is what it was when last asked: a job may be writing to
    it, and what is written to may be cut: then there is a new file in its place, in which the same byte has the same offset.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = _open(path)
        self._line = b""
        self._read_head()

    @property
    def first(self) -> int:
        return self._head.gone

    @property
    def limit(self) -> bytes:
        """That was the reason why something is gone."""
        return self._head.limit

    @property
    def size(self) -> int:
        while self._has_changed(status := os.fstat(self._fd)):
            pass
        gone, start, _, moving = self._head
        return max((status.st_size if moving is None else moving) - start, 0) + gone

    def at(self, span: Span) -> bytes:
        while self.first <= span.start < span.stop:
            place = span.start - self._head.gone + self._head.start
            data = os.pread(self._fd, span.stop - span.start, place)
            end = place + len(data) if data else 0
            if not data and self._head.moving is not None:
                data = self._read_beside(Span(place, place + span.stop - span.start))
            # Asked afterwards: what was there as long as nothing had changed, or become shorter, is right.
            status = os.fstat(self._fd)
            if not self._has_changed(status) and end <= status.st_size:
                return data
        return b""

    def close(self) -> None:
        os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _has_changed(self, status: os.stat_result) -> bool:
        """Whether it was cut, or is being cut, since we last looked. Then it is read as it is now."""
        if not _is_replaced(status, self._path):
            return self._read_head()
        try:
            fd = _open(self._path)
        except OSError:  # it was removed: what we have open is all there is
            return False
        os.close(self._fd)
        self._fd = fd
        self._read_head()
        return True

    def _read_beside(self, span: Span) -> bytes:
        """What has moved: into the file that will take the place of ours, if it has not done so already."""
        try:
            fd = _open(self._path + BESIDE)
        except OSError:
            return b""
        try:
            return os.pread(fd, span.stop - span.start, self._head.beside(span.start))
        finally:
            os.close(fd)

    def _read_head(self) -> bool:
        """Whether its first bytes are others than before."""
        line = os.pread(self._fd, LONGEST_HEAD, 0)
        if line[: len(self._line)] == self._line and self._line:
            return False
        self._line, self._head = line, read_head(line)
        return bool(line)


class Joined(Source):
    """Parts of several sources, one behind the other."""

    def __init__(self, parts: Sequence[Stretch]) -> None:
        self._parts = parts
        self.size = sum(stop - start for _, (start, stop) in parts)

    def at(self, span: Span) -> bytes:
        data, place = [], 0
        for source, (start, stop) in self._parts:
            first, last = max(span.start - place, 0), min(span.stop - place, stop - start)
            if first < last:
                data.append(source.at(Span(start + first, start + last)))
            place += stop - start
        return b"".join(data)

    def cut(self, begin: int) -> list[Stretch]:
        """The parts from this byte on."""
        found = []
        for source, (start, stop) in self._parts:
            if begin < stop - start:
                found.append(Stretch(source, Span(start + max(begin, 0), stop)))
            begin -= stop - start
        return found


def open_log(path: str | None) -> Log | None:
    """None where there is no log: the job has not run, its log was removed, or it lies on another host."""
    if path is None:
        return None
    try:
        return Log(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as exc:
        raise Unavailable(f"cannot read the log {path}: {exc.strerror}", hint="check who owns it") from exc


def log_exists(path: str) -> bool:
    return os.path.lexists(path)


def _is_replaced(status: os.stat_result, path: str) -> bool:
    try:
        return not os.path.samestat(status, os.stat(path, follow_symlinks=False))
    except OSError:
        return True


def _open(path: str) -> int:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "it is not a file")
    return fd
