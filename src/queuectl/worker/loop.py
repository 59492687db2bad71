"""The worker: one process, one loop.

Each turn: note what ended, end what is overdue, settle all that ended and claim for all free slots in one transaction,
start what was claimed, do what is due for the house, then sleep until a child ends, the bell rings, a signal comes or
the next moment that matters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Final

from queuectl import events
from queuectl.jobs.model import Claim
from queuectl.jobs.states import is_final
from queuectl.store.types import Exchange, StopMode
from queuectl.webhooks.rules import WORKER_SLOTS
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
from queuectl.worker.standby import HasFileno, NextTurn
from queuectl.worker.stopping import Stopping, asked_by
from queuectl.worker.streaming import Streaming
from queuectl.worker.trouble import RETRY_EVERY, Trouble

LONGEST_SLEEP: Final = 3600.0
SLOW: Final = 0.05  # an answer of the store that takes longer is worth to be thrifty with
JOBS_SHARE: Final = 3  # of the time that the worker spends with such a store, for each second of maintenance
SHORTEST_WAIT: Final = 0.002  # of the standby thread between two turns
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
        self._runs = Runs(world, launcher, self._settings, calls=WORKER_SLOTS if plan.calls_aside else 0)
        self._streaming = Streaming(is_shared=world.store.is_shared)
        self._away = nullcontext if world.standby is None else world.standby.away
        self._trouble = Trouble(world.clock, world.emit, away=self._away)
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
        self._is_starting = False  # the loop is about to start what was claimed
        self._is_stop_told = False  # the store knows that we are about to stop
        self._poll_at = now
        self._house_at = 0.0
        self._retry_at = 0.0  # after trouble: not before
        self._due = Due(world.clock)

    def run(self, on_ready: Callable[[], None]) -> bool:
        """Work until told to stop, drained or idle for too long. Returns whether we are to begin anew: then what runs goes
        on, and is found by who comes under our name. Raises only if the store is gone for good."""
        plan, clock = self._plan, self._world.clock
        self._membership.enrol(self._slots, patience=START_PATIENCE)
        self._world.emit(events.WorkerStarted(plan.id, plan.pid, self._slots, plan.queues))
        on_ready()
        standby = self._world.standby
        try:
            with nullcontext() if standby is None else standby.serving(self._stand_in):
                self._keep_house(clock.monotonic())  # first what others have left running: it takes slots
                while True:
                    self._turn(clock.monotonic())
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

    def _turn(self, now: float) -> None:
        self._notice_absence(now)
        if self._is_unsure and self._beat(now):
            self._is_unsure = False
        self._look_after_runs(now)
        if self._stopping.mode is not None and not self._is_stop_told:
            self._is_stop_told = True
            self._say_alive()
        if not self._is_unsure:
            self._start(())
            self._runs.give_back_stale(now)
            self._trade(self._world.clock.monotonic())
            self._keep_house(self._world.clock.monotonic())

    def _stand_in(self) -> NextTurn:
        """A turn of the standby thread, without the store: the loop waits for it. What is to be written waits for the loop."""
        now = self._world.clock.monotonic()
        self._notice_absence(now)
        if self._is_starting:  # else a slot could be given out twice
            return NextTurn((), RETRY_EVERY)
        self._look_after_runs(now)
        if not self._is_unsure and self._membership.is_fresh(self._settings):
            self._runs.start((), slots=self._slots, are_ours=lambda: self._membership.is_fresh(self._settings))
        soon = self._world.processes.look_again()
        moments = [*self._runs.local_wake_times(self._slots), math.inf if soon is None else now + soon]
        sources: list[HasFileno] = [self._signals, self._world.processes, *self._runs.asked.sources]
        return NextTurn(sources, max(min(moments) - now, SHORTEST_WAIT))

    def _notice_absence(self, now: float) -> None:
        # A store that cannot be asked is another matter: then we go on, and time is kept.
        self._is_unsure |= now - self._last_turn > self._settings.lease_ms / 1000
        self._last_turn = now

    def _look_after_runs(self, now: float) -> None:
        """All that is to be done about them whether or not the store answers."""
        self._mind_signals(now)
        self._runs.reap(now)
        if not self._is_unsure:
            self._runs.end_overdue(now)

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
        self._signals.drain()
        if (mode := asked_by(self._signals)) is not None:
            self._stopping.begin(mode, now)
        if self._signals.stops >= 3:  # somebody is in a great hurry
            self._runs.kill_all(now)

    # ── the store ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _trade(self, now: float) -> None:
        """Settle, claim and start. Where there is more of it, the next sleep is none: signals are heard in between."""
        if now < self._retry_at:
            return
        starts = self._runs.unrecorded(now)
        printed = self._streaming.look(self._runs.under_way, now)
        rooms = self._rooms(now)
        if not (starts or printed or (self._has_more() and now >= self._runs.settle_at(self._slots))):
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

    def _rooms(self, now: float) -> Rooms:
        """How much to claim."""
        may_claim = self._stopping.mode is None and now >= self._runs.log_pause.until
        return self._runs.rooms(self._slots) if may_claim else (0, 0)

    def _has_more(self) -> bool:
        """Whether there is something to settle or to claim."""
        rooms = self._rooms(self._world.clock.monotonic())
        return bool(self._runs.over or self._is_undecided or self._look.pays(*rooms))

    def _start(self, claims: Sequence[Claim]) -> None:
        self._runs.start(claims, slots=self._slots, are_ours=self._are_ours)

    def _are_ours(self) -> bool:
        self._is_starting = True
        try:
            return self._membership.is_sure(self._say_alive, self._settings)
        finally:
            self._is_starting = False

    def _exchange(self, starts: Sequence[Running], printed: Sequence[Running], rooms: Rooms) -> Exchange | None:
        plan, clock = self._plan, self._world.clock
        now = clock.monotonic()
        # All of it is put together first: while the store works on it, more runs may end.
        begun = [run.as_start(now) for run in starts]
        over, limit = [*self._runs.over], self._settings.output_limit
        ends = [end._replace(age=now - end.age, by=plan.actor) for end in over]
        pieces = self._trouble.ask(lambda: self._streaming.pieces(printed, over, limit=limit))
        if pieces is None:
            return None
        claim = self._shares.request(*rooms)
        written = self._trouble.attempt(
            lambda: self._store.exchange(plan.id, starts=begun, outputs=pieces, ends=ends, claim=claim)
        )
        if written is not None:
            self._runs.note_exchange(clock.monotonic() - now)
        return written

    def _note(self, written: Exchange, starts: Sequence[Running]) -> None:
        for run in starts:
            run.is_recorded = True
        self._runs.written(end.claim.token for end in (*(end for end, _ in written.settled), *written.lost))
        self._streaming.note(self._runs.tokens)
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
        if now < self._maintenance_at():
            return
        clock = self._world.clock
        began = clock.monotonic()
        if now >= self._poll_at:
            self._poll(now)
        if self._runs.forsaken and not self._runs.is_ending_lost and now >= self._retry_at:
            self._give_back(now)
        self._look.calls |= self._duties.step(
            now, is_pressed=lambda: clock.monotonic() - began > SLOW and self._has_more()
        )
        # Where an answer of the store takes long, all of this takes seconds: most of the time is for the jobs that wait.
        ended = clock.monotonic()
        self._house_at = ended + JOBS_SHARE * (ended - began) if ended - began > SLOW else 0.0
        if self._runs.take_in(self._world.foundlings):
            self._attend(now)  # one of them may have been called off meanwhile

    def _maintenance_at(self) -> float:
        """The earliest moment for maintenance: with jobs to look after not at once again, if the store is slow."""
        return self._house_at if self._runs or self._has_more() else 0.0

    def _poll(self, now: float) -> None:
        """The net below the bell: a ring may be lost, and the wall clock may have jumped past a due time."""
        self._poll_at = now + self._settings.poll_interval_ms / 1000
        if has_changed := self._trouble.ask(self._store.changed):
            self._attend(now)
        if self._trouble.is_outdated:
            self._stopping.begin(StopMode.FINISH, now)
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
            self._stopping.begin(orders.stop, now)

    def _beat(self, now: float) -> bool:
        """Say that we live, and take over changed settings. False if the store could not be asked."""
        known = self._say_alive()
        if known is None:
            self._retry_at = now + RETRY_EVERY
            return False
        self._last_beat = now
        if not known:
            self._begin_anew(now)
        with self._away():
            settings = self._following.settings()
        self._settings = self._runs.follow(settings)
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
        given = dict(self._runs.forsaken)
        if self._membership.give_back(given, max_crashes=self._settings.max_crashes):
            self._runs.written(given)
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
        self._signals.drain()
        with self._away():
            was_rung = self._membership.bell.drain()
        if was_rung:
            self._attend(now)
        if self._due.take(now):
            self._look.everywhere()

    def _wake_times(self, now: float) -> Iterator[float]:
        """Every moment that needs us, whether or not something else wakes us before."""
        yield max(self._last_beat + self._settings.heartbeat_ms / 1000, self._retry_at)
        yield max(self._poll_at, self._maintenance_at())
        if (soon := self._world.processes.look_again()) is not None:
            yield now + soon
        yield max(self._duties.wake_at, self._maintenance_at())
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
