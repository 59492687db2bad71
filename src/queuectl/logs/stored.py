"""What a run printed on another host: its pieces in the store, read as if they were a log, with lines of ours made anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from queuectl.jobs.model import Run
from queuectl.logs.frames import end_line, gap_line, start_line
from queuectl.logs.log import Source, Span, Stretch
from queuectl.units import to_ms


class Fetched(NamedTuple):
    """Pieces of what a run printed, each with how many bytes come before it, in order; they may overlap."""

    pieces: Sequence[tuple[int, bytes]]
    is_all: bool  # there is no more now


Fetch = Callable[[int], Fetched]  # from this byte on; the first piece may begin before it


class Stored(Source):
    """What is kept now of the output of one run, from byte `start` on: `kept` says from where to where."""

    def __init__(self, fetch: Fetch, start: int) -> None:
        self._fetch = fetch
        first = stop = start
        while True:
            fetched = fetch(stop)
            for at, data in fetched.pieces:
                if at > stop:  # what came before is gone, or goes while we look
                    first = at
                stop = max(stop, at + len(data))
            self._pieces = fetched.pieces
            if fetched.is_all or not fetched.pieces:
                break
        self.kept = Span(first, stop)

    def at(self, span: Span) -> bytes:
        parts, place = [], span.start
        while place < span.stop:
            if not self._pieces or not self._pieces[0][0] <= place < _end(self._pieces[-1]):
                self._pieces = self._fetch(place).pieces
            before = place
            for at, data in self._pieces:
                if at <= place < at + len(data):
                    parts.append(data[place - at : span.stop - at])
                    place += len(parts[-1])
            if place == before:
                break
        return b"".join(parts)


class Text(Source):
    """A line of ours."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def at(self, span: Span) -> bytes:
        return self._data[span.start : span.stop]


class NotKept(Source):
    """In the place of bytes that are not in the store (any more), where no line of ours can say so."""

    LIMIT: Final = "output-limit"

    def __init__(self, count: int) -> None:
        self.count = count

    @property
    def first(self) -> int:
        return self.count

    def at(self, span: Span) -> bytes:
        del span  # nothing of it is there
        return b""


class StoredRun:
    """One run of another host: each call of `new` gives what came since the last one."""

    def __init__(self, fetch: Fetch, *, markers: bool) -> None:
        self._fetch = fetch
        self._markers = markers
        self._printed = 0
        self.has_begun = False
        self._is_over = False
        self._is_within_line = False

    def new(self, run: Run) -> list[Stretch]:
        """`run` is as it was before: what it printed before it ended is then there."""
        if self._is_over:
            return []
        stored = Stored(self._fetch, self._printed)
        start, stop = stored.kept
        if run.log_from is None and not stop:  # it has not begun, or ended before it could
            return []
        lines: list[Stretch] = []
        if not self.has_begun:
            self.has_begun = True
            began = run.started_at or run.finished_at
            if began is not None:
                lines += self._line(start_line(run.number, worker=run.worker, now_ms=to_ms(began)))
        lines += self._gap(start - self._printed)
        if stop > start:
            lines.append(Stretch(stored, stored.kept))
            self._is_within_line = stored.at(Span(stop - 1, stop)) != b"\n"
        self._printed = stop
        if run.finished_at is not None:
            self._is_over = True
            if run.log_from is not None and run.log_to is not None:
                lines += self._gap(run.log_to - run.log_from - stop)
            lines += self._line(
                end_line(
                    run.outcome,
                    exit_code=run.exit_code,
                    signal=run.signal,
                    error=run.error,
                    duration=None if run.duration_ms is None else run.duration_ms / 1000,
                    now_ms=to_ms(run.finished_at),
                )
            )
        return lines

    def _gap(self, count: int) -> list[Stretch]:
        if count <= 0:
            return []
        return self._line(gap_line(count)) or [Stretch(NotKept(count), Span(0, count))]

    def _line(self, line: bytes) -> list[Stretch]:
        """At the beginning of a line, also where the job's last line has no end."""
        if not self._markers:
            return []
        text = (b"\n" if self._is_within_line else b"") + line
        self._is_within_line = False
        return [Stretch(Text(text), Span(0, len(text)))]


def _end(piece: tuple[int, bytes]) -> int:
    return piece[0] + len(piece[1])
