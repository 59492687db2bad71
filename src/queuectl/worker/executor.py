"""The runs of a worker: start them, watch them, terminate them. Knows processes, not the store.

Claims that wait for a slot or a secret are in slots.py; the states of a run, and ends that are not recorded yet, in run.py.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import signal
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from queuectl.events import JobAdopted, JobStarted
from queuectl.jobs.model import Claim
from queuectl.jobs.outcome import (
    Cancelled,
    GivenBack,
    NotStarted,
    Outcome,
    Released,
)
from queuectl.process.adopted import Adoption, UnknownExit
from queuectl.process.client import RunExit, Started
from queuectl.process.model import Child, ProcessInfo
from queuectl.process.spawn import CannotSpawn, StartExpired, StartUnrecorded, StartWithdrawn
from queuectl.settings import Settings
from queuectl.store.types import Span
from queuectl.worker.config import WorkerContext
from queuectl.worker.launcher import Launcher
from queuectl.worker.run import Completer, Runs, RunState, Why, WorkerRun
from queuectl.worker.slots import (
    SETTLE_TOGETHER,
    SETTLE_WITHIN,
    WEBHOOK_SLOTS_FROM,
    PendingSecrets,
    Prefetch,
    Quarantine,
    WebhookSlots,
)
from queuectl.worker.store_retry import RefusalReporter, StartPause

# A start is written to the store with the next exchange, or after this time: short jobs never need it.
RECORD_AFTER: Final = 0.02
START_BATCH_SIZE: Final = 16
NO_SLOT: Final = "its worker had no slot for it"  # why a claim was given back
CHECK_EVERY: Final = 0.02  # whether all processes of a run that is being terminated are gone
MAX_LOST_PLACES: Final = 512  # in the journal, which has 2,047


class Executor:
    def __init__(
        self, context: WorkerContext, launcher: Launcher, settings: Settings, *, max_webhooks: int = 0
    ) -> None:
        self.settings = settings
        context.processes.limit_logs(settings.log_limit)
        self.completer = Completer(context, settings)
        # By token: runs that were taken from us, see `abandon`, or whose end is unknown.
        self.lost: dict[str, Span] = {}
        self.last_active = context.clock.monotonic()
        self.start_pause = StartPause(context.clock, context.emit)
        self._context = context
        self._processes = context.processes
        self._launcher = launcher
        self.runs = Runs()
        self._refusals = RefusalReporter(context.clock, context.emit)
        self._webhooks = WebhookSlots(limit=max_webhooks)
        self.pending_secrets = PendingSecrets(context.secrets, context.clock)
        self._prefetch = Prefetch(context.clock)
        self._quarantine = Quarantine()
        # By token, of the lost runs: their records in the journal stay until the store has their ends, or they would count as unstarted.
        self._lost_places: dict[str, int] = {}
        self._is_supervisor_lost = False

    def __len__(self) -> int:
        return self._busy + len(self._webhooks)

    @property
    def _busy(self) -> int:
        return self.runs.live_count + len(self.pending_secrets) + len(self._quarantine) - len(self._webhooks)

    def free_slots(self, slots: int) -> tuple[int, int]:
        """How many claims to request: of jobs, and of webhook deliveries."""
        if self._is_supervisor_lost:
            return 0, 0
        return max(0, slots + self._prefetch.size(slots) - self._busy), self._webhooks.free

    def apply_settings(self, settings: Settings) -> Settings:
        self._processes.limit_logs(settings.log_limit)
        self.settings = self.completer.settings = settings
        return settings

    @property
    def tokens(self) -> list[str]:
        """Of the runs whose ends the store does not have."""
        return [*(run.claim.token for run in self.runs.active), *(end.claim.token for end in self.completer)]

    # ── starting ────────────────────────────────────────────────────────────────────────────────────────────────────

    def start(self, claims: Sequence[Claim], *, slots: int, ours_until: Callable[[], float | None]) -> None:
        """Request a run of each: the supervisor starts them in this order, as far as there are slots. Give them back if they may belong to
        another worker by now. `ours_until`: until when they do not, by the monotonic clock; None if they may already."""
        if self._is_supervisor_lost:
            self.release_prefetched(claims)
            return
        elsewhere = sum(run.journal is not None or run.is_orphan for run in self.runs.active)
        self._processes.limit_runs(max(0, slots - elsewhere))
        if not (claims or self.pending_secrets or self._quarantine):
            return
        claims, webhooks = self._webhooks.split(claims)
        claims = [*self.pending_secrets.ready(claims, may_have=self._launcher.may_have), *webhooks]
        claims = self._quarantine.admit(claims, self._live_runs, self._context.clock.monotonic())
        prefetched = self._beyond_slots(claims, slots)
        for first in range(0, len(claims), START_BATCH_SIZE):
            placed = self._assign(claims[first : first + START_BATCH_SIZE])
            prepared, refused = self._launcher.prepare_all(placed, secrets=self.pending_secrets.take)
            for claim, outcome in refused:
                self._webhooks.remove(claim)
                self.pending_secrets.forget(claim)
                self.completer.add_unstarted(claim, outcome)
            # Asked last: this process may have been stopped for long since they were claimed.
            start_by = ours_until() if prepared else None
            if start_by is None:
                for one in prepared:
                    self._webhooks.remove(one.claim)
                    self.completer.add_unstarted(one.claim, GivenBack("its worker was stopped for too long"))
                continue
            now = self._context.clock.monotonic()
            for one in prepared:
                token, request = one.claim.token, one.request
                self.runs.add(WorkerRun(one.claim, request.slot, request.place, now, is_prefetched=token in prefetched))
            self._processes.start([one.request._replace(start_by=start_by) for one in prepared])
            self._note_started()

    def _live_runs(self) -> list[tuple[str, float]]:
        return [(run.claim.id, run.began) for run in self.runs.live]

    def _beyond_slots(self, claims: Sequence[Claim], slots: int) -> Sequence[str]:
        """The tokens of those that have to wait for a slot."""
        live = sum(run.slot is None for run in self.runs.live)
        jobs = [claim.token for claim in claims if not self._webhooks.is_webhook(claim)]
        return jobs[max(0, slots - live) :]

    def _remove_waiting(self, is_meant: Callable[[Claim], bool] = lambda _: True) -> list[Claim]:
        """Take out claims that were not requested from the supervisor yet."""
        held = self._quarantine.remove(is_meant)
        for claim in held:
            self.pending_secrets.forget(claim)
        return [*self.pending_secrets.remove(is_meant), *held]

    def _note_started(self) -> None:
        for answer in self._processes.started():
            self._note_start(answer)
        for token, log_from in self._processes.output().items():
            if (run := self.runs.get(token)) is not None:
                run.log_from, run.is_start_recorded = log_from, False

    def _note_start(self, answer: Started) -> None:
        if (run := self.runs.get(answer.token)) is None:  # of a supervisor that was killed since
            return
        self.last_active = self._context.clock.monotonic()
        run.began = answer.at
        if isinstance(answer.child, CannotSpawn):
            self._note_unstarted(run, answer.child, answer.at)
            return
        self._prefetch.note_start()
        self.runs.move(run, RunState.RUNNING)
        run.child, run.has_exited = answer.child, False
        run.deadline = None if run.claim.timeout_ms is None else answer.at + run.claim.timeout_ms / 1000
        self.start_pause.end()
        self._context.emit(JobStarted(run.claim, answer.child.pid))
        if (why := run.why) is not None:  # asked for while it was being started
            run.why = None
            self._terminate([run], why, self.last_active)

    def _note_unstarted(self, run: WorkerRun, problem: CannotSpawn, at: float) -> None:
        self.runs.remove(run)
        self._webhooks.remove(run.claim)
        if run.is_lost:
            return
        outcome: Outcome
        if run.why is Why.CANCEL:
            outcome = Cancelled(None)
        elif isinstance(problem, StartWithdrawn):
            outcome = GivenBack(NO_SLOT)
            self._prefetch.note_stale()
        elif isinstance(problem, StartExpired):
            outcome = GivenBack(str(problem))
        elif isinstance(problem, StartUnrecorded):
            self.start_pause.begin(f"{run.claim.id}: {problem}")
            outcome = GivenBack(str(problem))
        else:
            outcome = NotStarted(str(problem))
        self.completer.add_unstarted(run.claim, outcome, began=at)

    def adopt(self, adoptions: deque[Adoption]) -> bool:
        """Adopt runs of dead workers. There may be more of them than slots. Whether there were any."""
        before = len(adoptions)
        while adoptions:
            try:
                self._adopt(adoptions[0])
            except OSError as exc:  # it continues, and is adopted in the next turn
                self._refusals.report(exc)
                break
            adoptions.popleft()
        return len(adoptions) < before

    def _adopt(self, adoption: Adoption) -> None:
        claim, record = adoption.claim, adoption.record
        child = Child(record.pid, record.started)
        age = self._processes.adopt(child, claim.token, adoption.journal)
        self.last_active = self._context.clock.monotonic()
        ((_, slot, place),) = self._assign([claim])
        claim = self._launcher.adopt(adoption, place=place)
        began = self.last_active - age
        # A run that has ended by itself must not time out.
        has_ended = self._processes.poll(child) is not None
        deadline = None if has_ended or claim.timeout_ms is None else began + claim.timeout_ms / 1000
        run = WorkerRun(claim, slot, place, began, deadline, RunState.RUNNING, child, record.log_from, adoption.journal)
        self.runs.add(run)
        self._context.emit(JobAdopted(claim, adoption.worker))
        if adoption.termination is not None:
            self._launcher.write_termination(run.place, claim.token, adoption.termination)
            self._terminate([run], Why(adoption.termination.reason), self.last_active, is_written=True)

    def recorded(self, tokens: Iterable[str]) -> None:
        """The store has the ends of these."""
        known = frozenset(tokens)
        self.completer.remove(known)
        journals = set[str]()
        for token in known:
            self.lost.pop(token, None)
            self._lost_places.pop(token, None)
            if (run := self.runs.get(token)) is not None and run.state is RunState.EXITED:
                self.runs.remove(run)
                assert run.child is not None
                self._processes.recorded(run.child)
                if run.journal is not None:
                    journals.add(run.journal)
        for journal in journals - {run.journal for run in self.runs} if journals else ():
            with contextlib.suppress(OSError):
                os.unlink(journal)

    def refused(self, tokens: Iterable[str]) -> None:
        """The store did not take the ends of these: another worker has the jobs, or is about to rescue them and reads our journal."""
        tokens = list(tokens)
        places = {token: run.place for token in tokens if (run := self.runs.get(token)) is not None}
        self.recorded(tokens)
        self._keep_places(places)

    def _keep_places(self, places: Mapping[str, int]) -> None:
        """A rescue is over long before as many others are lost."""
        self._lost_places |= places
        for token in list(self._lost_places)[:-MAX_LOST_PLACES]:
            del self._lost_places[token]

    def release_prefetched(self, claims: Iterable[Claim] | None = None) -> None:
        """Start none of these; None: none of those that wait for a slot."""
        if claims is None:
            self._withdraw(self.runs.in_state(RunState.STARTING))
            claims = self._remove_waiting()
        for claim in claims:
            self.completer.add_unstarted(claim, GivenBack(NO_SLOT))

    def _withdraw(self, runs: Iterable[WorkerRun]) -> None:
        """Ask the supervisor not to start these. Those that it has started meanwhile continue."""
        fresh = [run for run in runs if not run.is_withdrawn]
        for run in fresh:
            run.is_withdrawn = True
        self._processes.withdraw([run.claim.token for run in fresh])

    def put_off(self, claims: Iterable[Claim], why: str) -> None:
        """Start none of these, and nothing else for a while: a file that they need cannot be written or read here."""
        for claim in claims:
            self.start_pause.begin(f"{claim.id}: {why}")
            self.completer.add_unstarted(claim, Released(None, why))

    def _assign(self, claims: Sequence[Claim]) -> list[tuple[Claim, int | None, int]]:
        """For each a slot, if it is a webhook delivery, and a place in the journal, which also an end needs that is not recorded yet."""
        slots = _unused({run.slot for run in self.runs if run.slot is not None}, WEBHOOK_SLOTS_FROM)
        places = _unused({*(run.place for run in self.runs), *self._lost_places.values()}, 0)
        return [(claim, next(slots) if self._webhooks.add(claim) else None, next(places)) for claim in claims]

    def unrecorded_starts(self, now: float) -> list[WorkerRun]:
        """Runs of which the store should know that they have started."""
        return [run for run in self.runs.active if now - run.began >= RECORD_AFTER and run.is_start_unrecorded]

    # ── ending ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def update(self, now: float) -> None:
        """Note which runs have started and which have ended, and continue to terminate others."""
        self._note_started()
        try:
            ended = [
                (run, how)
                for run in self.runs.active
                if run.child is not None and (how := self._processes.poll(run.child)) is not None
            ]
            self._escalate_termination(now)
        except OSError as exc:  # a process that cannot be seen is not taken for dead
            self._refusals.report(exc)
            return
        for run, how in ended:
            if run.state is RunState.EXITED:  # meanwhile
                continue
            if isinstance(how, UnknownExit) and run.why is None:
                self._terminate([run], Why.UNKNOWN_EXIT, now)
                run.has_exited, run.check_at = True, now
            elif isinstance(how, RunExit) and _is_over(run, how):
                self._complete(run, how)
        self._quarantine.clear(
            lambda: (run.claim.id for run in self.runs.in_state(RunState.EXITED) if not run.is_orphan)
        )

    def _complete(self, run: WorkerRun, ended: RunExit | None) -> None:
        """`ended` None: unknown, but we have terminated it."""
        is_job = not self._webhooks.remove(run.claim)
        self.last_active = self._context.clock.monotonic()
        self.runs.move(run, RunState.EXITED)
        if run.is_lost or (run.why is Why.UNKNOWN_EXIT and (ended is None or ended.reason is not None)):
            self.runs.remove(run)
            self._keep_places({run.claim.token: run.place})
            if run.child is not None:
                self._processes.recorded(run.child)
            if not run.is_lost:
                self.lost[run.claim.token] = self.completer.close_lost_log(run.claim, run.log_from)
            return
        if ended is None:
            outcome = run.outcome(None)
        else:
            # It ended by itself if the supervisor says so: whatever we were about to do came too late.
            outcome = ended.how if ended.reason is None else run.outcome(ended.how)
            run.log_from = ended.log_from
        if run.child is None:
            self.runs.remove(run)
        self.completer.add_run(run, outcome, ended)
        if is_job:
            self._prefetch.note_duration(self.completer[-1].duration)

    # ── terminating ─────────────────────────────────────────────────────────────────────────────────────────────────

    def terminate_overdue(self, now: float) -> None:
        """Terminate runs that have exceeded their time limits."""
        late = [run for run in self.runs.active if run.deadline is not None and now >= run.deadline]
        self._terminate(late, Why.TIMEOUT, now)

    def cancel(self, tokens: Collection[str], now: float) -> None:
        if not tokens:
            return
        for claim in self._remove_waiting(lambda claim: claim.token in tokens):
            self.completer.add_unstarted(claim, Cancelled(None))
        self._terminate([run for run in self.runs if run.claim.token in tokens], Why.CANCEL, now)

    def release_all(self, now: float) -> None:
        self._terminate(self.runs, Why.RELEASE, now)

    def kill_all(self, now: float) -> None:
        """No more grace period for runs that are being terminated."""
        for run in self.runs.active:
            run.kill_at = run.check_at = now

    def abandon(self, now: float) -> int:
        """Terminate everything and write nothing about it: it belongs to other workers now. Returns how many runs that were.

        A worker of this host has terminated it already; one of another host could not.
        """
        self.release_prefetched()
        abandoned = self.runs.live
        claims = [end.claim for end in self.completer] + [run.claim for run in abandoned]
        self.lost |= {claim.token: Span(None, None) for claim in claims}
        self.completer.clear()
        for run in abandoned:
            run.is_lost = True
        self.release_all(now)
        return len(claims)

    def _terminate(self, runs: Iterable[WorkerRun], why: Why, now: float, *, is_written: bool = False) -> None:
        """Ask runs to end that are not being terminated already: those keep their first reason. SIGTERM to all processes of each, then
        SIGKILL after the grace period."""
        fresh = [run for run in runs if run.why is None and run.state in (RunState.STARTING, RunState.RUNNING)]
        for run in fresh:
            run.why = why
        self._withdraw(run for run in fresh if run.state is RunState.STARTING)
        running = [run for run in fresh if run.state is RunState.RUNNING]
        if not running:
            return
        grace = self.settings.kill_grace_ms / 1000
        for run in running:
            self.runs.move(run, RunState.TERMINATING)
            run.kill_at = now + grace
            run.check_at = now if run.has_exited else run.kill_at
            if not is_written:
                self._launcher.note_termination(run.place, run.claim.token, run.reason, run.journal)
        reasons = {run.child: run.reason for run in running if run.child is not None}
        self._processes.terminating(reasons)
        try:
            members = [process for some in self._members(running).values() for process in some]
        except OSError as exc:  # then their grace period begins without a signal
            self._refusals.report(exc)
            return
        self._processes.send(signal.SIGTERM, members)
        self._processes.send(signal.SIGCONT, members)  # a stopped process would not notice its SIGTERM

    def _escalate_termination(self, now: float) -> None:
        """Continue with runs that are being terminated. Checks only after the first process has ended, and after the grace period.

        A run is over when its first process has ended and no other one lives. Until then that process is not reaped: as a zombie it keeps
        its PID, and with it the number of the group, from being reused.
        """
        terminating = self.runs.in_state(RunState.TERMINATING)
        for run in terminating:
            if not run.has_exited and (run.child is None or self._processes.has_exited(run.child)):
                run.has_exited, run.check_at = True, now
        due = [run for run in terminating if now >= run.check_at and not run.is_finishing]
        for run in due:
            run.check_at = now + CHECK_EVERY
        members = self._members(due)
        for run in due:
            some = members[run.claim.token]
            # Also if none is seen: a pass over the process table misses a process that forks and exits meanwhile.
            if (now >= run.kill_at or not some) and run.child is not None:
                self._processes.kill_group(run.child)
            if now >= run.kill_at:
                self._processes.send(signal.SIGKILL, some)
            if not some and run.has_exited:
                self._finish(run, now)

    def _finish(self, run: WorkerRun, now: float) -> None:
        """No process of a run that we have terminated is left."""
        run.is_finishing, run.check_at = True, math.inf
        if run.journal is None and run.child is not None and not run.is_orphan:
            self._processes.finish(run.child)
            return
        ended = None if run.journal is None or run.child is None else self._processes.poll(run.child)
        if run.journal is not None and ended is None:
            run.is_finishing, run.check_at = False, now + CHECK_EVERY  # its supervisor is about to write its end
            return
        self._complete(run, ended if isinstance(ended, RunExit) else None)

    def _members(self, runs: Collection[WorkerRun]) -> Mapping[str, list[ProcessInfo]]:
        if not runs:
            return {}
        return self._processes.members({run.claim.token: run.child or Child(0, 0) for run in runs})

    # ── when the supervisor dies ────────────────────────────────────────────────────────────────────────────────────

    def supervisor_lost(self, now: float) -> int:
        """How the runs of a dead supervisor end cannot be known any more: terminate them. Returns how many there are.

        A job that ran alone, or was the only one to run also when the supervisor died before, counts as the cause, and its run as lost. The
        others are requeued. Until one of them has ended, or has run for a while, the next does not start.
        """
        self._is_supervisor_lost = True
        self.release_prefetched()
        self._release_never_started()
        orphans = [run for run in self.runs.live if run.journal is None]
        culprits = self._quarantine.blame(frozenset(run.claim.id for run in orphans))
        by_reason: dict[Why, list[WorkerRun]] = {}
        for run in orphans:
            run.is_orphan, run.is_finishing = True, False
            if run.state is RunState.TERMINATING:
                run.check_at = now
                continue
            if run.state is RunState.STARTING:  # it may have been started
                self.runs.move(run, RunState.RUNNING)
                run.has_exited = True
            why = Why.UNKNOWN_EXIT if run.claim.id in culprits else Why.SUPERVISOR_DIED
            by_reason.setdefault(run.why or why, []).append(run)
            run.why = None
        for reason, runs in by_reason.items():
            self._terminate(runs, reason, now)
        return len(orphans)

    def _release_never_started(self) -> None:
        """Give back what a dead supervisor had not started: the journal does not know it, and no process has its token."""
        begun = self._launcher.begun()
        if begun is None:
            return
        runs = [run for run in self.runs.in_state(RunState.STARTING) if run.claim.token not in begun]
        try:
            members = self._members(runs)
        except OSError as exc:
            self._refusals.report(exc)
            return
        for run in runs:
            if not members[run.claim.token]:
                self._note_unstarted(run, StartWithdrawn(NO_SLOT), self._context.clock.monotonic())

    def supervisor_restarted(self) -> None:
        self._is_supervisor_lost = False

    # ── times ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def release_stale(self, now: float) -> None:
        """Give back claims that have waited for a slot for too long."""
        stale = [run for run in self._waiting if now >= self._prefetch.stale_at(run.began)]
        self._withdraw(stale)

    @property
    def _waiting(self) -> list[WorkerRun]:
        """Runs that may wait for a slot."""
        starting = self.runs.in_state(RunState.STARTING)
        return [run for run in starting if run.is_prefetched and not run.is_withdrawn]

    def note_exchange(self, seconds: float) -> None:
        """An exchange with the store has taken this long."""
        self._prefetch.note_exchange(seconds)

    @property
    def can_restart(self) -> bool:
        """Whether the next worker finds everything in the journal: nothing is being started, terminated, or waits to be recorded."""
        are_all_running = len(self.runs.in_state(RunState.RUNNING)) == len(self.runs)
        return are_all_running and not (self.completer or self.lost)

    @property
    def is_terminating_lost(self) -> bool:
        return any(run.is_lost for run in self.runs.live)

    def settle_at(self, slots: int) -> float:
        """When to record ended runs: while others wait for a slot there is time, and several at once cost less."""
        if len(self.completer) >= max(slots, SETTLE_TOGETHER) or not self._waiting:
            return 0.0
        return self.completer.since + SETTLE_WITHIN if self.completer else math.inf

    def wake_times(self) -> Iterator[float]:
        yield from self.local_wake_times()
        yield min((self._prefetch.stale_at(run.began) for run in self._waiting), default=math.inf)
        for run in self.runs.active:
            if run.is_start_unrecorded:
                yield run.began + RECORD_AFTER

    def local_wake_times(self) -> Iterator[float]:
        """Of what can be done without the store."""
        yield from self.pending_secrets.wake_times()
        for run in self.runs.active:
            moment = run.deadline if run.why is None else run.check_at
            if moment is not None:
                yield moment
        yield self._quarantine.wake_time(self._live_runs)


def _is_over(run: WorkerRun, ended: RunExit) -> bool:
    """Whether nothing more is to be done about a run whose first process has ended."""
    if run.why is None or run.is_finishing:
        return True
    if run.is_lost:  # its job is given back, and may run again: nothing of this run may be left
        return False
    return ended.reason is None or run.journal is None


def _unused(taken: Collection[int], first: int) -> Iterator[int]:
    return (number for number in itertools.count(first) if number not in taken)
