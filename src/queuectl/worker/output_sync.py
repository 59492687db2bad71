"""Output of jobs between the logs of this host and a store that other hosts read.

`OutputSync` sends what jobs print, a limited part of it, while they run and at the end. It keeps nothing but how far it has got: what could
not be sent is read from the log again. A job that prints faster does not wait, and only its latest output is sent. `ParentLogs` fetches the
output of the parents of a job before it starts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from queuectl.errors import Unavailable
from queuectl.jobs.model import Claim
from queuectl.logs import parent_logs
from queuectl.logs.follow import Fetched, StoredRun
from queuectl.logs.reader import Log, Span, before_end_marker, open_log
from queuectl.logs.rotation import is_rotated, log_exists
from queuectl.store.reads import Reads
from queuectl.store.types import OUTPUT_AT_ONCE, End, LatestRun, OutputPiece
from queuectl.worker.store_retry import StoreRetry

if TYPE_CHECKING:
    from queuectl.worker.run import WorkerRun

SEND_EVERY: Final = 0.5
PIECE_SIZE: Final = 64 * 1024
MAX_OUTPUT_PER_RUN: Final = (
    1024 * 1024
)  # whatever output-limit says: it goes into one transaction, at the end of the run
MAX_OUTPUT_AT_ONCE: Final = 4 * MAX_OUTPUT_PER_RUN  # of all running jobs
MIN_SHARE: Final = 4 * 1024  # of each, also if there are many

PARENTS_PROBLEM: Final = "the output of its parents could not be fetched"


class OutputSync:
    def __init__(self) -> None:
        self.look_at = 0.0
        self._sent: dict[str, int] = {}  # by token: up to which byte of its output
        self._sending: dict[str, int] = {}  # the same, if the current exchange succeeds

    def printed(self, active: Collection[WorkerRun], now: float) -> list[WorkerRun]:
        """The runs that have printed something new; none before `look_at`."""
        if now < self.look_at or not active:
            return []
        self.look_at = now + SEND_EVERY
        return [run for run in active if not run.is_lost and self._has_news(run)]

    def pieces(self, printed: Sequence[WorkerRun], ended: Sequence[End], *, limit: int) -> list[OutputPiece]:
        """What to send: some of the output of these runs, and the rest of those that have ended."""
        self._sending = {}
        limit = min(limit, MAX_OUTPUT_PER_RUN)
        share = max(MIN_SHARE, MAX_OUTPUT_AT_ONCE // len(printed)) if printed else 0
        found: list[OutputPiece] = []
        for run in printed:
            if run.log_from is not None:
                found += self._read(run.claim, run.log_from, None, limit=limit, share=share)
        for end in ended:
            if end.log_from is not None and end.log_to is not None and end.log_to > end.log_from:
                found += self._read(end.claim, end.log_from, end.log_to, limit=limit, share=limit)
        return found

    def note(self, tokens: Iterable[str]) -> None:
        """The store has what was sent. `tokens`: of the runs of which more may be sent."""
        sent = {**self._sent, **self._sending}
        self._sent = {token: sent[token] for token in tokens if token in sent}
        self._sending = {}

    def _has_news(self, run: WorkerRun) -> bool:
        if run.log_from is None or (log := _open(run.claim)) is None:
            return False
        with log:
            return log.size > run.log_from + self._sent.get(run.claim.token, 0)

    def _read(
        self, claim: Claim, log_from: int, log_to: int | None, *, limit: int, share: int
    ) -> Iterator[OutputPiece]:
        """Up to `share` bytes of those that were not sent and are among the last `limit`."""
        if (log := _open(claim)) is None:
            return
        with log:
            if log_to is None:  # the END marker may be there before we know of the end
                log_to = before_end_marker(log, Span(log_from, max(log_from, log.size)), is_running=True)
            printed = log_to - log_from
            sent = self._sent.get(claim.token, 0)
            begin = max(sent, printed - limit, log.first - log_from)
            place, stop = begin, min(printed, begin + share)
            self._sending[claim.token] = begin
            while place < stop:
                data = log.at(Span(log_from + place, log_from + min(stop, place + PIECE_SIZE)))
                if not data:  # rotated meanwhile
                    return
                yield OutputPiece(claim, place, data, keep_from=max(0, printed - limit))
                place += len(data)
                self._sending[claim.token] = place


def _open(claim: Claim) -> Log | None:
    try:
        return open_log(claim.log)
    except Unavailable:  # something else is in its place
        return None


class _LocalLog(NamedTuple):
    """A log of this host that is not where the job looks for it, or has two segments."""

    path: str


class ParentLogs:
    def __init__(self, store: Reads, *, host: str, retry: StoreRetry) -> None:
        self._store = store
        self._host = host
        self._retry = retry

    def fetch(self, claims: Sequence[Claim]) -> tuple[Sequence[Claim], Sequence[Claim]]:
        """The claims that can start, and those for which the output of their parents could not be fetched: they would run as if nothing had
        been printed."""
        children = [claim for claim in claims if claim.parents]
        away = sorted({parent for claim in children for parent in claim.parents if self._may_be_away(claim, parent)})
        latest = self._retry.read(lambda: {one.id: one for one in self._store.latest_runs(away)} if away else {})
        done = {claim.token for claim in children if latest is not None and self._fetch(claim, latest)}
        ready = [claim for claim in claims if not claim.parents or claim.token in done]
        return ready, [claim for claim in children if claim.token not in done]

    def _may_be_away(self, claim: Claim, parent: str) -> bool:
        # With a shared store, the log of this host may be of an earlier run, and the last run was on another host.
        return self._store.is_shared or not log_exists(parent_logs.log_beside(claim.log, parent))

    def _fetch(self, claim: Claim, latest: Mapping[str, LatestRun]) -> bool:
        found = {parent: self._find(claim, parent, latest.get(parent)) for parent in claim.parents}
        if not any(found.values()):
            return True
        if self._retry.read(lambda: self._make_folder(claim, found)):
            return True
        parent_logs.remove_folder(claim.log, claim.run)
        return False

    def _find(self, claim: Claim, parent: str, latest: LatestRun | None) -> _LocalLog | LatestRun | None:
        """What to put into a directory for this claim; None: the log of the parent is where it looks for it, or there is none."""
        beside = parent_logs.log_beside(claim.log, parent)
        log = beside
        if latest is not None:  # otherwise the store was not asked, or the parent has never run or was removed
            if latest.run.host != self._host or latest.log is None or not log_exists(latest.log):
                return latest if latest.log is not None else None
            log = latest.log
        return _LocalLog(log) if log != beside or is_rotated(log) else None

    def _make_folder(self, claim: Claim, found: Mapping[str, _LocalLog | LatestRun | None]) -> bool:
        """Raises Unavailable or OSError."""
        parent_logs.remove_folders(claim.log)  # of a lost run
        folder = parent_logs.make_folder(claim.log, claim.run)
        for parent, place in found.items():
            path = parent_logs.log_in(folder, parent)
            local = _LocalLog(parent_logs.log_beside(claim.log, parent)) if place is None else place
            if isinstance(local, LatestRun):
                parent_logs.write_log(path, self._pieces(local))
            elif is_rotated(local.path):
                parent_logs.write_log(path, _both_segments(local.path))
            elif log_exists(local.path):
                parent_logs.link_log(path, local.path)
        return True

    def _pieces(self, one: LatestRun) -> Iterator[bytes]:
        """What the store has of it, some of it at a time, between markers as in a log."""

        def fetch(start: int) -> Fetched:
            pieces = self._store.output(one.id, one.run.number, start=start)
            return Fetched(pieces, is_all=len(pieces) < OUTPUT_AT_ONCE)

        for source, span in StoredRun(fetch, markers=True).new(one.run):
            yield from source.read([span])


def _both_segments(path: str) -> Iterator[bytes]:
    if (log := open_log(path)) is not None:
        with log:
            yield from log.read([Span(log.first, log.size)])
