"""Prefetch: jobs that a worker claims ahead of a free slot, as long as its jobs are short.

Between the end of a job and the start of the next one lie a transaction and two messages. For a job of milliseconds, or one that
is shorter than an exchange with a distant server, that is as long as the job: all slots become free, then the worker settles, then
all of them begin. So such a worker holds some claims in reserve, begins them while it settles, and settles in larger portions.
See docs/adr/0028.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Final

from queuectl.clock import Clock
from queuectl.jobs.model import Claim

BRIEF: Final = (
    0.01  # a job that takes less is short; where exchanges take longer than this, a job that takes less than one
)
IN_A_ROW: Final = 8  # short jobs before any is claimed ahead
MOST: Final = 32  # they stand in one record of the ledger
# Without a free slot for this long the jobs have become longer, and the claims are given back: another worker may have a slot. At
# least two exchanges: giving back takes one, claiming again another.
PATIENCE: Final = 0.05
EXCHANGES: Final = 4  # how many of the latest are compared: one that was slow by chance changes nothing
# For so long after the last ones began, more are begun only if that fills half of the slots: the keeper, too, does better with
# several at once. The same for what is settled.
GATHER: Final = 0.003
SETTLE_WITHIN: Final = 0.01


class Reserve:
    """`note` is told all of it whenever it changes: who finds us dead should know that these were not begun."""

    def __init__(self, clock: Clock, note: Callable[[Collection[str]], None]) -> None:
        self._clock = clock
        self._note = note
        self._claims: deque[tuple[Claim, float]] = deque()  # since when
        self._brief = 0  # short jobs in a row
        self._usual = BRIEF  # moving average of their durations
        self._exchanges: deque[float] = deque(maxlen=EXCHANGES)
        self._began_at = 0.0

    def __len__(self) -> int:
        return len(self._claims)

    @property
    def _latency(self) -> float:
        """How long an exchange with the store takes."""
        return min(self._exchanges, default=0.0)

    @property
    def _patience(self) -> float:
        return max(PATIENCE, 2 * self._latency)

    def note_exchange(self, seconds: float) -> None:
        """An exchange with the store has taken this long."""
        self._exchanges.append(seconds)

    def judge(self, duration: float) -> None:
        """One more job has ended, after this long."""
        if duration < max(BRIEF, self._latency):
            self._brief += 1
            self._usual += (duration - self._usual) / IN_A_ROW
        else:
            self._brief = 0

    def size(self, slots: int) -> int:
        """How many to have beside those that have a slot: what the slots can begin during one exchange, and two for each slot at
        least."""
        if self._brief < max(IN_A_ROW, slots):
            return 0
        waves = max(2, math.ceil(self._latency / max(self._usual, 0.001)))
        return min(waves * slots, MOST)

    def draw(self, more: Sequence[Claim], *, room: int, slots: int, is_busy: bool) -> list[Claim]:
        """Add these, and return those to begin now: there is room for so many."""
        now = self._clock.monotonic()
        has_changed = bool(self._claims)
        self._claims.extend((claim, now) for claim in more)
        if room <= 0 or (is_busy and room < slots // 2 and room < len(self._claims) and now < self._began_at + GATHER):
            drawn = []
        else:
            drawn = [self._claims.popleft()[0] for _ in range(min(room, len(self._claims)))]
        if drawn:
            self._began_at = now
        if self._claims or (has_changed and drawn):
            self._tell()
        return drawn

    def stale(self, now: float) -> list[Claim]:
        """Take out those that have waited for too long, while no slot became free for any. No more are claimed ahead until some
        jobs were short again."""
        taken = self.remove(lambda _, since: now >= max(since, self._began_at) + self._patience)
        if taken:
            self._brief = 0
        return taken

    def remove(self, which: Callable[[Claim, float], bool] = lambda *_: True) -> list[Claim]:
        """All of them, or those of which this is true."""
        taken = [claim for claim, since in self._claims if which(claim, since)]
        if taken:
            self._claims = deque(item for item in self._claims if not which(*item))
            self._tell()
        return taken

    def stale_at(self) -> float:
        """When the first of them has waited for too long, if nothing changes."""
        return max(self._claims[0][1], self._began_at) + self._patience if self._claims else math.inf

    def begin_at(self, room: int) -> float:
        """When to begin some of them, with this many slots free."""
        return self._began_at + GATHER if self._claims and room > 0 else math.inf

    def _tell(self) -> None:
        self._note([claim.token for claim, _ in self._claims])
