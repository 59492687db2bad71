"""The runs that a worker has under way."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from queuectl.jobs.model import Claim
from queuectl.jobs.outcome import Cancelled, Exited, Limited, Outcome, Released, Signalled, TimedOut
from queuectl.jobs.resources import ResourceReport, exceeded_limit
from queuectl.process.watch import Child
from queuectl.store.types import Start


class Why(Enum):
    """Why we end a run that would go on."""

    TIMEOUT = "timeout"
    CANCEL = "cancel"
    RELEASE = "release"
    UNTOLD = "untold"  # its leader has ended, and nobody can say how: as of a dead worker, nothing of it may go on


@dataclass(slots=True)
class Running:
    claim: Claim
    slot: int
    place: int  # in the ledger
    child: Child
    began: float
    log_from: int
    deadline: float | None
    may_be_closed: bool = False  # its log, by somebody who looked after it before us
    is_recorded: bool = False  # the store knows its pid and when it began
    is_lost: bool = False  # it belongs to somebody else: nothing more is written about it
    why: Why | None = None
    kill_at: float = math.inf
    look_at: float = math.inf  # while we end it: when to look whether all of it is gone
    is_headless: bool = False  # its leader has ended while we end it; others of its family may live on

    def as_start(self, now: float) -> Start:
        return Start(self.claim, self.child.pid, now - self.began, self.log_from)

    def outcome(self, how: Exited | Signalled | None) -> Outcome:
        """None: it has ended because we ended it, and nobody can say how."""
        match self.why:
            case None | Why.UNTOLD:
                assert how is not None
                return how
            case Why.TIMEOUT:
                return TimedOut(self.claim.timeout_ms or 0, how)
            case Why.CANCEL:
                return Cancelled(how)
            case Why.RELEASE:
                return Released(how)
            case unreachable:
                assert_never(unreachable)


def by_limit(claim: Claim, outcome: Outcome, spent: ResourceReport) -> Outcome:
    """The same, or that it was ended by one of its limits."""
    if claim.limits is None or not isinstance(outcome, Exited | Signalled):
        return outcome
    which = exceeded_limit(claim.limits, outcome, spent)
    return outcome if which is None else Limited(which, outcome)
