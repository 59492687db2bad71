"""A log that is read while it grows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from queuectl.job.model import Run
from queuectl.output.read import Log, Span, last_lines, open_log, spans


class Follower:
    """One job's log: each call of `new` gives what came since the last one.

    A log that does not exist yet has nothing new. Whoever asks reads the job's state *before* calling `new`: what a job
    printed before it ended is then never missed.
    """

    def __init__(self, *, run: int | None = None, markers: bool = True, tail: int | None = None) -> None:
        self._run = run
        self._markers = markers
        self._tail = tail
        self._log: Log | None = None
        self._printed = 0  # nothing before this byte is printed (again)

    def new(self, path: str | None, runs: Sequence[Run], *, ask: bool = True) -> Iterator[bytes]:
        del ask  # all there is to know is in the file
        self._log = self._log or open_log(path)
        if self._log is None:
            return
        if self._log.size < self._printed:  # somebody emptied it: what is in it now is all new
            self._printed = 0
        view = spans(self._log, runs, run=self._run, markers=self._markers)
        unprinted = [Span(max(start, self._printed), stop) for start, stop in view if stop > self._printed]
        if not unprinted:
            return
        if self._tail is not None:
            wanted, self._tail = last_lines(self._log, unprinted, self._tail), None
        else:
            wanted = unprinted
        self._printed = unprinted[-1].stop
        yield from self._log.read(wanted)

    def close(self) -> None:
        if self._log is not None:
            self._log.close()
