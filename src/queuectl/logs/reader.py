"""Read the log of a job: both segments as one, and where the output of each run lies in it.

What to read is a list of spans of bytes, so that a log of any size is read in bounded memory. Offsets count every byte that was ever
written; a span may begin before what is left. The history records where the output of a run lies. Only where it does not know yet (a run
that continues) or any more (its host crashed), markers are looked for, and only in the part of the log that no other run claims: a job
that prints such lines changes nothing.
"""

from __future__ import annotations

import errno
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Final, NamedTuple, Self

from queuectl.errors import Unavailable
from queuectl.jobs.model import Run
from queuectl.jobs.outcome import Ending
from queuectl.logs.markers import MAX_MARKER_BYTES
from queuectl.logs.rotation import Header, measure, open_segment, read_header, rotated

BLOCK: Final = 256 * 1024
# A log that is rotated faster than its segments can be opened: the last attempt counts.
MAX_OPEN_ATTEMPTS: Final = 8

_MARKER: Final = b"--- START "
_END_AT_TAIL: Final = re.compile(rb"(?:\A|(\n))--- END [^\n]*\n\Z")


class Span(NamedTuple):
    """The bytes from `start` up to, not including, `stop`."""

    start: int
    stop: int


class Gone(NamedTuple):
    """In place of bytes that are not in the log any more."""

    span: Span


class Source(ABC):
    """Something to read that is too long for memory."""

    @property
    def first(self) -> int:
        """What came before this byte is gone."""
        return 0

    @abstractmethod
    def at(self, span: Span) -> bytes:
        """The bytes of a span that is known to be short; fewer if the source ends before it does, none if its first byte is gone."""

    def pieces(self, spans: Sequence[Span]) -> Iterator[bytes | Gone]:
        """All bytes of these spans. Some of them may be removed while they are read: then the next piece says so."""
        for span in spans:
            place = span.start
            while place < span.stop:
                if place < self.first:
                    before, place = place, min(self.first, span.stop)
                    yield Gone(Span(before, place))
                elif block := self.at(Span(place, min(span.stop, place + BLOCK))):
                    yield block
                    place += len(block)
                elif place >= self.first:  # it ends here; otherwise it was rotated just now
                    return

    def read(self, spans: Sequence[Span]) -> Iterator[bytes]:
        """As `pieces`, without what is gone."""
        return (piece for piece in self.pieces(spans) if not isinstance(piece, Gone))


class Stretch(NamedTuple):
    """A part of a source."""

    source: Source
    span: Span


class _Segment(NamedTuple):
    fd: int
    header: Header
    is_empty: bool = False  # when it was opened

    def read(self, span: Span) -> bytes:
        start, stop = span
        return os.pread(self.fd, stop - start, start - self.header.offset + self.header.place)


class Log(Source):
    """The log of a job, to which a job may be writing. `size` looks again, and notices a rotation; until then all that was there can be
    read, unless a writer removes it."""

    def __init__(self, path: str) -> None:
        """Raises OSError."""
        self._path = path
        self._older, self._current = _open_both(path)

    @property
    def first(self) -> int:
        return (self._older or self._current).header.offset

    @property
    def limit(self) -> bytes:
        """Why what came before is gone."""
        return (self._older or self._current).header.limit

    @property
    def size(self) -> int:
        self._refresh()
        header = self._current.header
        return header.offset + max(0, os.fstat(self._current.fd).st_size - header.place)

    def at(self, span: Span) -> bytes:
        while self.first <= span.start < span.stop:
            data = self._read(span)
            if data or not (self._refresh() or self._forget_truncated()):
                return data
        return b""

    def close(self) -> None:
        _close(self._older, self._current)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read(self, span: Span) -> bytes:
        data, border = b"", self._current.header.offset
        if self._older is not None and span.start < border:
            older = Span(span.start, min(span.stop, border))
            data = self._older.read(older)
            if len(data) < older.stop - older.start:  # a writer removes it
                return b""
        if span.stop > border:
            data += self._current.read(Span(max(span.start, border), span.stop))
        return data

    def _refresh(self) -> bool:
        """Whether the log has been rotated or replaced since it was opened."""
        try:
            found = os.stat(self._path, follow_symlinks=False)
            is_same = os.path.samestat(found, os.fstat(self._current.fd))
            if is_same and not (self._current.is_empty and found.st_size):  # if it was empty, it has got its header now
                return False
            older, current = _open_both(self._path)
        except OSError:  # removed: what is open is all there is
            return False
        self.close()
        self._older, self._current = older, current
        return True

    def _forget_truncated(self) -> bool:
        if self._older is None or os.fstat(self._older.fd).st_size:
            return False
        os.close(self._older.fd)
        self._older = None
        return True


