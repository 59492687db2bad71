"""Read the output of a job while it grows.

Each run is read where its output is: in the log of this host, or in pieces from the store, if it ran on another one. A run that has
printed nothing has no log: its markers are made from the history, like those of runs on other hosts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from queuectl.errors import Unavailable
from queuectl.jobs.model import Run
from queuectl.logs.markers import end_line, gap_line, gone_line, start_line
from queuectl.logs.reader import (
    Gone,
    Log,
    Source,
    Span,
    Stretch,
    count_lines,
    framed_output_of,
    holds,
    last_lines,
    left_of,
    open_log,
    output_of,
    printed_within,
    reach,
)
from queuectl.units import to_ms

Tell = Callable[[int, str], None]  # how many bytes of output are missing, and the limit that is the reason


def ignore_missing(count: int, limit: str) -> None: ...


class Fetched(NamedTuple):
    """Pieces of the output of a run, each with how many bytes come before it, in order; they may overlap."""

    pieces: Sequence[tuple[int, bytes]]
    is_all: bool  # there is no more now


class RemoteOutput(NamedTuple):
    """`is_local`: whether a run was one of this host. `fetch`: get the output of a run of another host, by its number and from this byte on;
    the first piece may begin before it."""

    is_local: Callable[[Run], bool]
    fetch: Callable[[int, int], Fetched]


class Follower:
    """The output of one job: each call of `new` returns what came since the last one.

    The caller reads the state of the job before it calls `new`: so what a job printed before it ended is never missed. `tell` is called for
    missing output if there are no markers that say so.
    """

    def __init__(
        self,
        remote: RemoteOutput | None = None,
        *,
        run: int | None = None,
        markers: bool = True,
        tail: int | None = None,
        from_line: int | None = None,
        tell: Tell = ignore_missing,
    ) -> None:
        """`remote` None: all runs are local. `run`: its number; None: all. `tail`: of what is there at first, only the last lines.
        `from_line`: only from this line on, counted from 1; at least the last line."""
        self._remote = remote
        self._run = run
        self._markers = markers
        self._tail = tail
        self._from_line = from_line
        self._first_line: int | None = None
        self._tell = tell
        self._log: Log | None = None
        self._in_log: dict[int, int] = {}  # numbers of runs, and up to which byte of the log they are printed
        self._stored: dict[int, StoredRun] = {}  # the others
        self._done = 0  # nothing more comes of this number of runs
        self._is_within_line = False

    def new(self, path: str | None, runs: Sequence[Run], *, ask: bool = True) -> Iterator[bytes]:
        """`path`: the log on this host. `ask` False: the store has no news."""
        view: Sequence[Stretch] = list(self.stretches(path, runs, ask=ask))
        if view and (self._tail is not None or self._from_line is not None):
            left = left_of(view)
            wanted = last_lines(left, self._count_wanted(view, left, runs))
            self._tail = self._from_line = None
            if wanted != left:
                view = wanted
            elif not wanted:
                view = ()
            elif self._first_line is not None:
                self._first_line = 1
            # Otherwise it is all there is, and fewer lines than were asked for: then it matters what is gone.
        yield from self._print(view, runs)

    def _count_wanted(self, view: Sequence[Stretch], left: Sequence[Stretch], runs: Sequence[Run]) -> int:
        """How many of the last lines to print. With `from_line`, find out the number of the first one."""
        if self._from_line is None:
            return self._tail or 0
        total = count_lines(left)
        in_log = [run for run in runs if run.number in self._in_log]
        gone = sum(
            printed_within(source, in_log, Span(start, min(stop, source.first)), run=self._run)
            for source, (start, stop) in view
            if isinstance(source, Log) and start < source.first
        )
        total += bool(gone and self._markers)  # the line that reports it
        count = max(1, total - self._from_line + 1)
        if self._tail is not None:
            count = min(count, self._tail)
        self._first_line = total - count + 1
        return count

    def take_first_line(self) -> int | None:
        """The number of the first line that `new` has returned, once; None without `from_line`."""
        first, self._first_line = self._first_line, None
        return first

    def stretches(self, path: str | None, runs: Sequence[Run], *, ask: bool = True) -> Iterator[Stretch]:
        """What `new` returns, one run after the other."""
        # All of them first: the next run in a log says where one ends.
        for index in range(self._done, len(runs)):
            self._find(path, runs, index)
        for run in runs[self._done :]:
            if self._run not in (None, run.number):
                continue
            if run.number in self._in_log:
                yield from self._of_log(runs, run)
            elif ask and run.number in self._stored:
                yield from self._stored[run.number].new(run)
        if ask:
            # Looking at each run of the past every time would take ever longer.
            self._done = max(self._done, len(runs) - 1)

    def is_in_log(self, run: Run) -> bool:
        return run.number in self._in_log

    def close(self) -> None:
        if self._log is not None:
            self._log.close()

    def _find(self, path: str | None, runs: Sequence[Run], index: int) -> None:
        """Decide where to read a run. That is final once there is some output of it."""
        run, found = runs[index], self._stored.get(runs[index].number)
        if run.number in self._in_log or (found is not None and found.has_printed):
            return
        if self._remote is None or self._remote.is_local(run):
            self._log = self._log or self._open(path)
            earlier = [one for one in runs[:index] if one.number in self._in_log]
            if self._log is not None and holds(self._log, [*earlier, run]):
                in_log = [*earlier, run]
                begins = output_of(self._log, in_log, len(earlier)).start if found and found.has_begun else 0
                self._in_log[run.number] = begins
                return
        if self._remote is not None:
            fetch = self._remote.fetch
            self._stored.setdefault(
                run.number, StoredRun(lambda start: fetch(run.number, start), markers=self._markers)
            )
        elif run.log_from is None:
            self._stored.setdefault(run.number, StoredRun(_fetch_nothing, markers=self._markers))

    def _open(self, path: str | None) -> Log | None:
        try:
            return open_log(path)
        except Unavailable:
            if self._remote is None:
                raise
            return None  # of another user, who may read what is in the store all the same

    def _of_log(self, runs: Sequence[Run], run: Run) -> list[Stretch]:
        assert self._log is not None
        in_log = [one for one in runs if one.number in self._in_log]
        place = output_of if not self._markers else framed_output_of if self._run is not None else reach
        start, stop = place(self._log, in_log, in_log.index(run))
        start, self._in_log[run.number] = max(start, self._in_log[run.number]), max(stop, self._in_log[run.number])
        return [Stretch(self._log, Span(start, stop))] if stop > start else []

    def _print(self, view: Iterable[Stretch], runs: Sequence[Run]) -> Iterator[bytes]:
        """The bytes of a view. Output that is gone from a log is reported once, however many runs it was of."""
        in_log = [run for run in runs if run.number in self._in_log]
        gone = 0
        for source, span in view:
            if isinstance(source, NotKept):
                self._tell(source.count, NotKept.LIMIT)
                continue
            for piece in source.pieces([span]):
                if isinstance(piece, Gone):
                    assert isinstance(source, Log)
                    gone += printed_within(source, in_log, piece.span, run=self._run)
                    continue
                yield from self._report_gone(gone)
                gone = 0
                if isinstance(source, Marker) and span.start == 0 and not piece.startswith(b"\n"):
                    yield from self._end_line()
                self._is_within_line = not piece.endswith(b"\n")
                yield piece
        yield from self._report_gone(gone)

    def _report_gone(self, count: int) -> Iterator[bytes]:
        if not count:
            return
        assert self._log is not None
        if self._markers:
            yield from self._end_line()
            yield gone_line(count, self._log.limit)
        else:
            self._tell(count, f"log-limit {self._log.limit.decode('ascii', 'replace')}")

    def _end_line(self) -> Iterator[bytes]:
        if self._is_within_line:
            self._is_within_line = False
            yield b"\n"


# ── runs that are not in a log of this host ─────────────────────────────────────────────────────────────────────────

Fetch = Callable[[int], Fetched]  # from this byte on


def _fetch_nothing(start: int) -> Fetched:
    del start
    return Fetched((), is_all=True)


class StoredOutput(Source):
    """What the store has now of the output of one run, from byte `start` on: `kept` says from where to where."""

    def __init__(self, fetch: Fetch, start: int) -> None:
        self._fetch = fetch
        first = stop = start
        while True:
            fetched = fetch(stop)
            for at, data in fetched.pieces:
                if at > stop:  # what came before is gone, or is removed just now
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


class Marker(Source):
    """A line of ours that is in no log."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def at(self, span: Span) -> bytes:
        return self._data[span.start : span.stop]


