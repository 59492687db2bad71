"""What a worker has running: starting it, watching it, ending it. Knows processes and logs; knows nothing of the store."""

from __future__ import annotations

import contextlib
import math
import os
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final

from queuectl.events import JobAdopted, JobStarted
from queuectl.jobs.model import Claim
from queuectl.jobs.outcome import Cancelled, GivenBack, NotStarted, Released
from queuectl.process.watch import Adoption, Child, Untold
from queuectl.settings import Settings
from queuectl.store.types import Span
from queuectl.worker.aside import Aside
from queuectl.worker.asked import Asked
from queuectl.worker.endings import begin_endings, press_endings
from queuectl.worker.launch import Launcher, Ready, Unlogged, Unstarted
from queuectl.worker.over import Over
from queuectl.worker.plan import World
from queuectl.worker.reserve import SETTLE_WITHIN, Reserve
from queuectl.worker.running import Running, Why
from queuectl.worker.trouble import LogPause, Refusals

# A start is written to the store with the next exchange, or after this time: short jobs never need it.
RECORD_AFTER: Final = 0.02
AT_ONCE: Final = 16  # so many processes are started in a row


class Runs:
    """The runs under way, by slot, and those that are over but not written yet."""

    def __init__(self, world: World, launcher: Launcher, settings: Settings, *, calls: int = 0) -> None:
        self.settings = settings
        world.processes.limit_logs(settings.log_limit)
        self.over = Over(world, settings, worker=launcher.worker)
        # By token: runs that were taken from us, see `abandon`, or of which nobody knows how they ended.
        self.forsaken: dict[str, Span] = {}
        self.last_active = world.clock.monotonic()
        self.log_pause = LogPause(world.clock, world.emit)
        self._world = world
        self._launcher = launcher
        self._by_slot: dict[int, Running] = {}
        self._starting: deque[Ready] = deque()  # in the order in which they were begun
        # By token, those in `over` that had a process. Until the store knows how it ended, its keeper has to: we may die.
        self._unwritten: dict[str, Running] = {}
        self._kept: dict[str, str] = {}  # by token, where the end of a run that was adopted is written
        self._refusals = Refusals(world.clock, world.emit)
        self._aside = Aside(most=calls)
        self.asked = Asked(world.secrets, world.clock, launcher.note_unbegun)
        self._reserve = Reserve(world.clock, self.asked.note_reserve)

    def __len__(self) -> int:
        return self._busy + len(self._aside) + len(self._reserve)

    @property
    def _busy(self) -> int:
        return len(self._by_slot) + len(self._starting) + len(self.asked) - len(self._aside)

    def rooms(self, slots: int) -> tuple[int, int]:
        """How many to claim, with so many slots: jobs, and calls beside them."""
        return max(0, slots + self._reserve.size(slots) - self._busy - len(self._reserve)), self._aside.room

    def follow(self, settings: Settings) -> Settings:
        """From now on."""
        self._world.processes.limit_logs(settings.log_limit)
        self.settings = self.over.settings = settings
        return settings

    @property
    def tokens(self) -> list[str]:
        """Of the runs that the store does not know to have ended."""
        return [*(run.claim.token for run in self._by_slot.values()), *(end.claim.token for end in self.over)]

    @property
    def under_way(self) -> Collection[Running]:
        """Those whose process is there."""
        return self._by_slot.values()

    # ── starting ────────────────────────────────────────────────────────────────────────────────────────────────────

    def start(self, claims: Sequence[Claim], *, slots: int, are_ours: Callable[[], bool]) -> None:
        """Begin a run of each, and of those in reserve, as far as there are slots for them. Give them back if they may have become
        somebody else's meanwhile."""
        if not (claims or self._reserve or self.asked):
            return
        busy, (claims, calls) = self._busy, self._aside.split(claims)
        drawn = self._reserve.draw(claims, room=slots - busy, slots=slots, is_busy=busy > 0)
        claims = [*self.asked.sift(drawn, may_have=self._launcher.may_have), *calls]
        for first in range(0, len(claims), AT_ONCE):
            # Whatever runs between two starts runs slowly: the new process has had the core, and its caches, in between.
            # So all that can be done before or after a row of starts is done there.
            placed, now_ms = self._places(claims[first : first + AT_ONCE]), self._world.clock.now_ms()
            ready, refused = self._launcher.prepare_all(placed, now_ms=now_ms, secrets=self.asked.take)
            for claim, outcome in refused:
                self._aside.remove(claim)
                self.asked.forget(claim)
                self.over.add_unbegun(claim, outcome)
            # Asked last of all: we may have been stopped for long since they were claimed.
            if ready and not are_ours():
                for one in ready:
                    self._aside.remove(one.claim)
                    self.over.add_unbegun(one.claim, GivenBack("its worker stood still for too long"))
                continue
            self._starting += ready
            self._world.processes.begin([one.order for one in ready])
            self._gather()

    def _gather(self, *, wait: bool = False) -> None:
        """Note what has been started since; with `wait`, all there is: then every run is under way, or over."""
        for begun in self._world.processes.begun(wait=wait):
            self._note_start(self._launcher.note(self._starting.popleft(), begun))

    def take_in(self, foundlings: deque[Adoption]) -> bool:
        """Look after runs that workers that are gone have begun. There may be more of them than slots."""
        before = len(foundlings)
        while foundlings:
            try:
                self._adopt(foundlings[0])
            except OSError as exc:  # it goes on, and we look again at the next turn
                self._refusals.note(exc)
                break
            foundlings.popleft()
        return len(foundlings) < before

    def _adopt(self, adoption: Adoption) -> None:
        claim, footprint, ledger, worker, ending, _ = adoption
        age = self._world.processes.adopt(Child(footprint.pid, footprint.started), claim.token, ledger)
        self.last_active = self._world.clock.monotonic()
        ((_, slot, place),) = self._places([claim])
        run = self._launcher.adopt(adoption, slot=slot, place=place, began=self.last_active - age)
        if self._world.processes.lasted(run.child) is not None:
            run.deadline = None  # it has ended, by itself: who ends it now for want of time would write what is not so
        self._by_slot[run.slot] = run
        self._kept[claim.token] = ledger
        self._world.emit(JobAdopted(claim, worker))
        if ending is not None:
            self._launcher.note_end(run, ending)
            self._end([run], Why(ending.why), self.last_active, is_noted=True)

    def written(self, tokens: Iterable[str]) -> None:
        """The store knows how these ended: what was kept for that is no longer needed."""
        told = frozenset(tokens)
        self.over.drop(told)
        for token in told:
            self.forsaken.pop(token, None)
            if (run := self._unwritten.pop(token, None)) is not None:
                self._world.processes.reap(run.child)
            if (ledger := self._kept.pop(token, None)) is not None and ledger not in self._kept.values():
                with contextlib.suppress(OSError):
                    os.unlink(ledger)

    def give_back(self, claims: Iterable[Claim] | None = None) -> None:
        """Begin none of these; None: of those in reserve."""
        for claim in [*self._reserve.remove(), *self.asked.remove()] if claims is None else claims:
            self.over.add_unbegun(claim, GivenBack("its worker had no slot for it"))

    def put_off(self, claims: Iterable[Claim], why: str, *, problem: str | None = None) -> None:
        """Begin none of these, and nothing else for a while: what they need cannot be written here, or read."""
        for claim in claims:
            self.log_pause.begin(problem or f"{claim.id}: {why}")
            self.over.add_unbegun(claim, Released(None, why))

    def _places(self, claims: Sequence[Claim]) -> list[tuple[Claim, int, int]]:
        """For each a slot, and a place in the ledger, where an end that is not written needs one, too."""
        slots = {*self._by_slot, *(one.slot for one in self._starting)}
        places = {run.place for run in (*self._by_slot.values(), *self._unwritten.values())}
        return self._aside.places(claims, slots, places | {one.order.place for one in self._starting})

    def _note_start(self, run: Running | Unstarted | Unlogged) -> None:
        self.last_active = self._world.clock.monotonic()
        match run:
            case Unlogged():
                self._aside.remove(run.claim)
                self.put_off([run.claim], "its log could not be written", problem=run.problem)
            case Unstarted():
                self._aside.remove(run.claim)
                self.over.add(run.claim, NotStarted(run.problem), began=run.began, pid=None, log_from=run.log_from)
            case Running():
                self._by_slot[run.slot] = run
                self.log_pause.end()
                self._world.emit(JobStarted(run.claim, run.child.pid))

    def unrecorded(self, now: float) -> list[Running]:
        """Runs that the store should know to have begun."""
        return [
            run
            for run in self._by_slot.values()
            if not (run.is_recorded or run.is_lost) and now - run.began >= RECORD_AFTER
        ]

    # ── ending ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def reap(self, now: float) -> None:
        """Note which runs have begun, and which are over."""
        self._gather()
        processes = self._world.processes
        try:
            ended = [(run, how) for run in self._by_slot.values() if (how := processes.peek(run.child)) is not None]
            for run, _ in ended:
                if run.why is not None and not run.is_headless:
                    run.is_headless, run.look_at = True, now
            gone = press_endings(self._by_slot.values(), processes, now=now)
        except OSError as exc:  # who cannot be seen is not taken for gone
            self._refusals.note(exc)
            return
        for run, how in ended:
            if run.why is None and isinstance(how, Untold):
                self._end([run], Why.UNTOLD, now)
                run.is_headless, run.look_at = True, now
                continue
            if run.why is not None and run.slot not in gone:
                continue
            del self._by_slot[run.slot]
            is_job = not self._aside.remove(run.claim)
            self.last_active = self._world.clock.monotonic()
            if run.is_lost or run.why is Why.UNTOLD:
                processes.reap(run.child)
                if not run.is_lost:  # else its log, too, may have another writer by now
                    self.forsaken[run.claim.token] = self.over.close_log_of_lost(run.claim, run.log_from)
                continue
            lasted, log_to, spent = processes.lasted(run.child), processes.log_to(run.child), processes.spent(run.child)
            self._unwritten[run.claim.token] = run
            told = None if isinstance(how, Untold) else how
            # Its log says that it ended by itself: whatever we were about to do came too late.
            outcome = run.outcome(told) if told is None or log_to is None else told
            is_taken = log_to is None and self._launcher.is_taken(run.claim.token)
            self.over.add_run(run, outcome, lasted=lasted, log_to=log_to, is_taken=is_taken, spent=spent)
            if is_job:
                self._reserve.judge(self.over[-1].duration)
        processes.reap_strays()

    def end_overdue(self, now: float) -> None:
        """End what has run for too long."""
        late = [run for run in self._by_slot.values() if run.deadline is not None and now >= run.deadline]
        self._end(late, Why.TIMEOUT, now)

    def give_back_stale(self, now: float) -> None:
        """Begin none of those that have waited for a slot for too long. Called after `start`: some may have a slot by now."""
        self.give_back(self._reserve.stale(now))

    def note_exchange(self, seconds: float) -> None:
        """An exchange with the store has taken this long."""
        self._reserve.note_exchange(seconds)

    def cancel(self, tokens: Collection[str], now: float) -> None:
        self._gather(wait=True)
        reserved = self._reserve.remove(lambda claim, _: claim.token in tokens)
        for claim in [*reserved, *self.asked.remove(lambda claim: claim.token in tokens)]:
            self.over.add_unbegun(claim, Cancelled(None))
        self._end([run for run in self._by_slot.values() if run.claim.token in tokens], Why.CANCEL, now)

    def release_all(self, now: float) -> None:
        self._gather(wait=True)
        self._end(self._by_slot.values(), Why.RELEASE, now)

    def kill_all(self, now: float) -> None:
        """No more grace for those that are being ended."""
        self._gather(wait=True)
        for run in self._by_slot.values():
            run.kill_at = run.look_at = now

    def abandon(self, now: float) -> int:
        """End everything, and write nothing about it: it belongs to somebody else now. Returns how many runs that were.

        Somebody of this machine has ended it already; somebody of another machine could not.
        """
        self._gather(wait=True)
        self.give_back()
        count = len(self._by_slot) + len(self.over)
        self.forsaken |= {end.claim.token: Span(None, None) for end in self.over}
        self.over.clear()
        for run in self._by_slot.values():
            run.is_lost = True
            self.forsaken[run.claim.token] = Span(None, None)
        self.release_all(now)
        return count

    @property
    def are_as_written(self) -> bool:
        """Whether whoever comes after us finds everything: all has begun, nothing is being ended or waits to be written."""
        self._gather(wait=True)
        return not (self.over or self.forsaken or any(run.why is not None for run in self._by_slot.values()))

    @property
    def is_ending_lost(self) -> bool:
        return any(run.is_lost for run in self._by_slot.values())

    def settle_at(self, slots: int) -> float:
        """When to write what is over: with some in reserve there is no hurry, and it costs less for several at once."""
        if not (self._reserve and self._busy) or len(self.over) >= slots:
            return 0.0
        return self.over.since + SETTLE_WITHIN if self.over else math.inf

    def wake_times(self, slots: int) -> Iterator[float]:
        yield from self.local_wake_times(slots)
        yield self._reserve.stale_at()
        for run in self._by_slot.values():
            if not (run.is_recorded or run.is_lost):
                yield run.began + RECORD_AFTER

    def local_wake_times(self, slots: int) -> Iterator[float]:
        """Of what can be done without the store."""
        yield self._reserve.begin_at(slots - self._busy)
        yield from self.asked.wake_times()
        for run in self._by_slot.values():
            moment = run.deadline if run.why is None else run.look_at
            if moment is not None:
                yield moment

    def _end(self, runs: Iterable[Running], why: Why, now: float, *, is_noted: bool = False) -> None:
        fresh = [run for run in runs if run.why is None]
        for run in () if is_noted else fresh:
            self._launcher.note_end(run, why)
        try:
            begin_endings(fresh, why, self._world.processes, now=now, grace=self.settings.kill_grace_ms / 1000)
        except OSError as exc:  # then they have their grace without having been asked
            self._refusals.note(exc)
