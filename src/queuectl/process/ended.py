"""The children of a keeper that have ended, until their worker has written how: then they are buried."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from typing import Final, NamedTuple

from queuectl.clock import TICK, boot_ticks
from queuectl.process.ledger import Finish, Footprint, Ledger
from queuectl.process.pipe import Pipe
from queuectl.process.pool import Group, Pool

HEED_WITHIN: Final = 10  # clock ticks: a worker that has not written an end by then may stand still


class Kept(NamedTuple):
    """A child."""

    place: int
    token: str
    footprint: Footprint
    pipe: Pipe
    began: float
    group: Group | None = None


class Ended:
    def __init__(self, ledger: Ledger, pool: Pool) -> None:
        self._ledger = ledger
        self._pool = pool
        self._unburied: dict[int, tuple[Kept, Finish]] = {}  # the number of each stays its own until it is buried
        self._unnoted: deque[int] = deque()  # of those, as they ended; some may be buried by now
        self._killed: set[int] = (
            set()
        )  # also of those that live: somebody ends them, and what is in their control groups

    def __bool__(self) -> bool:
        return bool(self._unburied)

    def __contains__(self, pid: int) -> bool:
        return pid in self._unburied

    def add(self, pid: int, kept: Kept, finish: Finish) -> None:
        self._unburied[pid] = kept, finish
        self._unnoted.append(pid)

    def note_killed(self, pid: int) -> None:
        self._killed.add(pid)

    def bury(self, pid: int) -> None:
        found = self._unburied.pop(pid, None)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
        # Not before: as long as the worker may still end what is left of the run, all that is in its group has to be of it.
        if found is not None and found[0].group is not None:
            is_clean = pid not in self._killed and found[0].token not in self._ledger.added_ends()
            self._pool.give_back(found[0].group, is_clean=is_clean)
        self._killed.discard(pid)

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
