"""The output of a job whose runs may have run on several hosts: what lies in a log here is read there, all else in the
store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from queuectl.errors import Unavailable
from queuectl.jobs.model import Run
from queuectl.logs.follow import Gaps, Tell, tell_nobody
from queuectl.logs.log import Log, Span, Stretch, open_log
from queuectl.logs.read import frame, holds, last_stretches, left_stretches, output_of, reach
from queuectl.logs.stored import Fetched, NotKept, StoredRun


class Elsewhere(NamedTuple):
    """How to tell whether a run was one of this host, and how to get what one of another host printed."""

    is_here: Callable[[Run], bool]
    fetch: Callable[[int, int], Fetched]  # number of the run, from this byte on


class SpreadFollower:
    """As `Follower`, run by run. Where a run is read is decided once, when it is first seen to have begun."""

    def __init__(
        self,
        elsewhere: Elsewhere,
        *,
        run: int | None = None,
        markers: bool = True,
        tail: int | None = None,
        tell: Tell = tell_nobody,
    ) -> None:
        self._elsewhere = elsewhere
        self._run = run
        self._markers = markers
        self._tail = tail
        self._log: Log | None = None
        self._tell = tell
        self._gaps = Gaps(markers=markers, tell=tell)
        self._here: dict[int, int] = {}  # numbers of runs in our log, and up to which byte of it they are printed
        self._there: dict[int, StoredRun] = {}
        self._done = 0  # nothing more comes of the first so many runs

    def new(self, path: str | None, runs: Sequence[Run], *, ask: bool = True) -> Iterator[bytes]:
        """`ask`: the store may have news."""
        unprinted: Iterable[Stretch] = self.stretches(path, runs, ask=ask)
        if self._tail is not None and (found := list(unprinted)):
            left = left_stretches(found)
            unprinted, self._tail = last_stretches(left, self._tail), None
            if unprinted == left:  # as in Follower: all there is, and fewer lines than were asked for
                unprinted = found if unprinted else []
        for source, span in unprinted:
            if isinstance(source, NotKept):
                self._tell(source.count, NotKept.LIMIT)
                continue
            if isinstance(source, Log):
                here = [run for run in runs if run.number in self._here]
                yield from self._gaps.fill(source, source.pieces([span]), here, run=self._run)
            else:
                yield from source.read([span])

    def stretches(self, path: str | None, runs: Sequence[Run], *, ask: bool = True) -> Iterator[Stretch]:
        """Where to read what `new` gives, one run after the other: of each, some pieces are held in memory."""
        # All of them first: where one ends in a log, the next one of that log says.
        for index in range(self._done, len(runs)):
            self._place(path, runs, index)
        for run in runs[self._done :]:
            if self._run not in (None, run.number):
                continue
            if run.number in self._here:
                yield from self._of_log(runs, run)
            elif ask:
                yield from self._there[run.number].new(run)
        if ask:
            # Of a run of the past nothing is to come: asking each of them at each look would take ever longer.
            self._done = max(self._done, len(runs) - 1)

    def close(self) -> None:
        if self._log is not None:
            self._log.close()

    def _place(self, path: str | None, runs: Sequence[Run], index: int) -> None:
        run = runs[index]
        if run.number in self._here or (run.number in self._there and not self._may_begin_here(run)):
            return
        if self._elsewhere.is_here(run):
            self._log = self._log or _open(path)
            earlier = [one for one in runs[:index] if one.number in self._here]
            if self._log is not None and holds(self._log, [*earlier, run]):
                self._here[run.number] = 0
                return
        self._there.setdefault(
            run.number, StoredRun(lambda start: self._elsewhere.fetch(run.number, start), markers=self._markers)
        )

    def _may_begin_here(self, run: Run) -> bool:
        return self._elsewhere.is_here(run) and not self._there[run.number].has_begun

    def _of_log(self, runs: Sequence[Run], run: Run) -> list[Stretch]:
        assert self._log is not None
        ours = [one for one in runs if one.number in self._here]
        place = output_of if not self._markers else frame if self._run is not None else reach
        start, stop = place(self._log, ours, ours.index(run))
        start, self._here[run.number] = max(start, self._here[run.number]), max(stop, self._here[run.number])
        return [Stretch(self._log, Span(start, stop))] if stop > start else []


def _open(path: str | None) -> Log | None:
    try:
        return open_log(path)
    except Unavailable:  # of another user; what is in the store anybody may read
        return None
