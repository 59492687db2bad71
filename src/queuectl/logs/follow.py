"""A log that is read while it grows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from queuectl.jobs.model import Run
from queuectl.logs.bounds import gone_line
from queuectl.logs.log import Gone, Log, Span, open_log
from queuectl.logs.read import last_lines, left_of, printed_within, spans

Tell = Callable[[int, str], None]  # how many bytes of output are gone, and because of which limit


def tell_nobody(count: int, limit: str) -> None: ...


class Gaps:
    """Says what is gone: where lines of ours are wanted, in a line of its own, else to whom it is told."""

    def __init__(self, *, markers: bool, tell: Tell) -> None:
        self._markers = markers
        self._tell = tell
        self._is_within_line = False

    def fill(
        self, log: Log, pieces: Iterable[bytes | Gone], runs: Sequence[Run], *, run: int | None
    ) -> Iterator[bytes]:
        """The pieces of this log as bytes."""
        count = 0
        for piece in pieces:
            if isinstance(piece, Gone):
                count += printed_within(log, runs, piece.span, run=run)
                continue
            yield from self._say(count, log.limit)
            count = 0
            self._is_within_line = not piece.endswith(b"\n")
            yield piece
        yield from self._say(count, log.limit)

    def _say(self, count: int, limit: bytes) -> Iterator[bytes]:
        if not count:
            return
        if self._markers:
            # At the beginning of a line, also where what was printed before it has no end.
            yield (b"\n" if self._is_within_line else b"") + gone_line(count, limit)
            self._is_within_line = False
        else:
            self._tell(count, f"log-limit {limit.decode('ascii', 'replace')}")


class Follower:
    """One job's log: each call of `new` gives what came since the last one.

    A log that does not exist yet has nothing new. Whoever asks reads the job's state *before* calling `new`: what a job
    printed before it ended is then never missed. What went before it could be read is told.
    """

    def __init__(
        self,
        *,
        run: int | None = None,
        markers: bool = True,
        tail: int | None = None,
        tell: Tell = tell_nobody,
    ) -> None:
        self._run = run
        self._markers = markers
        self._tail = tail
        self._log: Log | None = None
        self._gaps = Gaps(markers=markers, tell=tell)
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
            left = left_of(self._log, unprinted)
            wanted, self._tail = last_lines(self._log, left, self._tail), None
            if wanted == left:  # all there is, and fewer lines than were asked for: then it matters what is gone
                wanted = unprinted if wanted else []
        else:
            wanted = unprinted
        self._printed = unprinted[-1].stop
        yield from self._gaps.fill(self._log, self._log.pieces(wanted), runs, run=self._run)

    def close(self) -> None:
        if self._log is not None:
            self._log.close()
