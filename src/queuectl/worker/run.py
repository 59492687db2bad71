"""One run of a worker: a small state machine.

STARTING (requested from the supervisor), RUNNING, TERMINATING (timeout, cancel, stop), EXITED (its end is not recorded yet).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from queuectl.jobs.model import Claim
from queuectl.jobs.outcome import Cancelled, Exited, Outcome, Released, Signalled, TimedOut
from queuectl.process.journal import LOST
from queuectl.process.model import Child
from queuectl.store.types import Start


class RunState(Enum):
    STARTING = "starting"
    RUNNING = "running"
    TERMINATING = "terminating"
    EXITED = "exited"


class Why(Enum):
    """Why we terminate a run."""

    TIMEOUT = "timeout"
    CANCEL = "cancel"
    RELEASE = "release"
    UNKNOWN_EXIT = "unknown"  # its first process has ended, and nothing recorded how: nothing of it may continue
    SUPERVISOR_DIED = "supervisor"  # it ran beside a job that may have killed the supervisor, and runs again


@dataclass(slots=True)
class WorkerRun:
    claim: Claim
    slot: int | None  # of a webhook delivery
    place: int  # in the journal
    began: float
    deadline: float | None = None
    state: RunState = RunState.STARTING
    child: Child | None = None
    log_from: int | None = None
    journal: str | None = None  # of an adopted run: where its supervisor writes its end
    is_start_recorded: bool = False  # the store knows its PID, when it began, and where its output begins
    is_lost: bool = False  # it belongs to another worker: nothing more is written about it
    is_orphan: bool = False  # its supervisor, which was ours, is dead
    why: Why | None = None
    kill_at: float = math.inf
    check_at: float = math.inf  # while it is being terminated: when to check whether all of it is gone
    has_exited: bool = False  # its first process, while it is being terminated; others may live
    is_finishing: bool = False  # all of it is gone; the supervisor is asked for its end
    is_prefetched: bool = False  # it may wait for a slot, in the supervisor
    is_withdrawn: bool = False  # the supervisor is asked not to start it

    @property
    def is_active(self) -> bool:
        """Whether it has a process."""
        return self.state in (RunState.RUNNING, RunState.TERMINATING)

    @property
    def is_start_unrecorded(self) -> bool:
        # Without a PID there is nothing to record: its supervisor died before it answered.
        return self.child is not None and not (self.is_start_recorded or self.is_lost)

    def as_start(self, now: float) -> Start:
        assert self.child is not None
        return Start(self.claim, self.child.pid, now - self.began, self.log_from)

    def outcome(self, how: Exited | Signalled | None) -> Outcome:
        """`how` None: it ended because we terminated it, and nothing recorded how."""
        match self.why:
            case None | Why.UNKNOWN_EXIT:
                assert how is not None
                return how
            case Why.SUPERVISOR_DIED:
                return Released(how, "its supervisor died")
            case Why.TIMEOUT:
                return TimedOut(self.claim.timeout_ms or 0, how)
            case Why.CANCEL:
                return Cancelled(how)
            case Why.RELEASE:
                return Released(how)
            case unreachable:
                assert_never(unreachable)

    @property
    def reason(self) -> str:
        """Why we terminate it, as the journal has it."""
        if self.is_lost or self.why in (Why.UNKNOWN_EXIT, Why.SUPERVISOR_DIED):
            return LOST
        assert self.why is not None
        return str(self.why.value)
