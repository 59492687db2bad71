"""The worker: one process, one loop.

Each turn: note what ended, end what is overdue, settle all that ended and claim for all free slots in one transaction,
start what was claimed, do what is due for the house, then sleep until a child ends, the bell rings, a signal comes or
the next moment that matters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from queuectl import events
from queuectl.job.lifecycle import is_final
from queuectl.job.model import Claim
from queuectl.store.protocol import Exchange, StopMode
from queuectl.worker.aside import MOST as MOST_CALLS
from queuectl.worker.due import Due
from queuectl.worker.duties import Duties
from queuectl.worker.following import Following
from queuectl.worker.launch import Launcher
from queuectl.worker.look import Look, Rooms
from queuectl.worker.membership import Membership
from queuectl.worker.parents import PROBLEM, ParentLogs
from queuectl.worker.plan import Duty, Plan, World
from queuectl.worker.running import Running
from queuectl.worker.runs import Runs
from queuectl.worker.shares import Shares
from queuectl.worker.signals import SignalPipe
from queuectl.worker.stopping import Stopping, asked_by
from queuectl.worker.streaming import Streaming
from queuectl.worker.trouble import RETRY_EVERY, Trouble

LONGEST_SLEEP: Final = 3600.0
START_PATIENCE: Final = 30.0  # as long as any command waits for a locked store; once it serves, a worker waits for ever
FOR_EVER: Final = math.inf


class Worker:
    def __init__(
        self, plan: Plan, world: World, *, launcher: Launcher, signals: SignalPipe, duties: Sequence[Duty] = ()
    ) -> None:
        self._plan = plan
        self._world = world
        self._store = world.store
        self._signals = signals
        self._following = Following(world)
        self._settings = self._following.latest
        self._slots = plan.slots or self._settings.worker_count
        self._runs = Runs(world, launcher, self._settings, calls=MOST_CALLS if plan.calls_aside else 0)
        self._streaming = Streaming(is_shared=world.store.is_shared)
        self._trouble = Trouble(world.clock, world.emit)
        self._parent_logs = ParentLogs(world.store, host=plan.host, trouble=self._trouble)
        self._duties = Duties(duties, self._trouble)
        self._membership = Membership(plan, world, signals=signals, trouble=self._trouble)
        self._shares = Shares(plan)
        self._stopping = Stopping(self._runs, world.emit)
        self._look = Look()
        self._is_undecided = False  # not all have been told what became of their parents
        self._jobs_done = 0
        now = world.clock.monotonic()
        self._last_beat = self._last_turn = now
        self._is_unsure = False  # we were stopped for so long that others may have taken our jobs
        self._poll_at = now
        self._retry_at = 0.0  # after trouble: not before
        self._due = Due(world.clock)

    def run(self, on_ready: Callable[[], None]) -> bool:
        """Work until told to stop, drained or idle for too long. Returns whether we are to begin anew: then what runs goes
        on, and is found by who comes under our name. Raises only if the store is gone for good."""
        plan, clock = self._plan, self._world.clock
        self._membership.enrol(self._slots, patience=START_PATIENCE)
        self._world.emit(events.WorkerStarted(plan.id, plan.pid, self._slots, plan.queues))
        on_ready()
        try:
            self._keep_house(clock.monotonic())  # first what others have left running: it takes slots
            while True:
                now = clock.monotonic()
                # A store that cannot be asked is another matter: then we go on, and time is kept.
                self._is_unsure |= now - self._last_turn > self._settings.lease_ms / 1000
                if self._is_unsure and self._beat(now):
                    self._is_unsure = False
                self._last_turn = now
                self._mind_signals(now)
                self._runs.reap(now)
                if not self._is_unsure:
                    self._runs.end_overdue(now)
                    self._start(())
                    self._trade(clock.monotonic())
                    self._keep_house(clock.monotonic())
                # Asked before every sleep: a queue that has just been drained will not wake us.
                if self._is_done():
                    break
                self._sleep()
            if self._stopping.mode is StopMode.RESTART:
                return True
            self._membership.leave()
        finally:
            self._membership.close()
        self._world.emit(events.WorkerStopped(self._jobs_done, len(self._runs.over)))
        return False

    # ── when to go ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _is_done(self) -> bool:
        if self._stopping.mode is StopMode.RESTART and self._runs.are_as_written:
            return True
        if self._runs:
            return False
        if self._trouble.is_fatal and self._trouble.last is not None:
            if self._trouble.is_outdated:
                self._membership.leave()
            raise self._trouble.last
        if self._runs.over and self._signals.stops < 3:  # then whoever comes next finds out how far we got
            return False
        if self._stopping.mode is not None:
            return True
        if self._look.pays(*self._runs.rooms(self._slots)):
            return False
        idle = self._world.clock.monotonic() - self._runs.last_active
        if self._plan.idle_timeout is not None and idle >= self._plan.idle_timeout:
            return True
        return self._plan.drain and bool(self._trouble.ask(lambda: self._store.is_drained(self._plan.served)))

    def _mind_signals(self, now: float) -> None:
        if (mode := asked_by(self._signals)) is not None:
            self._begin_stop(mode, now)
        if self._signals.stops >= 3:  # somebody is in a great hurry
            self._runs.kill_all(now)

    def _begin_stop(self, mode: StopMode, now: float) -> None:
        if self._stopping.begin(mode, now):
            self._say_alive()

    # ── the store ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _trade(self, now: float) -> None:
        """Settle, claim and start. Where there is more of it, the next sleep is none: signals are heard in between."""
        if now < self._retry_at:
            return
        starts = self._runs.unrecorded(now)
        printed = self._streaming.look(self._runs.under_way, now)
        may_claim = self._stopping.mode is None and now >= self._runs.log_pause.until
        rooms = self._runs.rooms(self._slots) if may_claim else (0, 0)
        has_more = self._runs.over or self._is_undecided or self._look.pays(*rooms)
        if not (starts or printed or (has_more and now >= self._runs.settle_at(self._slots))):
            return
        written = self._exchange(starts, printed, rooms)
        if written is None:
            self._retry_at = now + RETRY_EVERY
            return
        self._note(written, starts)
        self._look.note(written, *rooms, again=now < self._runs.log_pause.until)
        self._is_undecided = written.undecided
        ready, unready = self._parent_logs.bring(written.claims)
        self._runs.put_off(unready, PROBLEM)
        self._start(ready)

    def _start(self, claims: Sequence[Claim]) -> None:
        self._runs.start(claims, slots=self._slots, are_ours=self._are_ours)

    def _are_ours(self) -> bool:
        return self._membership.is_sure(self._say_alive, self._settings)

    def _exchange(self, starts: Sequence[Running], printed: Sequence[Running], rooms: Rooms) -> Exchange | None:
        plan, now = self._plan, self._world.clock.monotonic()
        return self._trouble.attempt(
            lambda: self._store.exchange(
                plan.id,
                starts=[run.as_start(now) for run in starts],
                outputs=self._streaming.pieces(printed, self._runs.over, limit=self._settings.output_limit),
                ends=[end._replace(age=now - end.age, by=plan.actor) for end in self._runs.over],
                claim=self._shares.request(*rooms),
            )
        )

    def _note(self, written: Exchange, starts: Sequence[Running]) -> None:
        for run in starts:
            run.is_recorded = True
        self._runs.written(end.claim.token for end in self._runs.over)
        self._runs.over.clear()
        self._streaming.note(self._runs.under_way)
        for end, settlement in written.settled:
            self._world.emit(events.JobEnded(end.claim, settlement, end.duration))
        for end in written.lost:
            self._world.emit(events.JobLost(end.claim))
        if any(end.claim.hooks for end, _ in written.settled):
            self._duties.hint()  # somebody may be to be told
        self._jobs_done += sum(is_final(settlement.state) for _, settlement in written.settled)
        self._due.set(written.next_due_ms)

    # ── the house ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _keep_house(self, now: float) -> None:
        if now - self._last_beat >= self._settings.heartbeat_ms / 1000 and now >= self._retry_at:
            self._beat(now)
        if now >= self._poll_at:
            self._poll(now)
        if self._runs.forsaken and not self._runs.is_ending_lost and now >= self._retry_at:
            self._give_back(now)
        self._look.calls |= self._duties.step(now)
        if self._runs.take_in(self._world.foundlings):
            self._attend(now)  # one of them may have been called off meanwhile

    def _poll(self, now: float) -> None:
        """The net below the bell: a ring may be lost, and the wall clock may have jumped past a due time."""
        self._poll_at = now + self._settings.poll_interval_ms / 1000
        if has_changed := self._trouble.ask(self._store.changed):
            self._attend(now)
        if self._trouble.is_outdated:
            self._begin_stop(StopMode.FINISH, now)
        if has_changed or self._due.is_past:
            self._look.everywhere()  # for calls not at every ring: with all slots taken, we would ask for nothing else

    def _attend(self, now: float) -> None:
        """Somebody wrote: there may be work, a wish to cancel, or a wish that we stop."""
        self._look.jobs = True
        self._duties.hint()
        orders = self._trouble.ask(lambda: self._store.orders(self._plan.id))
        if orders is None or not orders.known:  # the next heartbeat sees to it
            return
        self._runs.cancel(orders.cancels, now)
        if orders.stop is not None:
            self._begin_stop(orders.stop, now)

    def _beat(self, now: float) -> bool:
        """Say that we live, and take over changed settings. False if the store could not be asked."""
        known = self._say_alive()
        if known is None:
            self._retry_at = now + RETRY_EVERY
            return False
        self._last_beat = now
        if not known:
            self._begin_anew(now)
        self._settings = self._runs.follow(self._following.settings())
        self._poll_at = now  # whatever the interval: a store that has become too new is noticed within a heartbeat
        slots = self._plan.slots or self._settings.worker_count
        if slots != self._slots:
            self._slots, self._look.jobs = slots, True
            self._world.emit(events.WorkerResized(slots))
            self._say_alive()  # or more would be busy than there are slots, until the next beat
        return True

    def _begin_anew(self, now: float) -> None:
        """We were declared lost: our jobs belong to others."""
        self._world.emit(events.DeclaredLost(self._runs.abandon(now)))
        self._membership.close()
        self._membership.enrol(
            self._slots, patience=FOR_EVER, meanwhile=lambda: self._runs.reap(self._world.clock.monotonic())
        )

    def _give_back(self, now: float) -> None:
        if self._membership.give_back(self._runs.forsaken, max_crashes=self._settings.max_crashes):
            self._runs.written(self._runs.forsaken)
            self._runs.forsaken = {}
        else:
            self._retry_at = now + RETRY_EVERY

    def _say_alive(self) -> bool | None:
        return self._membership.say_alive(slots=self._slots, stopping=self._stopping.mode is not None)

    # ── sleep ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _sleep(self) -> None:
        self._world.processes.rest()
        now = self._world.clock.monotonic()
        seconds = min(min(self._wake_times(now)) - now, LONGEST_SLEEP)
        self._world.wait(
            (self._membership.bell, self._signals, self._world.processes, *self._runs.asked.sources), max(0.0, seconds)
        )
        now = self._world.clock.monotonic()
        self._signals.hush()
        if self._membership.bell.hush():
            self._attend(now)
        if self._due.take(now):
            self._look.everywhere()

    def _wake_times(self, now: float) -> Iterator[float]:
        """Every moment that needs us, whether or not something else wakes us before."""
        yield max(self._last_beat + self._settings.heartbeat_ms / 1000, self._retry_at)
        yield self._poll_at
        if (soon := self._world.processes.look_again()) is not None:
            yield now + soon
        yield self._duties.wake_at
        settle_at = max(self._retry_at, self._runs.settle_at(self._slots))
        for moment in self._runs.wake_times(self._slots):
            yield max(moment, self._retry_at)
        if self._runs:
            yield max(self._streaming.look_at, self._retry_at)
        if self._runs.over or self._is_undecided:
            yield settle_at
        rooms = self._runs.rooms(self._slots)
        if self._stopping.mode is None and any(rooms):
            if self._look.pays(*rooms):
                yield max(self._runs.log_pause.until, settle_at)
            if self._due.at is not None:
                yield self._due.at
        if self._plan.idle_timeout is not None and not self._runs:
            yield max(self._runs.last_active + self._plan.idle_timeout, now + RETRY_EVERY)
