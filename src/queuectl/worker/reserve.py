"""What a worker claims beyond its slots, as long as its jobs are short.

Between the end of a job and the start of the next one lie a transaction and two messages. For a job of milliseconds that is
as long as the job: all slots become free, then the worker settles, then all of them begin. So a worker whose jobs are that
short holds some claims in reserve, begins them while it settles, and settles in larger portions. See docs/adr/0028.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Final

from queuectl.clock import Clock
from queuectl.job.model import Claim

BRIEF: Final = 0.01  # how long a job takes at most that is worth it
IN_A_ROW: Final = 8  # so many have to have been
MOST: Final = 32  # they stand in one record of the ledger
# Who has waited so long goes back: the jobs have become longer, and somebody else may have a slot for it.
PATIENCE: Final = 0.05
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
        self._brief = 0  # so many in a row were
        self._began_at = 0.0

    def __len__(self) -> int:
        return len(self._claims)

    def judge(self, duration: float) -> None:
        """One more has ended, after so long."""
        self._brief = self._brief + 1 if duration < BRIEF else 0

    def size(self, slots: int) -> int:
        """How many to have, beside those that have a slot."""
        return min(2 * slots, MOST) if self._brief >= max(IN_A_ROW, slots) else 0

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
        """Take out those that have waited for too long. No more are claimed ahead until some jobs were short again."""
        taken = self.remove(lambda _, since: now >= since + PATIENCE)
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

    def wake_at(self, room: int) -> float:
        """When there is something to be done about it."""
        if not self._claims:
            return math.inf
        stale_at = self._claims[0][1] + PATIENCE
        return min(stale_at, self._began_at + GATHER) if room > 0 else stale_at

    def _tell(self) -> None:
        self._note([claim.token for claim, _ in self._claims])
