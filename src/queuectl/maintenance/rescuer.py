"""Rescue: recover the jobs of dead workers, after terminating what is left of their processes."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from queuectl import paths
from queuectl.clock import Clock
from queuectl.config import Here
from queuectl.errors import UsageError
from queuectl.events import JobRescued, Sink
from queuectl.filelock import Lock, is_held, mark_of, take_lock
from queuectl.jobs.model import Claim, Worker
from queuectl.jobs.outcome import settle_lost
from queuectl.logs.last_line import last_line, read_last_output
from queuectl.logs.parent_logs import remove_folder
from queuectl.logs.writer import end_log
from queuectl.maintenance.adoption import Adopter, adoptable, hand_over, journal_of
from queuectl.maintenance.liveness import SilenceDetector, take_lock_of_dead
from queuectl.process import tree
from queuectl.process.journal import (
    LOST,
    Entries,
    Record,
    Termination,
    append_closed,
    append_terminations,
    read_journal,
)
from queuectl.process.model import ProcessInfo
from queuectl.process.system import system
from queuectl.settings import Settings
from queuectl.store.store import Store
from queuectl.store.types import LastHeartbeat, Span
from queuectl.units import from_ms

CHECK_EVERY: Final = 1.0
ORPHAN_GRACE: Final = 0.5  # shorter than `kill-grace`: the job waits to run again
ESCALATE_EVERY: Final = 0.05
# How long to wait until a supervisor has written the END markers of runs that we have terminated; then we write them.
END_TIMEOUT: Final = 1.0


class Rescue:
    """The rescue of one dead worker. Call `step` until it returns None; it never waits by itself.

    Runs that can be adopted go to the adopter, if there is one. The others are terminated, and their jobs go back to `pending`, each
    as soon as nothing of its run is left: one whose process cannot be killed does not hold up the others.

    No job is given back while its run may still begin. A supervisor may have its request, and be frozen or blocked by a file system, as
    long as it lives: it is killed first, with children of it that have not become their programs yet.
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
        adopter: Adopter | None = None,
        spare: bool = False,
        last_heartbeat: LastHeartbeat | None = None,
        is_here: bool = True,
        may_start: bool = False,
    ) -> None:
        """`spare`: without an adopter, let runs continue that can be adopted and are not to be cancelled. `last_heartbeat`: by which the
        worker was taken for dead, if no lock proves it; nothing happens if it has sent another one. `is_here`: it is on this host; the
        journal of another one is about other processes, whose numbers and paths may be the same. `may_start`: nothing proves that its
        supervisor starts nothing more; the lock of a worker does, which its supervisor holds, too."""
        self._worker = worker
        self._adopter = adopter
        self._spare = spare
        self._lock = lock
        self._last_heartbeat = last_heartbeat
        self._is_here = is_here
        self._may_start = may_start and is_here
        self._store = store
        self._clock = clock
        self._settings = settings
        self._emit = emit
        self._claims: dict[str, Claim] | None = (
            None  # by token: those that it held when it was fenced, until they are given back
        )
        self._journal = paths.runs_file(worker.home, worker.id)
        self._journal_of: dict[str, str] = {}  # by token: the journal that the supervisor of the run writes
        self._entries: dict[str, Entries] = {}  # by journal
        self._supervisor: list[ProcessInfo] = []  # that we have killed, with its children
        self._kill_at: float | None = None
        self._end_by: dict[str, float] = {}  # by token: until when to wait for its END marker
        self._spans: dict[str, Span] = {}  # by token: its output, once its log has its END marker

    def step(self, now: float) -> float | None:
        """Continue. Returns when to call it again, None when it is done."""
        if self._claims is None and not self._fence():
            if self._lock is not None:
                self._lock.release()
            return None
        if self._claims and self._kill_supervisor():
            return now + ESCALATE_EVERY
        self._give_back(self._terminate(now) if self._claims else [], now)
        if self._claims:
            return now + ESCALATE_EVERY
        self._remove_files()
        return None

    def _fence(self) -> bool:
        """Make the store ignore the worker. False if it lives."""
        held = self._store.claims.fence(self._worker.id, last_heartbeat=self._last_heartbeat)
        if held is None:
            return False
        entries = read_journal(self._journal) if self._is_here else Entries()
        spared: Collection[str] = ()
        if self._adopter is not None:
            spared = hand_over(self._worker, held, to=self._adopter, store=self._store)
        elif self._spare:
            spared = adoptable(self._worker, held).keys() - self._store.claims.orders(self._worker.id).cancels
            self._spare = bool(spared)
        # Only now: if the store could not be reached, all of this is done again, and nothing is terminated meanwhile.
        self._claims = {claim.token: claim for claim in held if claim.token not in spared}
        if self._is_here:
            self._journal_of = {token: journal_of(self._worker, token, entries) for token in self._claims}
        self._read_journals()
        return True

    def _read_journals(self) -> None:
        journals = {self._journal, *self._journal_of.values()}
        self._entries = {path: read_journal(path) if self._is_here else Entries() for path in journals}

    def _entries_of(self, token: str) -> Entries:
        return self._entries[self._journal_of.get(token, self._journal)]

    def _record(self, token: str) -> Record | None:
        return self._entries_of(token).runs.get(token)

    # ── terminating ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _kill_supervisor(self) -> bool:
        """Kill the supervisor if it may still start one of the runs. Whether it was killed now."""
        if self._supervisor or not self._uncertain():
            return False
        own = paths.runs_file(self._worker.home, self._worker.id)
        supervisor = self._entries[self._journal].supervisor
        since = 0 if supervisor is None else supervisor.started  # it may not have written that yet
        tree.send(signal.SIGSTOP, tree.supervisor_processes(own, since=since))  # they fork no more
        self._supervisor = tree.supervisor_processes(own, since=since)
        tree.send(signal.SIGKILL, self._supervisor)
        return bool(self._supervisor)

    def _uncertain(self) -> set[str]:
        """The tokens of runs that may still begin: ordered, or perhaps requested, and not known to have begun."""
        if not self._may_start or self._claims is None:
            return set()
        return {token for token in self._claims if (record := self._record(token)) is None or record.is_starting}

    def _terminate(self, now: float) -> list[Claim]:
        """Continue to terminate what is left of the runs. Returns the claims of which nothing is."""
        assert self._claims is not None
        if self._supervisor:  # it may have written more before it was killed
            self._read_journals()
        runs = {token: self._record(token) for token in self._claims}
        # Twice, if none is seen: a pass over the process table misses a process that forks and exits meanwhile.
        members = tree.members(runs)
        if not any(members.values()):
            members = tree.members(runs)
        living = {token: runs[token] for token, some in members.items() if some}
        if living:
            processes = [process for some in members.values() for process in some]
            if self._kill_at is None:
                self._note_terminations(living)
                self._kill_at = now + min(ORPHAN_GRACE, self._settings.kill_grace_ms / 1000)
                tree.send(signal.SIGTERM, processes)
                tree.send(signal.SIGCONT, processes)  # a stopped process would not notice its SIGTERM
            elif now >= self._kill_at:
                tree.kill_groups(living)
                tree.send(signal.SIGKILL, processes)
            # All together, as long as they may end by themselves: each transaction wakes all workers.
            if now <= self._kill_at + ESCALATE_EVERY:
                return []
        uncertain = self._uncertain() if any(map(tree.is_running, self._supervisor)) else set()
        return [claim for token, claim in self._claims.items() if token not in living and token not in uncertain]

    def _note_terminations(self, tokens: Iterable[str]) -> None:
        """A rescuer that finds us dead would otherwise adopt a run that we have terminated, and take our signal for its end."""
        for path, some in self._by_journal(tokens).items():
            with contextlib.suppress(
                OSError
            ):  # a full disk, or another user's data directory: then it counts as ended by itself
                append_terminations(path, some, Termination(LOST, system.now_ticks()), create=True)

    def _by_journal(self, tokens: Iterable[str]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for token in tokens:
            if self._is_here:
                found.setdefault(self._journal_of[token], []).append(token)
        return found

    # ── giving back ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _give_back(self, claims: Sequence[Claim], now: float) -> None:
        """Settle the runs of these as lost, except those whose supervisor is about to write its END marker. Without any left, remove the
        worker."""
        assert self._claims is not None
        self._read_journals()
        ready = [claim for claim in claims if not self._is_about_to_end(claim.token, now)]
        if self._claims and not ready:
            return
        self._end_logs([claim for claim in ready if claim.token not in self._spans])
        spans = {claim.token: self._spans[claim.token] for claim in ready if claim.token in self._spans}
        rescued = self._store.claims.rescue(
            self._worker.id,
            max_crashes=self._settings.max_crashes,
            spans=spans,
            only=set(spans),
            unbegun={claim.token for claim in ready if not self._entries_of(claim.token).may_have_begun(claim.token)},
        )
        for claim in ready:
            del self._claims[claim.token]
        for lost in rescued:
            self._emit(JobRescued(lost.claim, lost.settlement, self._worker.id))

    def _is_about_to_end(self, token: str, now: float) -> bool:
        """Whether its supervisor can be expected to write its end: it is neither dead nor stopped, and had no time yet."""
        record, supervisor = self._record(token), self._entries_of(token).supervisor
        if record is None or record.is_starting or record.exit is not None or supervisor is None:
            return False
        if now >= self._end_by.setdefault(token, now + END_TIMEOUT):
            return False
        found = tree.find(supervisor.pid)
        return found is not None and found.started == supervisor.started and not (found.is_zombie or found.is_stopped)

    def _end_logs(self, claims: Sequence[Claim]) -> None:
        """Write the END markers that their supervisors have not written."""
        if not claims:
            return
        for path, tokens in self._by_journal(claim.token for claim in claims).items():
            with contextlib.suppress(OSError):  # it is gone, or as above: then a log may have two END markers
                append_closed(path, tokens)
        # Read once more: a supervisor may have written some meanwhile. A worker that was continued has given back its claims.
        self._read_journals()
        held = {claim.token for claim in self._store.running(self._worker.id)}
        for claim in claims:
            if claim.token in held:
                self._spans[claim.token] = self._end_log(claim)

    def _end_log(self, claim: Claim) -> Span:
        if claim.parents and self._is_here:
            remove_folder(claim.log, claim.run)
        if not self._is_here:
            return Span(None, None, self._stored_last_output(claim))
        if (record := self._record(claim.token)) is None:
            return Span(None, None)
        log_from = record.log_from if record.exit is None else record.exit.log_from
        if log_from is None:  # it has printed nothing
            return Span(None, None)
        if record.exit is not None and record.exit.log_to is not None:
            return Span(log_from, record.exit.log_to, read_last_output(claim, log_from, record.exit.log_to))
        settlement = settle_lost(claim, self._settings.max_crashes)
        now_ms, limit = self._clock.now_ms(), self._settings.log_limit
        try:
            log_to = end_log(claim.log, log_from, settlement, duration=None, now_ms=now_ms, limit=limit)
        except OSError:  # it cannot be written: the job is worth more than the last line of its log
            log_to = None
        return Span(log_from, log_to, read_last_output(claim, log_from, log_to))

    def _stored_last_output(self, claim: Claim) -> str | None:
        """Of a run on another host: from what its worker has stored, which may be a part."""
        data = b"".join(piece.data for piece in self._store.output(claim.id, claim.run))
        return last_line(data, is_cut=False, has_secrets=bool(claim.secrets))

    def _remove_files(self) -> None:
        if self._lock is None:  # it may come back, or we are about to take its place
            return
        if self._spare:
            self._lock.release()
            return
        for path in (paths.runs_file, paths.wakeup_file):
            with contextlib.suppress(OSError):
                os.unlink(path(self._worker.home, self._worker.id))
        self._lock.remove()


class RescueTask:
    """Checks the other workers of the store once a second, and rescues the jobs of dead ones."""

    adds_work: Final = False

    def __init__(
        self, adopter: Adopter, here: Here, *, store: Store, clock: Clock, settings: Callable[[], Settings], emit: Sink
    ) -> None:
        self._adopter = adopter
        self._here = here
        self._store = store
        self._clock = clock
        self._load_settings = settings
        self._settings = settings()
        self._emit = emit
        self._silence = SilenceDetector(adopter.name)
        self._rescues: dict[str, Rescue] = {}
        self._check_at = 0.0

    def step(self, now: float) -> float:
        if now >= self._check_at:
            self._check_at = now + CHECK_EVERY
            self._check()
        again = self._check_at
        for name, rescue in list(self._rescues.items()):
            next_step = rescue.step(now)
            if next_step is None:
                del self._rescues[name]
            else:
                again = min(again, next_step)
        return again

    def _check(self) -> None:
        workers = self._store.workers(busy=False)
        # The time after the answer: if we were stopped in between, what we have just seen would count as seen long ago.
        now = self._clock.monotonic()
        with contextlib.suppress(UsageError):  # the worker has reported it; the settings before stay in force
            self._settings = self._load_settings()
        lease = self._settings.lease_ms / 1000
        silent = {worker.id for worker in self._silence.silent(workers, now=now, lease=lease)}
        for worker, lock in dead_workers(workers, here=self._here):
            self._begin(worker, lock, adopter=self._adopter if worker.home == self._adopter.home else None)
        for worker in workers:
            if worker.id in silent:  # it may come back, and then terminates its runs
                self._begin(worker, None, adopter=None, is_silent=True)

    def _begin(self, worker: Worker, lock: Lock | None, *, adopter: Adopter | None, is_silent: bool = False) -> None:
        if worker.id == self._adopter.name or worker.id in self._rescues:
            if lock is not None:
                lock.release()
            return
        last_heartbeat = _last_heartbeat(worker, lock, is_silent=is_silent)
        self._rescues[worker.id] = Rescue(
            worker,
            lock,
            store=self._store,
            clock=self._clock,
            settings=self._settings,
            emit=self._emit,
            adopter=adopter,
            last_heartbeat=last_heartbeat,
            is_here=worker.machine == self._here.machine,
            may_start=last_heartbeat is not None,
        )


def _last_heartbeat(worker: Worker, lock: Lock | None, *, is_silent: bool = False) -> LastHeartbeat | None:
    """What identifies the process that is dead when it is fenced. Not needed by a process that has the lock that it had."""
    if lock is not None and lock.mark == worker.lock:
        return None
    heartbeat = LastHeartbeat.of(worker)
    return heartbeat if is_silent else heartbeat._replace(beats=None)


def dead_workers(workers: Iterable[Worker], *, here: Here) -> Iterable[tuple[Worker, Lock | None]]:
    """The dead workers of this host, each with its lock; without one if the file was removed and cannot be created."""
    for worker in workers:
        lock = take_lock_of_dead(worker, here=here)
        if lock is None and worker.machine == here.machine and not tree.is_alive(worker.pid) and _has_no_lock(worker):
            # Created again: a worker that starts with this name only now would begin the same rescue.
            try:
                lock = take_lock(paths.lock_file(worker.home, worker.id))
            except OSError:  # the data directory is gone, or read-only
                yield worker, None
        if lock is not None:
            yield worker, lock


def _has_no_lock(worker: Worker) -> bool:
    """Nor has another worker, with the same name: that one rescues its jobs."""
    path = paths.lock_file(worker.home, worker.id)
    try:
        return mark_of(path) != worker.lock and not is_held(path)
    except PermissionError:  # the data directory of another user, who decides
        return False


def rescue_dead(
    store: Store, *, here: Here, clock: Clock, settings: Settings, spare: bool, emit: Sink = lambda _: None
) -> list[str]:
    """Rescue the jobs of all dead workers of this host, and wait until that is done. Returns their names. `spare` as in `Rescue`."""
    names = []
    for worker, lock in dead_workers(store.workers(), here=here):
        last_heartbeat = _last_heartbeat(worker, lock)
        rescue = Rescue(
            worker,
            lock,
            store=store,
            clock=clock,
            settings=settings,
            emit=emit,
            spare=spare,
            last_heartbeat=last_heartbeat,
            may_start=last_heartbeat is not None,
        )
        _finish(rescue, clock)
        names.append(worker.id)
    return names


def rescue_namesake(store: Store, adopter: Adopter, *, clock: Clock, settings: Settings, emit: Sink) -> None:
    """Rescue the jobs of the last worker with our name and data directory, whose lock we have now: it is dead, whatever the name of its
    host was. Waits until it is done."""
    for worker in store.workers():
        if (worker.id, worker.home) == (adopter.name, adopter.home):
            rescue = Rescue(worker, None, store=store, clock=clock, settings=settings, emit=emit, adopter=adopter)
            _finish(rescue, clock)


def rescue_unknown(
    store: Store, name: str, *, home: str, here: Here, clock: Clock, settings: Settings, emit: Sink
) -> None:
    """Rescue jobs that ran here under a worker name that the store does not know (any more): no worker would. Waits until it is done."""
    moment = from_ms(clock.now_ms())
    unknown = Worker(name, here.host, 0, home, "lost", 1, 0, None, moment, moment, beats=0, jobs_done=0)
    if name not in {worker.id for worker in store.workers()}:
        rescue = Rescue(unknown, None, store=store, clock=clock, settings=settings, emit=emit, may_start=True)
        _finish(rescue, clock)


def _finish(rescue: Rescue, clock: Clock) -> None:
    while rescue.step(clock.monotonic()) is not None:
        clock.sleep(ESCALATE_EVERY)
