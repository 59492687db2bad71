"""What jobs print, on its way into a store that other hosts read: a bounded part of it, while it is printed and at the end.

Nothing is kept here but how far it has got: a job writes into its log by itself, and what could not be sent is read there
again. A job that prints faster than this goes on is not waited for, and only its latest output is sent.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from queuectl.errors import Unavailable
from queuectl.jobs.model import Claim
from queuectl.logs.log import Log, Span, open_log
from queuectl.store.types import End, OutputPiece
from queuectl.worker.running import Running

EVERY: Final = 0.5
PIECE: Final = 64 * 1024
MOST: Final = 1024 * 1024  # of one run, whatever output-limit says: it goes into one transaction, at the end of the run
AT_ONCE: Final = 4 * MOST  # of all runs under way together
LEAST: Final = 4 * 1024  # of each, also if they are many


class Streaming:
    def __init__(self, *, is_shared: bool) -> None:
        """`is_shared`: there are others to read it; else nothing happens here."""
        self.look_at = 0.0 if is_shared else math.inf
        self._is_shared = is_shared
        self._sent: dict[str, int] = {}  # by token: up to which byte of its output
        self._told: dict[str, int] = {}  # the same, as it will be if the exchange under way succeeds

    def look(self, under_way: Collection[Running], now: float) -> list[Running]:
        """The runs that have printed something new; none before `look_at`."""
        if now < self.look_at or not under_way:
            return []
        self.look_at = now + EVERY
        return [run for run in under_way if not run.is_lost and self._has_news(run)]

    def pieces(self, printed: Sequence[Running], over: Sequence[End], *, limit: int) -> list[OutputPiece]:
        """What to tell the store: some of what these runs have printed, and the rest of those that are over."""
        if not self._is_shared:
            return []
        self._told = {}
        limit = min(limit, MOST)
        share = max(LEAST, AT_ONCE // len(printed)) if printed else 0
        found: list[OutputPiece] = []
        for run in printed:
            found += self._read(run.claim, run.log_from, None, limit=limit, share=share)
        for end in over:
            if end.log_from is not None and end.log_to is not None and end.log_to > end.log_from:
                found += self._read(end.claim, end.log_from, end.log_to, limit=limit, share=limit)
        return found

    def note(self, tokens: Iterable[str]) -> None:
        """The store has what was sent. `tokens`: of the runs of which more may be sent."""
        if self._told or self._sent:
            sent = {**self._sent, **self._told}
            self._sent = {token: sent[token] for token in tokens if token in sent}
            self._told = {}

    def _has_news(self, run: Running) -> bool:
        if (log := _open(run.claim)) is None:
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
            printed = (log.size if log_to is None else log_to) - log_from
            sent = self._sent.get(claim.token, 0)
            begin = max(sent, printed - limit, log.first - log_from)
            place, stop = begin, min(printed, begin + share)
            self._told[claim.token] = begin
            while place < stop:
                data = log.at(Span(log_from + place, log_from + min(stop, place + PIECE)))
                if not data:  # cut meanwhile
                    return
                yield OutputPiece(claim, place, data, keep_from=max(0, printed - limit))
                place += len(data)
                self._told[claim.token] = place


def _open(claim: Claim) -> Log | None:
    try:
        return open_log(claim.log)
    except Unavailable:  # somebody has put something else in its place
        return None
