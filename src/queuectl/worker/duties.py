"""What a worker does for the house: one step of each duty when its time has come."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from queuectl.worker.plan import Duty
from queuectl.worker.trouble import RETRY_EVERY, Trouble

ASK_AGAIN: Final = 1.0  # whether there is still a reason to leave it to others


class Duties:
    def __init__(self, duties: Sequence[Duty], trouble: Trouble) -> None:
        self._due = dict.fromkeys(duties, 0.0)
        self._trouble = trouble

    def step(self, now: float, *, is_pressed: Callable[[], bool]) -> bool:
        """Take a step of each whose time has come, the most overdue first; of no more than one if `is_pressed` says that there is
        something more important to do. Returns whether there is more work than before."""
        has_more = False
        due = sorted((duty for duty, at in self._due.items() if now >= at), key=self._due.__getitem__)
        for duty in due:
            if duty.adds_work and self._trouble.is_outdated:
                self._due[duty] = now + ASK_AGAIN
                continue
            again = self._trouble.ask(lambda: duty.step(now))  # noqa: B023 - called at once
            self._due[duty] = now + RETRY_EVERY if again is None else again
            has_more |= duty.adds_work and self._due[duty] <= now  # whoever has done something looks again at once
            if is_pressed():
                break
        return has_more

    def hint(self) -> None:
        """Somebody wrote: there may be more to do than was known."""
        for duty in self._due:
            if duty.adds_work:
                self._due[duty] = 0.0

    @property
    def wake_at(self) -> float:
        return min(self._due.values(), default=math.inf)
