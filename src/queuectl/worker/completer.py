"""Ends of runs and of claims that never started, until the store has them."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from typing import TYPE_CHECKING

from queuectl.events import StoreTrouble
from queuectl.jobs.model import Claim
from queuectl.jobs.outcome import Exited, Limited, Outcome, Settlement, Signalled, settle, settle_lost
from queuectl.jobs.resources import ResourceReport, exceeded_limit
from queuectl.jobs.retry import RetryPolicy
from queuectl.logs.parent_logs import remove_folder
from queuectl.logs.writer import end_log
from queuectl.process.client import RunExit
from queuectl.settings import Settings
from queuectl.store.types import End, Span
from queuectl.worker.config import WorkerContext

if TYPE_CHECKING:
    from queuectl.worker.run import WorkerRun


class Completer(list[End]):
    """`since`: when the first of them was added.

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
        return Span(log_from, log_to)

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
        self.append(End(claim, settlement, pid, began, duration, log_from, log_to, usage))

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
