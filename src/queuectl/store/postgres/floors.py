"""Up to where the lines are known to be empty, so that a claim need not begin at their beginning. See claim.sql.

Known by this process only, and in two ways. What a claim has taken is behind it: but a job that was passed over because somebody
had locked it, and who then did not take it, stays behind, too, so that holds for a second at most. What has been seen to be the
head of a line, locked or not, has nothing before it for sure; that holds for longer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from queuectl.clock import SystemClock

TAKEN_HOLDS_FOR: Final = 1.0
# Not for ever: behind a pooler the server may have been changed for another, that knows of other transactions.
SEEN_HOLDS_FOR: Final = 30.0
END: Final = 2**63 - 1  # of a line, as a rank and as a seq

Line = str | None  # a queue; None: the line of all

# For a claim that names no lines.
NO_FLOORS: Final[Mapping[str, Any]] = {
    "queues": [],
    "floor_ranks": [],
    "floor_seqs": [],
    "looks": [],
    "seen": "1:1:",
}


class _Floor(NamedTuple):
    rank: int
    seq: int
    number: int  # of the claim that laid it: the later, the more it had seen
    seen: str  # the transactions that were over before that claim


class _Floors(dict[Line, _Floor]):
    """Those of one way to know them."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since = 0.0

    def drop_old(self, now: float) -> None:
        if now - self._since > self._seconds:
            self.clear()
            self._since = now


class Floors:
    def __init__(self) -> None:
        self._clock = SystemClock()  # of this machine: this is no time of the store
        self._claims = 0
        self._session = 0
        self._taken = _Floors(TAKEN_HOLDS_FOR)
        self._heads = _Floors(SEEN_HOLDS_FOR)

    def parameters(self, queues: tuple[str, ...] | None, *, session: int = 0) -> dict[str, Any]:
        """What the next claim is told. `queues` as in ClaimRequest; `session`: the number of the session with the server."""
        now = self._clock.monotonic()
        self._taken.drop_old(now)
        self._heads.drop_old(now)
        self._enter(session)
        lines = _lines(queues)
        floors = [self._taken.get(line, self._heads.get(line)) for line in lines]
        # Of several the oldest view, which is right for all: a claim that was content with the first queues has not looked
        # at what came to the others.
        oldest = min((floor for floor in floors if floor is not None), key=lambda floor: floor.number, default=None)
        return {
            "queues": lines,
            "floor_ranks": [None if floor is None else floor.rank for floor in floors],
            "floor_seqs": [None if floor is None else floor.seq for floor in floors],
            "looks": [line not in self._taken for line in lines],
            "seen": "1:1:" if oldest is None else oldest.seen,
        }

    def learn(
        self,
        queues: tuple[str, ...] | None,
        claimed: Sequence[tuple[str, int, int]],
        *,
        seen: str,
        heads: str | None = None,
        session: int = 0,
    ) -> None:
        """What a claim found: the queue, rank and seq of each job in the order of the line. `seen`: the transactions that
        were over before it; `heads`: as claim.sql tells them. A line that gave nothing keeps its floor and its view: it may not
        have been looked at."""
        if self._enter(session):
            return  # what was asked was built on the server before
        self._claims += 1
        for queue, rank, seq in claimed:
            self._taken[None if queues is None else queue] = _Floor(rank, seq, self._claims, seen)
        lines = _lines(queues)
        for turn, rank, seq in json.loads(heads) if heads else ():
            before = (END, END) if rank is None else (rank, seq - 1)
            self._heads[lines[turn - 1]] = _Floor(before[0], before[1], self._claims, seen)

    def _enter(self, session: int) -> bool:
        """Whether it is another session than before: of a server that may have taken the place of the last one, and that counts its
        transactions anew from an earlier one."""
        if session == self._session:
            return False
        self._session = session
        self._taken.clear()
        self._heads.clear()
        return True


def _lines(queues: tuple[str, ...] | None) -> list[Line]:
    return [None] if queues is None else list(dict.fromkeys(queues))
