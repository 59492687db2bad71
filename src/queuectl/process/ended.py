"""The children of a keeper that have ended, until their worker has written how: then they are buried."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from typing import Final, NamedTuple

from queuectl.clock import TICK, boot_ticks
from queuectl.process.ledger import Finish, Footprint, Ledger
from queuectl.process.pipe import Pipe

HEED_WITHIN: Final = 10  # clock ticks: a worker that has not written an end by then may stand still


class Kept(NamedTuple):
    """A child."""

    place: int
    token: str
    footprint: Footprint
    pipe: Pipe
    began: float


class Ended:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._unburied: dict[int, tuple[Kept, Finish]] = {}  # the number of each stays its own until it is buried
        self._unnoted: deque[int] = deque()  # of those, as they ended; some may be buried by now

    def __bool__(self) -> bool:
        return bool(self._unburied)

    def add(self, pid: int, kept: Kept, finish: Finish) -> None:
        self._unburied[pid] = kept, finish
        self._unnoted.append(pid)

    def bury(self, pid: int) -> None:
        self._unburied.pop(pid, None)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)

    def patience(self, otherwise: float | None) -> float | None:
        """For how many seconds there is nothing to note; `otherwise`, if that is sooner or there is nothing at all."""
        if not self._unnoted:
            return otherwise
        soon = HEED_WITHIN * TICK
        return soon if otherwise is None else min(soon, otherwise)

    def note_unheeded(self) -> None:
        """What the worker has not written for a while: whoever takes such a run from it, or comes after both of us, has to know how
        it ended, and where its output does."""
        while self._unnoted:
            found = self._unburied.get(self._unnoted[0])
            if found is not None:
                if boot_ticks() - found[1].at < HEED_WITHIN:
                    return
                self._note(*found)
            self._unnoted.popleft()

    def bury_all(self) -> None:
        """The worker is gone: for whoever comes after it."""
        for pid, found in list(self._unburied.items()):
            self._note(*found)
            self.bury(pid)
        self._unnoted.clear()

    def _note(self, kept: Kept, finish: Finish) -> None:
        with contextlib.suppress(OSError):  # a full disk: then nobody will know
            self._ledger.write(kept.place, kept.token, kept.footprint._replace(finish=finish))