def _open_both(path: str) -> tuple[_Segment | None, _Segment]:
    """The older segment, if there is one and nothing is missing behind it, and the current one. Raises OSError."""
    for _ in range(MAX_OPEN_ATTEMPTS):
        current, older = _open_segment(path), _open_segment(rotated(path))
        if _is_in_place(current, path):
            break
        _close(older, current)
    else:
        raise FileNotFoundError(errno.ENOENT, "it is rotated too often", path)
    if current is None:  # its writer died before it could create the next one
        if older is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return None, older
    if older is None:
        return None, current
    end = measure(older.fd).end
    if current.is_empty:
        current = current._replace(header=Header(0, end))
    if older.header.offset < current.header.offset <= end:
        return older, current
    _close(older)
    return None, current


def _open_segment(path: str) -> _Segment | None:
    try:
        fd = open_segment(path)
    except FileNotFoundError:
        return None
    return _Segment(fd, read_header(fd), os.fstat(fd).st_size == 0)


def _is_in_place(segment: _Segment | None, path: str) -> bool:
    try:
        found = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return segment is None
    return segment is not None and os.path.samestat(found, os.fstat(segment.fd))


def _close(*segments: _Segment | None) -> None:
    for segment in segments:
        if segment is not None:
            os.close(segment.fd)


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
    """None if there is no log: no run has printed anything, the log was removed, or it is on another host. Raises Unavailable."""
    if path is None:
        return None
    try:
        return Log(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as exc:
        raise Unavailable(f"cannot read the log {path}: {exc.strerror}", hint="check who owns it") from exc


# ── parts of a view ─────────────────────────────────────────────────────────────────────────────────────────────────


def left_of(view: Iterable[Stretch]) -> list[Stretch]:
    """`view` without what is gone."""
    return [
        Stretch(source, Span(max(start, source.first), stop)) for source, (start, stop) in view if stop > source.first
    ]


def last_lines(view: Sequence[Stretch], count: int) -> list[Stretch]:
    """The end of `view` that holds its last `count` lines; the newline that ends the last one begins no other."""
    joined = Joined(view)
    wanted, stop = count, joined.size
    while stop and wanted:
        start = max(0, stop - BLOCK)
        block = joined.at(Span(start, stop))
        upto = len(block) - (stop == joined.size and block.endswith(b"\n"))
        found = block.count(b"\n", 0, upto)
        if found >= wanted:
            for _ in range(wanted):
                upto = block.rfind(b"\n", 0, upto)
            return joined.cut(start + upto + 1)
        wanted -= found
        stop = start
    return list(view) if count else []


def count_lines(view: Sequence[Stretch]) -> int:
    """The last one need not end with a newline."""
    count, last = 0, b"\n"
    for source, span in view:
        for piece in source.read([span]):
            count, last = count + piece.count(b"\n"), piece[-1:]
    return count + (last != b"\n")


def last_bytes(view: Sequence[Stretch], limit: int) -> bytes:
    """The last `limit` bytes of `view`."""
    parts: list[bytes] = []
    for source, (start, stop) in reversed(view):
        part = b"".join(source.read([Span(max(start, stop - limit), stop)]))
        parts.append(part)
        limit -= len(part)
    return b"".join(reversed(parts))


# ── runs in a log ───────────────────────────────────────────────────────────────────────────────────────────────────
# `runs` are those of the job that are in this log, in order.


def printed_within(log: Log, runs: Sequence[Run], span: Span, *, run: int | None = None) -> int:
    """How many bytes of a span are output, of all runs or the one numbered `run`; the others are markers."""
    total = 0
    for index, known in enumerate(runs):
        if run in (None, known.number):
            start, stop = output_of(log, runs, index)
            total += max(0, min(stop, span.stop) - max(start, span.start))
    return total


def holds(log: Log, runs: Sequence[Run]) -> bool:
    """Whether the last of `runs` is in this log, as the others are. It is not if it has printed nothing, or has run in another data
    directory, which has a log of that name, too."""
    run = runs[-1]
    if run.log_from is None:
        if run.outcome not in (Ending.RUNNING, Ending.LOST):
            return False
        return _find_start(log, runs, len(runs) - 1).start < log.size
    if run.log_from <= log.first:  # its START marker is gone
        return run.log_from <= log.size
    before = log.at(Span(max(log.first, run.log_from - MAX_MARKER_BYTES), run.log_from))
    return re.search(rb"--- START [^\n]* run=%d [^\n]*\n\Z" % run.number, before) is not None


def output_of(log: Log, runs: Sequence[Run], index: int) -> Span:
    """The output of `runs[index]`, without markers."""
    run = runs[index]
    start = run.log_from
    if start is None:
        start = _find_start(log, runs, index).stop
    if run.log_to is not None:
        return Span(start, max(start, run.log_to))
    ceiling = _ceiling(log, runs, index)
    if start >= ceiling:  # it has printed nothing
        return Span(ceiling, ceiling)
    return Span(
        start, max(start, before_end_marker(log, Span(start, ceiling), is_running=run.outcome is Ending.RUNNING))
    )


def framed_output_of(log: Log, runs: Sequence[Run], index: int) -> Span:
    """The output of `runs[index]` with its markers."""
    run = runs[index]
    start = _find_start(log, runs, index).start if run.log_from is None else _start_line(log, run.log_from)
    stop = _ceiling(log, runs, index) if run.log_to is None else _behind_end_line(log, run.log_to)
    return Span(start, max(start, stop))


def reach(log: Log, runs: Sequence[Run], index: int) -> Span:
    """As `framed_output_of`, with all that comes before the next run: processes that a run has left behind may print after its end."""
    return Span(framed_output_of(log, runs, index).start, _ceiling(log, runs, index))


def _start_line(log: Log, log_from: int) -> int:
    """Where the START marker begins that ends at `log_from`."""
    begin = max(log.first, log_from - MAX_MARKER_BYTES)
    before = log.at(Span(begin, max(begin, log_from)))
    # A process that an earlier run has left behind may have printed half a line before it.
    found = before.rfind(_MARKER)
    return log_from if found < 0 else begin + found


def _behind_end_line(log: Log, log_to: int) -> int:
    behind = log.at(Span(log_to, log_to + MAX_MARKER_BYTES))
    found = re.match(rb"\n?--- END [^\n]*\n", behind)
    return log_to + (found.end() if found else 0)


def _find_start(log: Log, runs: Sequence[Run], index: int) -> Span:
    """The START marker of a run of which nothing is recorded; an empty span at the end of the log if there is none."""
    known = [run.log_to for run in runs[:index] if run.log_to is not None]
    earliest = _behind_end_line(log, known[-1]) if known else 0
    begin = max(earliest, log.first)
    wanted = re.compile(rb"--- START [^\n]* run=%d [^\n]*\n" % runs[index].number)
    size = log.size
    while begin < size:
        block = log.at(Span(begin, begin + BLOCK))
        if found := wanted.search(block):
            return Span(begin + found.start(), begin + found.end())
        if len(block) < BLOCK:
            break
        begin += BLOCK - MAX_MARKER_BYTES
    # If its place is gone, it was there, unless there was no process that could print.
    has_begun = runs[index].pid is not None or runs[index].outcome is Ending.RUNNING
    return Span(earliest, earliest) if earliest < log.first and has_begun else Span(size, size)


def _ceiling(log: Log, runs: Sequence[Run], index: int) -> int:
    """Where a run of unknown end ends at the latest: where the next one begins."""
    if index + 1 == len(runs):
        return log.size
    following = runs[index + 1]
    if following.log_from is not None:
        return _start_line(log, following.log_from)
    return _find_start(log, runs, index + 1).start


def before_end_marker(log: Log, span: Span, *, is_running: bool) -> int:
    """The end of `span` without an END marker at its very end.

    A run may have its END marker while the store does not know of its end yet. If the job itself printed that line, it is only held back:
    it counts as soon as something follows, or the end is recorded.
    """
    begin = max(span.start, span.stop - MAX_MARKER_BYTES, log.first)
    found = _END_AT_TAIL.search(log.at(Span(begin, span.stop)))
    if found is None:
        return span.stop
    # The newline before it may be ours or the job's. The end of a running job will show; that of a lost one is most likely the job's.
    held_back = bool(found[1]) and not is_running
    return begin + found.start() + held_back
