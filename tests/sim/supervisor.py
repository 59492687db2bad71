"""The supervisor of a simulated worker. It is not a participant: it decides nothing. It carries out soon what its worker asks for, whatever
becomes of the worker. If the worker is dead, it writes how its runs end, unless it is dead itself, or stopped."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Collection, Sequence
from typing import Final

from queuectl.jobs.outcome import Ending, Exited, Signalled
from queuectl.jobs.resources import ResourceReport, Usage
from queuectl.logs.markers import end_line
from queuectl.logs.writer import LogWriter
from queuectl.process.client import RunExit, Started, StartRequest
from queuectl.process.journal import Exit, Journal, Record
from queuectl.process.model import Child, Identity
from queuectl.process.spawn import CannotSpawn, StartExpired, StartUnrecorded, StartWithdrawn
from queuectl.process.supervisor import JOURNAL_AFTER
from queuectl.process.tree import SUPERVISOR_PROGRAM
from tests.sim.host import Host, Process, Signals
from tests.sim.stage import Stage

LIMIT: Final = 1 << 20
HEAD: Final = b"--- START 2026-01-01T00:00:00.000Z run=1 worker=w ---\n"
PRINTED: Final = b"hello\n"  # by every process that prints
LONG: Final = 8.0  # seconds: two leases
STOPPED: Final = 60.0  # by SIGSTOP: until it is killed
REPORT: Final = ResourceReport(Usage(1, 2, 3, 4, 5))  # of every process here
ENDINGS: Final = {
    "timeout": Ending.TIMEOUT,
    "cancel": Ending.CANCELLED,
    "release": Ending.RELEASED,
    "lost": Ending.LOST,
}


class _Run:
    def __init__(self, request: StartRequest, process: Process, writer: LogWriter, began: float) -> None:
        self.place = request.place
        self.token = request.token
        self.is_in_slot = request.slot is None
        self.process = process
        self.child = Child(process.pid, process.started)
        self.writer = writer
        self.began = began
        self.reason: str | None = None
        self.may_reap = True
        self.is_leader_reported = False
        self.exit: Exit | None = None


class News:
    """What the worker has not read yet."""

    def __init__(self) -> None:
        self.started: list[Started] = []
        self.output: dict[str, int] = {}
        self.leaders: list[str] = []
        self.exits: dict[str, RunExit] = {}
        self.pong = False

    def __bool__(self) -> bool:
        return bool(self.started or self.output or self.leaders or self.exits or self.pong)


class Supervisor:
    def __init__(
        self,
        stage: Stage,
        host: Host,
        journal: str,
        lock: int,
        signals: Signals,
        spawned: Callable[[Host, Process, Supervisor], None],
    ) -> None:
        self.is_gone = False
        self.is_killed = False  # otherwise it exits with the last of its runs
        self.noted: set[str] = set()  # tokens whose processes are in the journal
        self.finished: set[str] = set()  # those with their exit
        self.refused: set[str] = set()  # whose exit could not be written: the disk was full
        self.news = News()
        self.process = host.fork(parent=self)
        self.process.supervisor = self
        self.process.command_line = f"{SUPERVISOR_PROGRAM} 3 {journal}"
        self.host = host
        self.machine = host.machine
        host.supervisors.append(self)
        self._is_alone = False  # the worker is dead
        self._stopped_until = 0.0
        self._requests: list[Callable[[], None]] = []
        self._waiting: list[StartRequest] = []  # for a slot
        self._spawning = 0
        self._capacity = 0
        self._runs: dict[str, _Run] = {}
        self._stage = stage
        self._signals = signals
        self._spawned = spawned
        self._lock: int | None = os.dup(lock)
        self.is_signed = False
        with stage.aside():
            self._journal: Journal | None = Journal(journal, create=False)
            with contextlib.suppress(OSError):  # a full disk: then its runs cannot be adopted
                self._journal.sign(Identity(self.process.pid, self.process.started, host.machine))
                self.is_signed = True

    # ── for its worker ──────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def is_stopped(self) -> bool:
        return self._stopped_until > self._stage.now

    def request(self, act: Callable[[], None], *, is_prompt: bool) -> None:
        """Act, at once or soon, also if the worker is stopped or dead by then."""
        self._requests.append(act)
        if is_prompt:
            self.handle_all()
        else:
            self._stage.later(self._stage.random.random() * 0.02, self._turn)

    def handle_all(self) -> None:
        while self._requests and not (self.is_gone or self.is_stopped):
            self._requests.pop(0)()

    def limit_runs(self, capacity: int) -> None:
        self._capacity = capacity
        self._start_waiting()

    def withdraw(self, tokens: Collection[str]) -> None:
        now, self._signals.is_pending = self._stage.now, True
        for request in self._waiting:
            if request.token in tokens:
                self.news.started.append(Started(request.token, StartWithdrawn("withdrawn"), now))
        self._waiting = [request for request in self._waiting if request.token not in tokens]

    def start(self, request: StartRequest) -> None:
        if request.slot is None:
            self._waiting.append(request)
            self._start_waiting()
            self.news.pong = self._signals.is_pending = True
        else:
            self._start(request)

    def _start_waiting(self) -> None:
        while self._waiting and not (self.is_gone or self.is_stopped):
            busy = sum(run.is_in_slot and run.exit is None for run in self._runs.values())
            if busy + self._spawning >= self._capacity:
                return
            self._start(self._waiting.pop(0))

    def _start(self, request: StartRequest) -> None:
        stage, host = self._stage, self.host
        self._signals.is_pending = True
        if stage.now >= request.start_by:
            self.news.started.append(Started(request.token, StartExpired("it is too late"), stage.now))
            return
        if not self._write(request.place, request.token, Record(0, 0)):
            self.news.started.append(Started(request.token, StartUnrecorded("unrecorded"), stage.now))
            return
        # Only if every other worker is on this host: one of another host cannot know about it, nor kill us.
        if host.is_only_one and stage.strikes(stage.chances.stall):
            self.stop(stage.random.random() * LONG)
        self._spawning += 1
        self._requests.insert(0, lambda: self._spawn(request))

    def _spawn(self, request: StartRequest) -> None:
        stage, host = self._stage, self.host
        self._spawning -= 1
        if stage.strikes(stage.chances.unstartable):
            problem = CannotSpawn("the system has no room for another process")
            self.news.started.append(Started(request.token, problem, stage.now))
            with contextlib.suppress(OSError), stage.aside():
                if self._journal is not None:
                    self._journal.clear(request.place)
            return
        token, job = request.token, request.env[b"QUEUECTL_JOB_ID"].decode()
        leader = host.fork(token=token, job=job, parent=self)
        self._give_fate(leader)
        if stage.random.random() < 0.2:  # a child of it, which may ignore what ends it
            child = host.fork(token=token, job=job, group=leader.pid)
            child.ignores_term = stage.random.random() < 0.5
            self._give_fate(child)
        run = self._runs[token] = _Run(
            request, leader, LogWriter(request.log, lambda: HEAD, is_first=request.run == 1, limit=LIMIT), stage.now
        )
        self._spawned(host, leader, self)
        self.news.started.append(Started(token, run.child, stage.now))
        if stage.random.random() < 0.7:
            with contextlib.suppress(OSError), stage.aside():
                run.writer.append(PRINTED)
        if run.writer.log_from is not None:
            self.news.output[token] = run.writer.log_from
        if self._write(run.place, token, Record(*run.child, run.writer.log_from)):
            self.noted.add(token)
        stage.tell(f"supervisor {self.process.pid} starts process {leader.pid} for {job}, token {token}")

    def terminating(self, token: str, reason: str) -> None:
        if (run := self._runs.get(token)) is not None and run.exit is None:
            run.reason, run.may_reap = reason, False

    def finish(self, token: str) -> None:
        if (run := self._runs.get(token)) is not None and run.exit is None:
            run.may_reap = True
            self._stage.later(0.0, self._turn)

    def recorded(self, tokens: Sequence[str]) -> None:
        for token in tokens:
            self._runs.pop(token, None)

    def ping(self) -> None:
        self.news.pong = self._signals.is_pending = True

    def hang_up(self) -> None:
        """The worker is dead. Its lock is held until here: all that was requested is started before any other process can know that."""
        if self.is_gone or self._is_alone:
            return
        if self.is_stopped:
            self._stage.later(self._stopped_until - self._stage.now, self.hang_up)
            return
        self.handle_all()
        self._waiting.clear()
        self._is_alone = True
        for run in self._runs.values():
            run.may_reap = True
        self._release_lock()
        self._outlive()

    def stop(self, seconds: float = STOPPED) -> None:
        """As SIGSTOP and, later, SIGCONT."""
        if not self.is_gone:
            self._stage.tell(f"supervisor {self.process.pid} on {self.host.name} is stopped")
            self._stopped_until = self._stage.now + seconds
            self._stage.later(seconds, self._turn)

    def _turn(self) -> None:
        """What was requested before a process ended is done before its end is noticed."""
        self.handle_all()
        self._reap()
        self._start_waiting()
        self.handle_all()

    def die(self) -> None:
        if not self.is_gone:
            self._stage.tell(f"supervisor {self.process.pid} on {self.host.name} is killed")
            self.is_killed = True
            self._exit()
            self._signals.is_pending = True

    # ── by itself ───────────────────────────────────────────────────────────────────────────────────────────────────

    def child_ended(self, _: Process) -> None:
        self._stage.later(self._stage.random.random() * 0.02, self._turn)

    def _reap(self) -> None:
        if self.is_gone or self.is_stopped:
            return
        for run in list(self._runs.values()):
            if run.process.how is None or run.exit is not None:
                continue
            if run.may_reap:
                self._finish(run)
            elif not run.is_leader_reported:
                run.is_leader_reported = True
                self.news.leaders.append(run.token)
                self._signals.is_pending = True
        if self._is_alone:
            self._outlive()

    def _finish(self, run: _Run) -> None:
        how = run.process.how
        assert how is not None
        self.host.processes.pop(run.process.pid, None)
        reasons, closed = ({}, set()) if self._journal is None else self._journal.appended()
        reason = run.reason or reasons.get(run.token)
        code, number = (how.code, None) if isinstance(how, Exited) else (None, how.signal)
        ending = ENDINGS.get(reason or "") or (
            Ending.SIGNALLED if number else Ending.FAILED if code else Ending.COMPLETED
        )
        line = end_line(ending, exit_code=code, signal=number, error=None, duration=0.1, now_ms=0)
        log_to = None
        if run.token not in closed:
            with contextlib.suppress(OSError), self._stage.aside():
                log_to = run.writer.end(lambda: line)
        with self._stage.aside():
            run.writer.close()
        log_from = run.writer.log_from
        run.exit = Exit(how, self.host.ticks(), log_from, log_to, REPORT, reason)
        duration = run.process.ended_at - run.began
        self.news.exits[run.token] = RunExit(how, duration, log_from, log_to, REPORT, reason)
        self._signals.is_pending = True
        self._stage.later(JOURNAL_AFTER, lambda: self._write_exit(run))

    def _write_exit(self, run: _Run) -> None:
        """Its worker has not recorded it for a while."""
        if self._runs.get(run.token) is run and not (self.is_gone or self.is_stopped):
            if self._write(run.place, run.token, Record(*run.child, run.writer.log_from, run.exit)):
                self.finished.add(run.token)
            else:
                self.refused.add(run.token)

    def _outlive(self) -> None:
        for run in list(self._runs.values()):
            if run.exit is None and run.process.how is not None:
                self._finish(run)
            if run.exit is not None:
                self._write_exit(run)
                self._stage.tell(f"supervisor {self.process.pid} writes the exit of {run.token}, {run.exit.how}")
                del self._runs[run.token]
        if not self._runs:
            self._exit()

    def _give_fate(self, process: Process) -> None:
        chance, chances = self._stage.random.random, self._stage.chances
        seconds = chance() * 0.05 if chance() < chances.brief else chance() * chances.longest
        if chance() < chances.long:
            seconds = LONG
        process.ignores_term = chance() < 0.1
        code = 0 if chance() < 0.65 else 1 + int(chance() * 3)
        self.host.plan_end(process, seconds, code)
        if chance() < 0.05:  # another process kills it
            self._stage.later(seconds / 2, lambda: self.host.end(process, Signalled(signal.SIGKILL)))

    def _write(self, place: int, token: str, record: Record) -> bool:
        if self._journal is None:
            return False
        try:
            with self._stage.aside():
                self._journal.write(place, token, record)
        except OSError:
            return False
        return True

    def _release_lock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def close(self) -> None:
        self._release_lock()
        if self._journal is not None:
            with self._stage.aside():
                self._journal.close()
            self._journal = None

    def _exit(self) -> None:
        self.is_gone = True
        with self._stage.aside():
            for run in self._runs.values():
                run.writer.close()
        self.close()
        self._requests.clear()
        self.host.processes.pop(self.process.pid, None)
        self.host.orphan([run.process for run in self._runs.values() if run.exit is None])
        self._runs.clear()
