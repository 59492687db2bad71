"""The loop of a worker.

Each turn: note which runs have ended, terminate those that are overdue, settle all that ended and claim for all free slots in one
transaction, start what was claimed, run the maintenance tasks that are due. Then sleep until a run ends, another process writes to the
store, a signal arrives, or something is due.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Final

from queuectl import errors, events, paths
from queuectl.clock import Clock
from queuectl.jobs.model import Claim
from queuectl.jobs.queue_limits import split_slots
from queuectl.jobs.states import is_final
from queuectl.settings import Settings
from queuectl.store.types import ClaimRequest, Exchange, OutputPiece, StopMode
from queuectl.webhooks.rules import WORKER_SLOTS
from queuectl.worker.config import MaintenanceTask, WorkerConfig, WorkerContext
from queuectl.worker.executor import Executor
from queuectl.worker.heartbeat import Heartbeat
from queuectl.worker.launcher import Launcher
from queuectl.worker.output_sync import PARENTS_PROBLEM, OutputSync, ParentLogs
from queuectl.worker.run import WorkerRun
from queuectl.worker.signals import SignalPipe
from queuectl.worker.store_retry import RETRY_EVERY, HasFileno, NextTurn, StoreRetry
from queuectl.worker.watchdog import SupervisorWatchdog

MAX_SLEEP: Final = 3600.0
SLOW_STORE: Final = 0.05  # if a call takes longer, maintenance leaves most of the time to jobs
JOBS_SHARE: Final = 3  # seconds for jobs, for each second of maintenance with such a store
MIN_STANDBY_WAIT: Final = 0.002  # of the standby thread between two turns
START_PATIENCE: Final = 30.0  # as long as a command waits for a locked store; a worker that serves waits without limit
MAX_LATENESS: Final = 1.0  # of a turn, in seconds: if it is later, this process may have been stopped
ASK_AGAIN: Final = 1.0  # whether there is still a reason to leave a task to other workers


class Worker:
    def __init__(
        self,
        config: WorkerConfig,
        context: WorkerContext,
        *,
        launcher: Launcher,
        signals: SignalPipe,
        tasks: Sequence[MaintenanceTask] = (),
    ) -> None:
        self._config = config
        self._context = context
        self._store = context.store
        self._signals = signals
        self._settings_source = _SettingsSource(context)
        self._settings = self._settings_source.latest
        self._slots = config.slots or self._settings.worker_count
        max_webhooks = WORKER_SLOTS if config.has_webhook_slots else 0
        self._executor = Executor(context, launcher, self._settings, max_webhooks=max_webhooks)
        self._watchdog = SupervisorWatchdog(self._executor, context)
        self._output_sync = OutputSync() if context.store.is_shared else None
        self._away = nullcontext if context.standby is None else context.standby.away
        self._retry = StoreRetry(context.clock, context.emit, away=self._away)
        self._parent_logs = ParentLogs(context.store, host=config.host, retry=self._retry)
        self._maintenance = _Maintenance(tasks, self._retry)
        self._heartbeat = Heartbeat(config, context, signals=signals, retry=self._retry)
        self._logs = paths.logs(config.home)
        self._queue_credits = [0] * len(config.weights or ())
        self._stop_mode: StopMode | None = None
        self._may_have_jobs = self._may_have_webhooks = True  # in the store, to claim
        self._is_undecided = False  # some dependencies are not resolved yet
        self._jobs_done = 0
        now = context.clock.monotonic()
        self._last_heartbeat = self._last_turn = now
        self._is_unsure = False  # this process was stopped for so long that other workers may have taken our jobs
        self._is_starting = False  # the loop is about to start what was claimed
        self._has_announced_stop = False  # the store knows that we are about to stop
        self._poll_at = now
        self._maintenance_at = 0.0
        self._retry_at = 0.0  # after an error of the store: not before
        self._next_due = _NextDue(context.clock)

    def run(self, on_ready: Callable[[], None]) -> bool:
        """Work until stopped, drained or idle for too long. Returns whether to restart: then running jobs continue, and the next worker of
        our name adopts them. Raises only if the store is gone for good."""
        config, clock = self._config, self._context.clock
        self._heartbeat.register(self._slots, patience=START_PATIENCE)
        self._context.emit(events.WorkerStarted(config.id, config.pid, self._slots, config.queues))
        on_ready()
        standby = self._context.standby
        try:
            with nullcontext() if standby is None else standby.serving(self._standby_turn):
                self._handle_signals(clock.monotonic())
                # First adopt what dead workers have left running: it takes slots.
                self._run_maintenance(clock.monotonic())
                while True:
                    self._turn(clock.monotonic())
                    # Before every sleep: a queue that has just been drained does not wake us.
                    if self._is_done():
                        break
                    self._sleep()
                if self._stop_mode is StopMode.RESTART:
                    return True
                self._heartbeat.deregister()
        finally:
            self._heartbeat.close()
        self._context.emit(events.WorkerStopped(self._jobs_done, len(self._executor.completer)))
        return False

    def _turn(self, now: float) -> None:
        self._notice_absence(now)
        if self._is_unsure and self._send_heartbeat(now):
            self._is_unsure = False
        self._watch_runs(now)
        if self._stop_mode is not None and not self._has_announced_stop:
            self._has_announced_stop = True
            self._call_heartbeat()
        if not self._is_unsure:
            self._start(())
            self._executor.release_stale(now)
            self._sync(self._context.clock.monotonic())
            self._run_maintenance(self._context.clock.monotonic())

    def _standby_turn(self) -> NextTurn:
        """A turn of the standby thread, without the store: the loop waits for it. What is to be written waits for the loop."""
        now = self._context.clock.monotonic()
        self._notice_absence(now)
        if self._is_starting:  # else a slot could be assigned twice
            return NextTurn((), RETRY_EVERY)
        self._handle_signals(now)
        self._watch_runs(now)
        if not self._is_unsure and self._heartbeat.fresh_until(self._settings):
            self._executor.start((), slots=self._slots, ours_until=lambda: self._heartbeat.fresh_until(self._settings))
        again = self._context.processes.poll_again_in()
        times = [
            *self._executor.local_wake_times(),
            self._watchdog.check_at,
            math.inf if again is None else now + again,
        ]
        sources: list[HasFileno] = [
            self._signals,
            self._context.processes,
            *self._executor.pending_secrets.sources,
        ]
        return NextTurn(sources, max(min(times) - now, MIN_STANDBY_WAIT))

    def _notice_absence(self, now: float) -> None:
        # A store that does not answer is another matter: then time limits are kept, and jobs continue.
        if now - self._last_turn > self._settings.lease_ms / 1000:
            self._is_unsure = True
        if now - self._last_turn > self._settings.heartbeat_ms / 1000 + MAX_LATENESS:
            self._watchdog.note_absence(now)
        self._last_turn = now

    def _watch_without_store(self) -> None:
        now = self._context.clock.monotonic()
        self._handle_signals(now)
        self._watch_runs(now)

    def _watch_runs(self, now: float) -> None:
        """All that is to be done about them whether or not the store answers."""
        if self._signals.stops >= 3:
            self._executor.kill_all(now)
        self._executor.update(now)
        if now >= self._watchdog.check_at or not self._context.processes.has_supervisor:
            self._watchdog.check(now, self._settings)
        if not self._is_unsure:
            self._executor.terminate_overdue(now)

    # ── stopping ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _is_done(self) -> bool:
        if self._stop_mode is StopMode.RESTART and self._executor.can_restart:
            return True
        if self._executor:
            return False
        if self._retry.is_fatal and self._retry.last is not None:
            if self._retry.is_outdated:
                self._heartbeat.deregister()
            raise self._retry.last
        if self._executor.completer and self._signals.stops < 3:  # then the next worker finds out how far we got
            return False
        if self._stop_mode is not None:
            return True
        if self._may_claim(self._executor.free_slots(self._slots)):
            return False
        idle = self._context.clock.monotonic() - self._executor.last_active
        if self._config.idle_timeout is not None and idle >= self._config.idle_timeout:
            return True
        return self._config.drain and bool(self._retry.read(lambda: self._store.is_drained(self._config.served_queues)))

    def _handle_signals(self, now: float) -> None:
        self._signals.drain()
        if (mode := self._signals.stop_mode) is not None:
            self._stop(mode, now)

    def _stop(self, mode: StopMode, now: float) -> None:
        if self._stop_mode in (mode, StopMode.NOW) or (self._stop_mode is not None and mode is StopMode.RESTART):
            return
        self._stop_mode = mode
        self._executor.release_prefetched()
        running, unwritten = len(self._executor), len(self._executor.completer)
        if mode is StopMode.RESTART:
            self._context.emit(events.WorkerRestarting(running))
        else:
            self._context.emit(events.WorkerStopping(running, mode is StopMode.NOW, unwritten))
        if mode is StopMode.NOW:
            self._executor.release_all(now)

    # ── the store ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _sync(self, now: float) -> None:
        """Settle, claim and start. Where there is more of it, the next sleep has no duration: signals are handled in between."""
        if now < self._retry_at:
            return
        starts = self._executor.unrecorded_starts(now)
        printed = [] if self._output_sync is None else self._output_sync.printed(self._executor.runs.active, now)
        free = self._free_slots(now)
        if not (starts or printed or (self._has_more(free) and now >= self._executor.settle_at(self._slots))):
            return
        written = self._exchange(starts, printed, free)
        if written is None:
            for run in starts:
                run.is_start_recorded = False
            self._retry_at = now + RETRY_EVERY
            return
        self._note_exchange(written)
        slots, webhooks = free
        # While starts are paused, nothing was asked for, and nothing is known.
        is_paused = now < self._executor.start_pause.until
        self._may_have_jobs = written.more or is_paused or (self._may_have_jobs and not slots)
        self._may_have_webhooks = written.more_webhooks or (self._may_have_webhooks and not webhooks)
        self._is_undecided = written.undecided
        claims: Sequence[Claim] = written.claims
        if any(claim.parents for claim in claims):
            claims, unready = self._parent_logs.fetch(claims)
            self._executor.put_off(unready, PARENTS_PROBLEM)
        self._start(claims)

    def _free_slots(self, now: float) -> tuple[int, int]:
        """How many jobs and webhook deliveries to claim."""
        may_start = self._stop_mode is None and now >= self._executor.start_pause.until
        return self._executor.free_slots(self._slots) if may_start else (0, 0)

    def _may_claim(self, free: tuple[int, int]) -> bool:
        """Whether there may be something to claim for this many free slots and webhook deliveries."""
        slots, webhooks = free
        return bool((slots and self._may_have_jobs) or (webhooks and self._may_have_webhooks))

    def _has_more(self, free: tuple[int, int] | None = None) -> bool:
        """Whether there is something to settle or to claim."""
        if self._executor.completer or self._is_undecided:
            return True
        return self._may_claim(self._free_slots(self._context.clock.monotonic()) if free is None else free)

    def _claim_request(self, free: tuple[int, int]) -> ClaimRequest | None:
        """What to claim: from the queues in their order, or by weight. Weights decide which queue goes first; no slot stays empty for them."""
        slots, webhooks = free
        if not (slots or webhooks):
            return None
        config, shares = self._config, None
        if config.weights is not None and slots:
            shares = tuple(split_slots(config.weights, self._queue_credits, slots))
        return ClaimRequest(slots, config.queues, config.host, self._logs, shares, webhooks)

    def _start(self, claims: Sequence[Claim]) -> None:
        self._executor.start(claims, slots=self._slots, ours_until=self._ours_until)

    def _ours_until(self) -> float | None:
        self._is_starting = True
        try:
            return self._heartbeat.ensure_fresh(self._call_heartbeat, self._settings)
        finally:
            self._is_starting = False

    def _exchange(
        self, starts: Sequence[WorkerRun], printed: Sequence[WorkerRun], free: tuple[int, int]
    ) -> Exchange | None:
        config, clock = self._config, self._context.clock
        now = clock.monotonic()
        # All of it is collected first: while the store works on it, more runs may end.
        started = [run.as_start(now) for run in starts]
        for run in starts:  # until the standby thread notices its first output
            run.is_start_recorded = True
        ended, limit = [*self._executor.completer], self._settings.output_limit
        ends = [end._replace(age=now - end.age, by=config.actor) for end in ended]
        pieces: Sequence[OutputPiece] | None = ()
        if (sync := self._output_sync) is not None:
            pieces = self._retry.read(lambda: sync.pieces(printed, ended, limit=limit))
        if pieces is None:
            return None
        claim = self._claim_request(free)
        written = self._retry.write(
            lambda: self._store.claims.exchange(config.id, starts=started, outputs=pieces, ends=ends, claim=claim)
        )
        if written is not None:
            self._executor.note_exchange(clock.monotonic() - now)
        return written

    def _note_exchange(self, written: Exchange) -> None:
        self._executor.recorded(end.claim.token for end, _ in written.settled)
        self._executor.refused(end.claim.token for end in written.lost)
        if self._output_sync is not None:
            self._output_sync.note(self._executor.tokens)
        for end, settlement in written.settled:
            self._context.emit(events.JobEnded(end.claim, settlement, end.duration, end.last_output))
        for end in written.lost:
            self._context.emit(events.JobLost(end.claim))
        if any(end.claim.hooks for end, _ in written.settled):
            self._maintenance.hint()  # there may be webhooks to enqueue
        self._jobs_done += sum(is_final(settlement.state) for _, settlement in written.settled)
        self._next_due.set(written.next_due_ms)

    # ── maintenance ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _run_maintenance(self, now: float) -> None:
        if now - self._last_heartbeat >= self._settings.heartbeat_ms / 1000 and now >= self._retry_at:
            self._send_heartbeat(now)
        if now < self._next_maintenance():
            return
        clock = self._context.clock
        began = clock.monotonic()
        if now >= self._poll_at:
            self._poll(now)
        if self._executor.lost and not self._executor.is_terminating_lost and now >= self._retry_at:
            self._give_back_lost(now)
        self._may_have_webhooks |= self._maintenance.step(
            now, has_priority=lambda: clock.monotonic() - began > SLOW_STORE and self._has_more()
        )
        # With a store that takes long to answer, all of this takes seconds: most of the time is for the jobs that wait.
        ended = clock.monotonic()
        self._maintenance_at = ended + JOBS_SHARE * (ended - began) if ended - began > SLOW_STORE else 0.0
        if self._executor.adopt(self._context.adoptions):
            self._on_wakeup(now)  # one of them may have been cancelled meanwhile

    def _next_maintenance(self) -> float:
        """The earliest time for maintenance: not at once again, if there are jobs to care for and the store is slow."""
        return self._maintenance_at if self._executor or self._has_more() else 0.0

    def _poll(self, now: float) -> None:
        """In case a wake-up was lost, or the wall clock has jumped past a due time."""
        self._poll_at = now + self._settings.poll_interval_ms / 1000
        self._context.processes.reap_orphans()
        if has_changed := self._retry.read(self._store.changed):
            self._maintenance.hint()
            self._on_wakeup(now)
        if self._retry.is_outdated:
            self._stop(StopMode.FINISH, now)
        # Webhooks not at every wake-up: with all slots taken, we would ask for nothing else.
        if has_changed or self._next_due.is_past:
            self._may_have_jobs = self._may_have_webhooks = True

    def _on_wakeup(self, now: float) -> None:
        """Another process has written to the store: there may be jobs, or a request to cancel or stop. Maintenance tasks wait for the next
        poll: most writes are none of their business."""
        self._may_have_jobs = True
        orders = self._retry.read(lambda: self._store.claims.orders(self._config.id))
        if orders is None or not orders.known:  # the next heartbeat notices it
            return
        self._executor.cancel(orders.cancels, now)
        if orders.stop is not None:
            self._stop(orders.stop, now)

    def _send_heartbeat(self, now: float) -> bool:
        """And apply changed settings. False if the store could not be asked."""
        known = self._call_heartbeat()
        if known is None:
            self._retry_at = now + RETRY_EVERY
            return False
        self._last_heartbeat = now
        if not known:
            self._register_again(now)
        with self._away():
            settings = self._settings_source.load()
        self._settings = self._executor.apply_settings(settings)
        self._poll_at = (
            now  # whatever the interval: a store that a newer queuectl has changed is noticed within a heartbeat
        )
        slots = self._config.slots or self._settings.worker_count
        if slots != self._slots:
            self._slots, self._may_have_jobs = slots, True
            self._context.emit(events.WorkerResized(slots))
            self._call_heartbeat()  # or more would be busy than there are slots, until the next heartbeat
        return True

    def _register_again(self, now: float) -> None:
        """We were declared lost: our jobs belong to other workers."""
        self._context.emit(events.DeclaredLost(self._executor.abandon(now)))
        self._heartbeat.close()
        self._heartbeat.register(self._slots, patience=math.inf, meanwhile=self._watch_without_store)

    def _give_back_lost(self, now: float) -> None:
        lost = dict(self._executor.lost)
        if self._heartbeat.give_back(lost, max_crashes=self._settings.max_crashes):
            self._executor.recorded(lost)
        else:
            self._retry_at = now + RETRY_EVERY

    def _call_heartbeat(self) -> bool | None:
        return self._heartbeat.send(slots=self._slots, stopping=self._stop_mode is not None)

    # ── sleep ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _sleep(self) -> None:
        self._context.processes.flush()
        again = self._context.before_sleep()
        now = self._context.clock.monotonic()
        seconds = min(min(self._wake_times(now)) - now, MAX_SLEEP)
        sources: tuple[HasFileno, ...] = (
            self._heartbeat.wakeup,
            self._signals,
            self._context.processes,
            *self._executor.pending_secrets.sources,
        )
        ready = self._context.wait(sources, max(0.0, seconds if again is None else min(seconds, again)))
        now = self._context.clock.monotonic()
        if self._signals in ready:
            self._handle_signals(now)
        if self._heartbeat.wakeup in ready:
            with self._away():
                was_notified = self._heartbeat.wakeup.drain()
            if was_notified:
                self._on_wakeup(now)
        if self._next_due.take(now):
            self._may_have_jobs = self._may_have_webhooks = True

    def _wake_times(self, now: float) -> Iterator[float]:
        """All times at which something is due."""
        yield max(self._last_heartbeat + self._settings.heartbeat_ms / 1000, self._retry_at)
        yield max(self._poll_at, self._next_maintenance())
        if (again := self._context.processes.poll_again_in()) is not None:
            yield now + again
        yield self._watchdog.check_at
        yield max(self._maintenance.wake_at, self._next_maintenance())
        settle_at = max(self._retry_at, self._executor.settle_at(self._slots))
        for moment in self._executor.wake_times():
            yield max(moment, self._retry_at)
        if self._output_sync is not None and self._executor:
            yield max(self._output_sync.look_at, self._retry_at)
        if self._executor.completer or self._is_undecided:
            yield settle_at
        free = self._executor.free_slots(self._slots)
        if self._stop_mode is None and any(free):
            if self._may_claim(free):
                yield max(self._executor.start_pause.until, settle_at)
            if self._next_due.at is not None:
                yield self._next_due.at
        if self._config.idle_timeout is not None and not self._executor:
            yield max(self._executor.last_active + self._config.idle_timeout, now + RETRY_EVERY)


class _Maintenance:
    """Runs one step of each task when it is due."""

    def __init__(self, tasks: Sequence[MaintenanceTask], retry: StoreRetry) -> None:
        self._due = dict.fromkeys(tasks, 0.0)
        self._retry = retry

    def step(self, now: float, *, has_priority: Callable[[], bool]) -> bool:
        """Run a step of each task that is due, the most overdue first; only one if `has_priority` says that something else is more important.
        Returns whether there is more to do than before."""
        has_more = False
        due = sorted((task for task, at in self._due.items() if now >= at), key=self._due.__getitem__)
        for task in due:
            if task.adds_work and self._retry.is_outdated:
                self._due[task] = now + ASK_AGAIN
                continue
            again = self._retry.read(lambda: task.step(now))  # noqa: B023 - called at once
            self._due[task] = now + RETRY_EVERY if again is None else again
            has_more |= task.adds_work and self._due[task] <= now  # a task that has done something looks again at once
            if has_priority():
                break
        return has_more

    def hint(self) -> None:
        """The store has changed: there may be more to do than was known."""
        for task in self._due:
            if task.adds_work:
                self._due[task] = 0.0

    @property
    def wake_at(self) -> float:
        return min(self._due.values(), default=math.inf)


class _NextDue:
    """When the next waiting job comes due, by both clocks: the monotonic one wakes us, and the wall clock may jump past it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.at: float | None = None
        self._at_ms: int | None = None

    def set(self, in_ms: int | None) -> None:
        self.at = None if in_ms is None else self._clock.monotonic() + in_ms / 1000
        self._at_ms = None if in_ms is None else self._clock.now_ms() + in_ms

    def take(self, now: float) -> bool:
        """Whether it is due, by the monotonic clock. True only once."""
        if self.at is None or now < self.at:
            return False
        self.at = None
        return True

    @property
    def is_past(self) -> bool:
        """By the wall clock."""
        return self._at_ms is not None and self._clock.now_ms() >= self._at_ms


class _SettingsSource:
    def __init__(self, context: WorkerContext) -> None:
        self._context = context
        self.latest = context.load_settings()
        self._logged: str | None = None  # what was wrong with them

    def load(self) -> Settings:
        """As they are now; as they were, while something is wrong with them."""
        try:
            self.latest = self._context.load_settings()
            self._logged = None
        except (errors.UsageError, errors.Unavailable) as exc:
            if exc.message != self._logged:  # once, not at every heartbeat
                self._logged = exc.message
                self._context.emit(events.StoreTrouble(exc.message))
        return self.latest
