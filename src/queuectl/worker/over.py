"""What is over, until the store knows."""

from __future__ import annotations

import contextlib
from collections.abc import Collection

from queuectl.events import StoreTrouble
from queuectl.jobs.model import Claim
from queuectl.jobs.outcome import NotStarted, Outcome, settle, settle_lost
from queuectl.jobs.resources import NO_REPORT, ResourceReport
from queuectl.jobs.retry import RetryPolicy
from queuectl.logs.files import begin_log, end_log, end_lost_log
from queuectl.logs.frames import start_line
from queuectl.logs.parents import remove_folder
from queuectl.settings import Settings
from queuectl.store.types import End, Span
from queuectl.worker.plan import World
from queuectl.worker.running import Running, by_limit


class Over(list[End]):
    """`since`: when the first of them was added.

    In an `End` that waits here `age` holds the moment its run began: how long ago that is, is said when it is written.
    """

    def __init__(self, world: World, settings: Settings, *, worker: str) -> None:
        super().__init__()
        self.settings = settings
        self.since = 0.0
        self._world = world
        self._worker = worker

    def add(
        self,
        claim: Claim,
        outcome: Outcome,
        *,
        began: float,
        pid: int | None,
        log_from: int | None,
        log_to: int | None = None,
        lasted: float | None = None,
        may_be_closed: bool = False,
        spent: ResourceReport = NO_REPORT,
    ) -> None:
        self._tidy(claim)
        clock = self._world.clock
        now = clock.monotonic()
        self.since = self.since if self else now
        age = now - began
        duration = age if lasted is None else lasted
        policy = RetryPolicy(self.settings.backoff_max_ms, self.settings.backoff_jitter)
        settlement = settle(claim, outcome, policy=policy, chance=self._world.chance())
        if log_from is not None and log_to is None:
            try:
                # When it ended: of a run that was adopted, that may be long ago.
                now_ms, limit = clock.now_ms() - round((age - duration) * 1000), self.settings.log_limit
                log_to = end_log(
                    claim.log,
                    log_from,
                    settlement,
                    duration=duration,
                    now_ms=now_ms,
                    limit=limit,
                    may_be_closed=may_be_closed,
                )
            except OSError as exc:
                # The job is over and its result stands; only the last line of its log is missing.
                problem = f"cannot write the end of {claim.log}: {exc.strerror}"
                self._world.emit(StoreTrouble(problem, is_retried=False))
        self.append(End(claim, settlement, pid, began, duration, log_from, log_to, spent.usage))

    def drop(self, tokens: Collection[str]) -> None:
        """The store knows how these ended."""
        self[:] = [end for end in self if end.claim.token not in tokens]

    def add_run(
        self,
        run: Running,
        outcome: Outcome,
        *,
        lasted: float | None,
        log_to: int | None,
        is_taken: bool,
        spent: ResourceReport,
    ) -> None:
        """One that had a process. `is_taken`: we were stopped, and it is not ours any more, nor is its log; the store will say so."""
        self.add(
            run.claim,
            by_limit(run.claim, outcome, spent),
            began=run.began,
            pid=run.child.pid,
            log_from=None if is_taken else run.log_from,
            log_to=log_to,
            lasted=lasted,
            may_be_closed=run.may_be_closed,
            spent=spent,
        )

    def add_unbegun(self, claim: Claim, outcome: Outcome) -> None:
        """One for which there is no process, and will be none. Of one that could not start its log says so."""
        log_from = self._begin_log(claim) if isinstance(outcome, NotStarted) else None
        self.add(claim, outcome, began=self._world.clock.monotonic(), pid=None, log_from=log_from)

    def _begin_log(self, claim: Claim) -> int | None:
        head = start_line(claim.run, worker=self._worker, now_ms=self._world.clock.now_ms())
        try:
            with begin_log(claim.log, head, is_first=claim.run == 1, limit=self.settings.log_limit) as log:
                return log.size
        except OSError:  # what its job lacks is told all the same
            return None

    def close_log_of_lost(self, claim: Claim, log_from: int) -> Span:
        """Its run has ended, and its keeper could not say how: as if its worker had taken it along. Where its output lies."""
        self._tidy(claim)
        settlement, now_ms = settle_lost(claim, self.settings.max_crashes), self._world.clock.now_ms()
        log_to, limit = None, self.settings.log_limit
        with contextlib.suppress(OSError):  # the job is worth more than the last line of its log
            log_to = end_lost_log(claim.log, log_from, settlement, now_ms=now_ms, limit=limit)
        return Span(log_from, log_to)

    def _tidy(self, claim: Claim) -> None:
        if claim.parents:
            remove_folder(claim.log, claim.run)
