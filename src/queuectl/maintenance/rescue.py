"""Rescue: taking the jobs of dead workers back, after ending what is left of their processes."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from queuectl import paths as places
from queuectl.clock import Clock, boot_ticks
from queuectl.config import Here
from queuectl.errors import UsageError
from queuectl.events import JobRescued, Sink
from queuectl.filelock import Lock, is_held, mark_of, take_lock
from queuectl.jobs.model import Claim, Worker
from queuectl.jobs.outcome import settle_lost
from queuectl.logs.files import end_lost_log
from queuectl.logs.parents import remove_folder
from queuectl.maintenance.adoption import Heir, adoptable, leave_to
from queuectl.maintenance.liveness import Silence, lock_of_the_dead
from queuectl.process.ending import kill_groups, orphans, send
from queuectl.process.ledger import LOST, EndBegun, Footprint, Records, add_closing, add_end, read_ledger
from queuectl.process.table import lives
from queuectl.settings import Settings
from queuectl.store.protocol import Store
from queuectl.store.types import LastHeartbeat, Span
from queuectl.units import from_ms

LOOK_EVERY: Final = 1.0
ORPHAN_GRACE: Final = 0.5  # what a dead worker left behind gets no long farewell: its job waits to run again
PRESS_EVERY: Final = 0.05


class Rescue:
    """One dead worker. Call `step` until it returns None; it never waits by itself.

    What it has left running goes to the heir, if there is one; the rest is ended, and the jobs go back to the line.
    """

    def __init__(
        self,
        worker: Worker,
        lock: Lock | None,
        *,
        store: Store,
        clock: Clock,
        settings: Settings,
        emit: Sink,
        heir: Heir | None = None,
        spare: bool = False,
        sign: LastHeartbeat | None = None,
        is_here: bool = True,
    ) -> None:
        """`spare`: without an heir, let what can be adopted run on, unless it was called off. `sign`: by what it was taken
        for dead, where no lock proves it. Nothing happens if that does not hold any more. `is_here`: on this machine; what
        is said in a ledger of another one is about other processes and files, though the numbers and names may be the same."""
        self._worker = worker
        self._heir = heir
        self._spare = spare
        self._lock = lock
        self._sign = sign
        self._is_here = is_here
        self._store = store
        self._clock = clock
        self._settings = settings
        self._emit = emit
        self._claims: list[Claim] | None = None  # what it held when it was fenced
        self._footprints: dict[str, Footprint] = {}
        self._unbegun: frozenset[str] = frozenset()
        self._kill_at: float | None = None

    def step(self, now: float) -> float | None:
        """Go on; return when to come again, None when it is done."""
        if self._claims is None:
            held = self._store.fence(self._worker.id, last_heartbeat=self._sign)
            if held is None:
                if self._lock is not None:
                    self._lock.release()
                return None
            records = self._ledger()
            self._footprints, self._unbegun = records.runs, records.unbegun
            left: Collection[str] = ()
            if self._heir is not None:
                left = leave_to(self._heir, self._worker, held, store=self._store)
            elif self._spare:
                left = adoptable(self._worker, held).keys() - self._store.orders(self._worker.id).cancels
                self._spare = bool(left)
            # Only now: if the store could not be asked, all of this is done again, and nothing is ended meanwhile.
            self._claims = [claim for claim in held if claim.token not in left]
        claims = self._claims
        runs = {claim.token: self._footprints.get(claim.token) for claim in claims}
        # Twice, if nobody is seen: a look at the table misses who forks and ends while it is read.
        living = (orphans(runs) or orphans(runs)) if runs else []
        if living:
            if self._kill_at is None:
                self._note_end(runs)
                self._kill_at = now + min(ORPHAN_GRACE, self._settings.kill_grace_ms / 1000)
                send(signal.SIGTERM, living)
                send(signal.SIGCONT, living)  # a stopped process would sleep through its TERM
            elif now >= self._kill_at:
                kill_groups(runs)
                send(signal.SIGKILL, living)
            return now + PRESS_EVERY
        spans = self._close_logs(claims, runs) if claims else {}
        taken = self._store.rescue(
            self._worker.id,
            max_crashes=self._settings.max_crashes,
            spans=spans,
            only=set(spans),
            unbegun=self._unbegun,
        )
        for lost in taken:
            self._emit(JobRescued(lost.claim, lost.settlement, self._worker.id))
        self._tidy()
        return None

    def _ledger(self) -> Records:
        if not self._is_here:
            return Records(None, {}, {})
        return read_ledger(places.runs_file(self._worker.home, self._worker.id))

    def _note_end(self, tokens: Iterable[str]) -> None:
        """Or whoever comes after us would adopt what we have ended, and take our signal for the end of the job."""
        path = places.runs_file(self._worker.home, self._worker.id)
        with contextlib.suppress(
            OSError
        ):  # a full disk, or the home of another user: then it counts as ended by itself
            add_end(path, tokens, EndBegun(LOST, boot_ticks()), create=self._is_here)

    def _close_logs(self, claims: Sequence[Claim], runs: dict[str, Footprint | None]) -> dict[str, Span]:
        path = places.runs_file(self._worker.home, self._worker.id)
        if self._is_here:
            with contextlib.suppress(OSError):  # gone, or as above: then a log may say twice how its run ended
                add_closing(path, runs)
        # Of one that has ended by itself meanwhile its keeper has closed the log; one that came back has given back what it had.
        latest, held = self._ledger().runs, {claim.token for claim in self._store.running(self._worker.id)}
        return {
            claim.token: self._close_log(claim, latest.get(claim.token) or runs[claim.token])
            for claim in claims
            if claim.token in held
        }

    def _close_log(self, claim: Claim, footprint: Footprint | None) -> Span:
        if claim.parents and self._is_here:
            remove_folder(claim.log, claim.run)
        if footprint is None:  # it died before it made a process
            return Span(None, None)
        if footprint.finish is not None and footprint.finish.log_to is not None:  # it says how its process ended
            return Span(footprint.log_from, footprint.finish.log_to)
        settlement = settle_lost(claim, self._settings.max_crashes)
        try:
            now_ms, limit = self._clock.now_ms(), self._settings.log_limit
            log_to = end_lost_log(claim.log, footprint.log_from, settlement, now_ms=now_ms, limit=limit)
        except OSError:  # the log is gone or cannot be written: the job is worth more than its last line
            return Span(footprint.log_from, None)
        return Span(footprint.log_from, log_to)

    def _tidy(self) -> None:
        if self._lock is None:  # it may come back, or we are about to take its place
            return
        if self._spare:
            self._lock.release()
            return
        for path in (places.runs_file, places.wakeup_file):
            with contextlib.suppress(OSError):
                os.unlink(path(self._worker.home, self._worker.id))
        self._lock.remove()


class RescueDuty:
    """Looks after the other workers of the store, once a second."""

    adds_work: Final = False

    def __init__(
        self, heir: Heir, here: Here, *, store: Store, clock: Clock, settings: Callable[[], Settings], emit: Sink
    ) -> None:
        self._heir = heir
        self._me = heir.name
        self._here = here
        self._store = store
        self._clock = clock
        self._load_settings = settings
        self._settings = settings()
        self._emit = emit
        self._silence = Silence(heir.name)
        self._under_way: dict[str, Rescue] = {}
        self._look_at = 0.0

    def step(self, now: float) -> float:
        if now >= self._look_at:
            self._look_at = now + LOOK_EVERY
            self._look()
        again = self._look_at
        for name, rescue in list(self._under_way.items()):
            next_step = rescue.step(now)
            if next_step is None:
                del self._under_way[name]
            else:
                again = min(again, next_step)
        return again

    def _look(self) -> None:
        workers = self._store.workers(busy=False)
        # Asked after the store: were we stopped in between, what we have just seen would count as seen long ago.
        now = self._clock.monotonic()
        with contextlib.suppress(UsageError):  # the worker has said so; what held before goes on until it is put right
            self._settings = self._load_settings()
        lease = self._settings.lease_ms / 1000
        silent = {worker.id for worker in self._silence.silent(workers, now=now, lease=lease)}
        for worker, lock in dead_workers(workers, here=self._here):
            self._begin(worker, lock, heir=self._heir if worker.home == self._heir.home else None)
        for worker in workers:
            if worker.id in silent:  # it may come back, and then it ends what it has running
                self._begin(worker, None, heir=None, is_silent=True)

    def _begin(self, worker: Worker, lock: Lock | None, *, heir: Heir | None, is_silent: bool = False) -> None:
        if worker.id == self._me or worker.id in self._under_way:
            if lock is not None:
                lock.release()
            return
        self._under_way[worker.id] = Rescue(
            worker,
            lock,
            store=self._store,
            clock=self._clock,
            settings=self._settings,
            emit=self._emit,
            heir=heir,
            sign=_sign(worker, lock, is_silent=is_silent),
            is_here=worker.machine == self._here.machine,
        )


def _sign(worker: Worker, lock: Lock | None, *, is_silent: bool = False) -> LastHeartbeat | None:
    """By what to know that it is still the same, and still dead, when it is fenced. Who has the lock that it had knows."""
    if lock is not None and lock.mark == worker.lock:
        return None
    sign = LastHeartbeat.of(worker)
    return sign if is_silent else sign._replace(beats=None)


def dead_workers(workers: Iterable[Worker], *, here: Here) -> Iterable[tuple[Worker, Lock | None]]:
    """The workers of this host that are gone, each with its lock, or without one if its file was removed and none can be made."""
    for worker in workers:
        lock = lock_of_the_dead(worker, here=here)
        if lock is None and worker.machine == here.machine and not lives(worker.pid) and _has_no_lock(worker):
            # Made anew: one who came under its name only now would take itself for the heir as well.
            try:
                lock = take_lock(places.lock_file(worker.home, worker.id))
            except OSError:  # the home is gone, or may not be written
                yield worker, None
        if lock is not None:
            yield worker, lock


def _has_no_lock(worker: Worker) -> bool:
    """Nor has another, who came under its name: that one is its heir."""
    path = places.lock_file(worker.home, worker.id)
    try:
        return mark_of(path) != worker.lock and not is_held(path)
    except PermissionError:  # the home of another user: whoever may look there decides
        return False


def rescue_dead(
    store: Store, *, here: Here, clock: Clock, settings: Settings, spare: bool, emit: Sink = lambda _: None
) -> list[str]:
    """Rescue from every dead worker of this host and return their names. Waits until it is done. `spare` as above."""
    names = []
    for worker, lock in dead_workers(store.workers(), here=here):
        sign = _sign(worker, lock)
        rescue = Rescue(worker, lock, store=store, clock=clock, settings=settings, emit=emit, spare=spare, sign=sign)
        _finish(rescue, clock)
        names.append(worker.id)
    return names


def rescue_namesake(store: Store, heir: Heir, *, clock: Clock, settings: Settings, emit: Sink) -> None:
    """Rescue from the worker of this home whose name, and with it whose lock, is the heir's now: it is gone, whatever its
    host was called. Waits until it is done."""
    for worker in store.workers():
        if (worker.id, worker.home) == (heir.name, heir.home):
            _finish(Rescue(worker, None, store=store, clock=clock, settings=settings, emit=emit, heir=heir), clock)


def rescue_unknown(
    store: Store, name: str, *, home: str, here: Here, clock: Clock, settings: Settings, emit: Sink
) -> None:
    """Take back what ran here under a name that the store does not know (any more): nobody else ever would. Waits until it
    is done."""
    moment = from_ms(clock.now_ms())
    nobody = Worker(name, here.host, 0, home, "lost", 1, 0, None, moment, moment, beats=0, jobs_done=0)
    if name not in {worker.id for worker in store.workers()}:
        _finish(Rescue(nobody, None, store=store, clock=clock, settings=settings, emit=emit), clock)


def _finish(rescue: Rescue, clock: Clock) -> None:
    while rescue.step(clock.monotonic()) is not None:
        clock.sleep(PRESS_EVERY)
