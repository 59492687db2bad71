"""Up to where the lines are known to be empty, so that a claim need not begin at their beginning. See claim.sql.

Known by this process only. A job that was passed over because somebody had locked it, and who then did not take it, stays
behind: so floors hold for a second at most, and then a claim looks everywhere again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from queuectl.clock import SystemClock

HOLDS_FOR: Final = 1.0


class _Floor(NamedTuple):
    rank: int
    seq: int
    number: int  # of the claim that laid it: the later, the more it had seen
    seen: str  # the transactions that were over before that claim


class Floors:
    def __init__(self) -> None:
        self._clock = SystemClock()  # of this machine: this is no time of the store
        self._since = 0.0
        self._claims = 0
        self._floors: dict[str | None, _Floor] = {}  # by queue; None: the line of all

    def parameters(self, queues: tuple[str, ...] | None) -> dict[str, Any]:
        """What the next claim is told. `queues` as in ClaimRequest."""
        now = self._clock.monotonic()
        if now - self._since > HOLDS_FOR:
            self._floors.clear()
            self._since = now
        lines: list[str | None] = [None] if queues is None else list(dict.fromkeys(queues))
        floors = [self._floors.get(line) for line in lines]
        # Of several the oldest view, which is right for all: a claim that was content with the first queues has not looked
        # at what came to the others.
        oldest = min((floor for floor in floors if floor is not None), key=lambda floor: floor.number, default=None)
        return {
            "queues": lines,
            "floor_ranks": [None if floor is None else floor.rank for floor in floors],
            "floor_seqs": [None if floor is None else floor.seq for floor in floors],
            "seen": "1:1:" if oldest is None else oldest.seen,
        }

    def learn(self, queues: tuple[str, ...] | None, claimed: Sequence[tuple[str, int, int]], *, seen: str) -> None:
        """What a claim found: the queue, rank and seq of each job in the order of the line. `seen`: the transactions that
        were over before it. A line that gave nothing keeps its floor and its view: it may not have been looked at."""
        self._claims += 1
        for queue, rank, seq in claimed:
            self._floors[None if queues is None else queue] = _Floor(rank, seq, self._claims, seen)
