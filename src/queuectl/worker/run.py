"""The runs of a worker, from the request to start one until the store has its end.

Each is a small state machine: STARTING (requested from the supervisor), RUNNING, TERMINATING (timeout, cancel, stop), EXITED (its end
is not recorded yet).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from queuectl.events import StoreTrouble
from queuectl.jobs.model import Claim
from queuectl.jobs.outcome import (
    Cancelled,
    Exited,
    Limited,
    Outcome,
    Released,
    Settlement,
    Signalled,
    TimedOut,
    settle,
    settle_lost,
)
from queuectl.jobs.resources import ResourceReport, exceeded_limit
from queuectl.jobs.retry import RetryPolicy
from queuectl.logs.last_line import read_last_output
from queuectl.logs.parent_logs import remove_folder
from queuectl.logs.writer import end_log
from queuectl.process.client import RunExit
from queuectl.process.journal import LOST
from queuectl.process.model import Child
from queuectl.settings import Settings
from queuectl.store.types import End, Span, Start
from queuectl.worker.config import WorkerContext


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


class Runs:
    """Runs by token and by state: a worker looks at some of them several times per turn, and at all of them rarely."""

    def __init__(self) -> None:
        self._all: dict[str, WorkerRun] = {}
        self._by_state: dict[RunState, dict[str, WorkerRun]] = {state: {} for state in RunState}

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[WorkerRun]:
        return iter(self._all.values())

    def get(self, token: str) -> WorkerRun | None:
        return self._all.get(token)

    def add(self, run: WorkerRun) -> None:
        self._all[run.claim.token] = self._by_state[run.state][run.claim.token] = run

    def move(self, run: WorkerRun, state: RunState) -> None:
        del self._by_state[run.state][run.claim.token]
        run.state = state
        self._by_state[state][run.claim.token] = run

    def remove(self, run: WorkerRun) -> None:
        del self._all[run.claim.token], self._by_state[run.state][run.claim.token]

    def in_state(self, *states: RunState) -> list[WorkerRun]:
        return [run for state in states for run in self._by_state[state].values()]

    @property
    def active(self) -> list[WorkerRun]:
        """Those that have a process."""
        return self.in_state(RunState.RUNNING, RunState.TERMINATING)

    @property
    def live(self) -> list[WorkerRun]:
        """Those that have not ended, as far as is known."""
        return self.in_state(RunState.STARTING, RunState.RUNNING, RunState.TERMINATING)

    @property
    def live_count(self) -> int:
        return len(self._all) - len(self._by_state[RunState.EXITED])


# ── ends ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Completer(list[End]):
    """Ends of runs and of claims that never started, until the store has them. `since`: when the first of them was added.

    In an `End` that waits here, `age` holds the moment when its run began: how long ago that is, is computed when it is sent to the store.
    """

    def __init__(self, context: WorkerContext, settings: Settings) -> None:
        super().__init__()
        self.settings = settings
        self.since = 0.0
        self._context = context

    def add_unstarted(self, claim: Claim, outcome: Outcome, *, began: float | None = None) -> None:
        """A claim for which there is no process, and will be none. `began`: of one that could not be started."""
        now = self._context.clock.monotonic()
        self._add(claim, outcome, None, began=now if began is None else began)

    def add_run(self, run: WorkerRun, outcome: Outcome, ended: RunExit | None) -> None:
        """A run that had a process. `ended` None: its supervisor is dead, so we write its END marker."""
        if ended is not None:
            outcome = _limited(run.claim, outcome, ended.report)
        self._add(run.claim, outcome, ended, began=run.began, pid=run.child and run.child.pid, log_from=run.log_from)

    def close_lost_log(self, claim: Claim, log_from: int | None) -> Span:
        """The same for a run of which nothing is known but that it has ended. Returns where its output is in the log."""
        self._remove_parent_logs(claim)
        if log_from is None:
            return Span(None, None)
        log_to = None
        with contextlib.suppress(OSError):  # the job is worth more than the last line of its log
            log_to = self._end_log(claim, log_from, settle_lost(claim, self.settings.max_crashes))
        return Span(log_from, log_to, read_last_output(claim, log_from, log_to))

    def remove(self, tokens: Collection[str]) -> None:  # type: ignore[override] # ends are known by their tokens
        """The store has these."""
        self[:] = [end for end in self if end.claim.token not in tokens]

    def _add(
        self,
        claim: Claim,
        outcome: Outcome,
        ended: RunExit | None,
        *,
        began: float,
        pid: int | None = None,
        log_from: int | None = None,
    ) -> None:
        self._remove_parent_logs(claim)
        now = self._context.clock.monotonic()
        self.since = self.since if self else now
        policy = RetryPolicy(self.settings.backoff_max_ms, self.settings.backoff_jitter)
        settlement = settle(claim, outcome, policy=policy, chance=self._context.chance())
        duration = now - began if ended is None or ended.duration is None else ended.duration
        log_to, usage = (None, None) if ended is None else (ended.log_to, ended.report.usage)
        if ended is None and log_from is not None:
            try:
                log_to = self._end_log(claim, log_from, settlement, duration=duration)
            except OSError as exc:
                # The result of the job stands; only the last line of its log is missing.
                problem = f"cannot write the end of {claim.log}: {exc.strerror}"
                self._context.emit(StoreTrouble(problem, is_retried=False))
        if ended is not None and ended.log_problem:
            self._context.emit(StoreTrouble(f"cannot write {claim.log}: {ended.log_problem}", is_retried=False))
        last_output = None if ended is None else ended.last_line
        if last_output is None:
            last_output = read_last_output(claim, log_from, log_to)
        self.append(End(claim, settlement, pid, began, duration, log_from, log_to, usage, last_output))

    def _end_log(
        self, claim: Claim, log_from: int, settlement: Settlement, *, duration: float | None = None
    ) -> int | None:
        """Raises OSError."""
        now_ms, limit = self._context.clock.now_ms(), self.settings.log_limit
        return end_log(claim.log, log_from, settlement, duration=duration, now_ms=now_ms, limit=limit)

    def _remove_parent_logs(self, claim: Claim) -> None:
        if claim.parents:
            remove_folder(claim.log, claim.run)


def _limited(claim: Claim, outcome: Outcome, report: ResourceReport) -> Outcome:
    """The outcome, or that it exceeded one of its limits."""
    if claim.limits is None or not isinstance(outcome, Exited | Signalled):
        return outcome
    limit = exceeded_limit(claim.limits, outcome, report)
    return outcome if limit is None else Limited(limit, outcome)