class NotKept(Source):
    """In place of output that the store does not have, if there are no markers that say so."""

    LIMIT: Final = "output-limit"

    def __init__(self, count: int) -> None:
        self.count = count

    @property
    def first(self) -> int:
        return self.count

    def at(self, span: Span) -> bytes:
        del span
        return b""


class StoredRun:
    """The output of one run in the store, and its markers: each call of `new` returns what came since the last one."""

    def __init__(self, fetch: Fetch, *, markers: bool) -> None:
        self._fetch = fetch
        self._markers = markers
        self._printed = 0
        self.has_begun = False
        self._is_over = False
        self._is_within_line = False

    @property
    def has_printed(self) -> bool:
        """Whether nothing of it will be in a log."""
        return self._is_over or self._printed > 0

    def new(self, run: Run) -> list[Stretch]:
        """`run` is as it was before: what it printed before it ended is then there."""
        if self._is_over:
            return []
        stored = StoredOutput(self._fetch, self._printed)
        start, stop = stored.kept
        began = run.started_at or run.finished_at
        if began is None and not stop:  # it is not known to have started
            return []
        lines: list[Stretch] = []
        if not self.has_begun:
            self.has_begun = True
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
        if not self._markers:
            return []
        text = (b"\n" if self._is_within_line else b"") + line
        self._is_within_line = False
        return [Stretch(Marker(text), Span(0, len(text)))]


def _end(piece: tuple[int, bytes]) -> int:
    return piece[0] + len(piece[1])
