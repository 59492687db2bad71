"""The supervisor: the process that starts the jobs of a worker, collects their output, and outlives the worker.

It is the parent of the jobs, because only the parent of a process learns how it ended. It does what its worker tells it. If the worker is
dead, it writes the end of each run into the journal, for the worker that adopts it, and exits with the last of them.

The worker may send more runs than its slots can hold. They wait here, so that the next run starts as soon as one ends.

It runs in its own session, so that what ends the worker (a signal to its group, a closed terminal, the OOM killer) does not end it. It
imports little: see docs/internals/adr/0019.
"""

from __future__ import annotations

import contextlib
import gc
import heapq
import os
import selectors
import signal
import socket
import sys
from collections import deque
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any, Final

from queuectl.clock import SystemClock
from queuectl.jobs.outcome import Ending, Exited, Signalled
from queuectl.jobs.resources import ResourceReport, Usage
from queuectl.logs.markers import end_line, start_line
from queuectl.process import tree
from queuectl.process.cgroups import CgroupPool, Group
from queuectl.process.ipc import Channel, Disconnected, Message
from queuectl.process.journal import Exit, Journal, Record
from queuectl.process.model import Child
from queuectl.process.output import OutputCollector, RunOutput
from queuectl.process.spawn import NO_SETUP, CannotSpawn, ChildSetup, Command, spawn
from queuectl.process.system import system

NO_LIMIT: Final = 1 << 62  # until the worker sends one
# While other runs wait, so that the worker has enough to do for now: several starts and exits in one message cost less.
REPORT_WITHIN: Final = 0.008
MAX_STARTS_PER_TURN: Final = 16
WATCH_AFTER: Final = 0.02
OBJECTS_BETWEEN_COLLECTIONS: Final = 20_000
_SLOT: Final = b"QUEUECTL_SLOT"
_REFUSALS: Final = {"withdrawn": "its worker has withdrawn it", "expired": "its supervisor was stopped for too long"}
# A worker that has not recorded an end after this time may be stopped: the end is written into the journal.
JOURNAL_AFTER: Final = 0.1
_BLOCK_BYTES: Final = 512  # the unit of disk I/O in a rusage
_MEMORY_UNIT: Final = 1 if sys.platform == "darwin" else 1024
_SIGNALS_THAT_KILL: Final = frozenset(
    {signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT, signal.SIGTRAP}
)  # fmt: skip
# Why the worker terminates a run, and how its END marker says so.
_ENDINGS: Final = {
    "timeout": Ending.TIMEOUT,
    "cancel": Ending.CANCELLED,
    "release": Ending.RELEASED,
    "lost": Ending.LOST,
}


class SupervisedRun:
    __slots__ = (
        "began",
        "child",
        "ended_at",
        "exit",
        "exited_at",
        "group",
        "has_exited",
        "output",
        "place",
        "reason",
        "slot",
        "token",
    )

    def __init__(
        self, request: Mapping[str, Any], slot: int, child: Child, output: RunOutput, began: float, group: Group | None
    ) -> None:
        self.token: str = request["token"]
        self.place: int = request["place"]  # in the journal
        self.slot = slot if request["slot"] is None else None  # one of ours
        self.child = child
        self.output = output
        self.began = began
        self.group = group
        self.reason: str | None = None  # why the worker terminates it
        self.has_exited = False
        self.exited_at = 0.0
        self.ended_at = 0  # the same in clock ticks
        self.exit: Exit | None = None  # once its log is closed


class Supervisor:
    def __init__(self, channel: Channel, journal: Journal, pool: CgroupPool, wakeups: int) -> None:
        """`wakeups` becomes readable when a child ends."""
        self._channel = channel
        self._journal = journal
        self._pool = pool
        self._wakeups = wakeups
        self._clock = SystemClock()
        self._selector = selectors.DefaultSelector()
        self._selector.register(wakeups, selectors.EVENT_READ)
        self._output = OutputCollector(self._selector, NO_LIMIT)
        self._environment: dict[bytes, bytes] = {}  # that most runs share
        self._null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self._runs: dict[str, SupervisedRun] = {}  # until their ends are recorded
        self._running: dict[int, SupervisedRun] = {}  # by PID
        # Of those, the ones that are being terminated and not reaped: as a zombie its PID, the number of its group, is not reused.
        self._terminating: set[int] = set()
        self._unwritten: deque[SupervisedRun] = (
            deque()
        )  # ended, and not in the journal; in the order in which they ended
        self._queue: deque[Mapping[str, Any]] = deque()  # requests that wait for a slot
        self._capacity = NO_LIMIT
        self._free_slots: list[int] = []  # a heap
        self._slots = 0  # how many numbers have been used, including free ones
        self._news: Message = {}
        self._report_at = 0.0
        self._has_exits = True  # a child may have ended since `_reap`

    def serve(self) -> None:
        """Until the worker disconnects."""
        self._selector.register(self._channel, selectors.EVENT_READ)
        is_writing = False
        with contextlib.suppress(Disconnected):
            while True:
                if self._wait():
                    for message in self._channel.receive():
                        self._handle(message)
                self._reap()
                self._start_waiting()
                self._write_late()
                self._report()
                self._channel.flush()
                if self._channel.has_outgoing != is_writing:
                    is_writing = not is_writing
                    events = selectors.EVENT_READ | (selectors.EVENT_WRITE if is_writing else 0)
                    self._selector.modify(self._channel, events)
        self._queue.clear()  # they belong to another worker
        self._selector.unregister(self._channel)

    def outlive(self) -> None:
        """Write how the runs end, until none is left and no process can print any more."""
        self._terminating.clear()
        self._has_exits = True
        while True:
            self._reap()
            self._unwritten.clear()
            self._news.clear()  # nothing reads it
            ended = [run for run in self._runs.values() if run.exit is not None]
            for run in ended:
                self._write_exit(run)
            self._forget(ended)
            if self.is_idle:
                return
            self._wait()

    @property
    def is_idle(self) -> bool:
        return not (self._runs or self._output)

    # ── the loop ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _wait(self) -> bool:
        """Until there is something to do. Returns whether the channel is ready."""
        is_ready = False
        if self._output.watch_at is not None:
            self._output.watch(self._clock.monotonic())
        for key, _ in self._selector.select(self._wait_time()):
            if key.data is not None:
                self._output.collect(key.data)
                self._announce(key.data)
            elif key.fd != self._wakeups:
                is_ready = True
            else:
                self._has_exits = True
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wakeups, 4096)
        return is_ready

    def _wait_time(self) -> float | None:
        if self._may_start:
            return 0.0
        times = [self._unwritten[0].exited_at + JOURNAL_AFTER] if self._unwritten else []
        if self._news:
            times.append(self._report_at)
        if self._output.watch_at is not None:
            times.append(self._output.watch_at)
        return max(0.0, min(times) - self._clock.monotonic()) if times else None

    def _announce(self, output: RunOutput) -> None:
        """Tell the worker where the output of a run begins, once there is some, and a process that finds both of us dead."""
        log_from = output.writer.log_from
        if not output.is_announced and log_from is not None:
            output.is_announced = True
            self._add_news("output", (output.token, log_from))
            if (run := self._runs.get(output.token)) is not None:
                with contextlib.suppress(OSError):  # a full disk: then its log gets no END marker
                    self._journal.write(run.place, run.token, Record(*run.child, log_from))

    def _add_news(self, kind: str, item: object) -> None:
        if not self._news:
            self._report_at = self._clock.monotonic() + REPORT_WITHIN
        self._news.setdefault(kind, []).append(item)

    def _report(self) -> None:
        """Send what the worker does not know yet."""
        if self._news and (not self._queue or self._clock.monotonic() >= self._report_at):
            news, self._news = self._news, {}
            self._channel.send(news)

    def _handle(self, message: Message) -> None:
        match message["op"]:
            case "environment":
                self._environment = message["variables"]
            case "capacity":
                self._capacity = message["runs"]
            case "start":
                for request in message["runs"]:
                    if request["slot"] is None:
                        self._queue.append(request)
                    else:
                        self._start(request, request["slot"])
                self._add_news("pong", True)  # some may wait for long
            case "withdraw":
                self._withdraw(frozenset(message["runs"]))
            case "log_limit":
                self._output.set_limit(message["bytes"])
            case "terminating":
                for token, reason in message["runs"].items():
                    if (run := self._runs.get(token)) is not None and run.exit is None:
                        run.reason, self._has_exits = reason, True
                        self._terminating.add(run.child.pid)
            case "finish":
                for token in message["runs"]:
                    if (run := self._runs.get(token)) is not None:
                        self._terminating.discard(run.child.pid)
                        self._has_exits = True
            case "recorded":
                self._forget([run for token in message["runs"] if (run := self._runs.get(token)) is not None])
            case "ping":
                self._add_news("pong", True)
            case _:
                pass

    # ── starting ────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _may_start(self) -> bool:
        return bool(self._queue) and self._slots - len(self._free_slots) < self._capacity

    def _start_waiting(self) -> None:
        """Not too many at once: meanwhile nothing else is noticed."""
        for _ in range(MAX_STARTS_PER_TURN):
            if not self._may_start:
                return
            if not self._free_slots:
                self._free_slots.append(self._slots)
                self._slots += 1
            slot = heapq.heappop(self._free_slots)
            if not self._start(self._queue.popleft(), slot):
                heapq.heappush(self._free_slots, slot)

    def _withdraw(self, tokens: Collection[str]) -> None:
        withdrawn = [request for request in self._queue if request["token"] in tokens]
        self._queue = deque(request for request in self._queue if request["token"] not in tokens)
        at = self._clock.monotonic()
        for request in withdrawn:
            self._refuse(request, at, "withdrawn")

    def _refuse(self, request: Mapping[str, Any], at: float, why: str) -> None:
        self._add_news("started", {"token": request["token"], "at": at, "error": _REFUSALS[why], "why": why})

    def _start(self, request: Mapping[str, Any], slot: int) -> bool:
        """Whether it was started."""
        token, place, at = request["token"], request["place"], self._clock.monotonic()
        if at >= request["start_by"]:  # we were stopped, or our worker was before it sent this
            self._refuse(request, at, "expired")
            return False
        # Before the start: a process that finds this worker dead takes a run for unstarted that is not in the journal.
        try:
            self._journal.write(place, token, Record(0, 0))
        except OSError as exc:  # a full disk, and the record is the first at this place
            problem = f"the journal of its worker cannot be written: {(exc.strerror or str(exc)).lower()}"
            self._add_news("started", {"token": token, "at": at, "error": problem, "why": "unrecorded"})
            return False
        try:
            child = self._spawn(request, slot, at).child
        except CannotSpawn as exc:
            with contextlib.suppress(OSError):
                self._journal.clear(place)
            self._add_news("started", {"token": token, "at": at, "error": str(exc)})
            return False
        self._add_news("started", {"token": token, "at": at, "pid": child.pid, "started": child.started})
        return True

    def _spawn(self, request: Mapping[str, Any], slot: int, at: float) -> SupervisedRun:
        setup = _setup(request["setup"])
        base = self._environment if request["base"] is None else request["base"]
        command = Command(
            request["argv"],
            # Not through our own environment: the C library never frees a value that was in it, and each run has its own token.
            {**base, **request["env"], _SLOT: b"%d" % slot},
            request["cwd"],
            program=request["program"],
            shell=request["shell"],
            setup=setup,
        )
        reader = None if setup.user is None else setup.user[0]
        try:
            output, out = self._output.open(
                request["token"],
                request["log"],
                partial(start_line, request["run"], worker=request["worker"], now_ms=self._clock.now_ms()),
                request["secrets"],
                is_first=request["run"] == 1,
                # While others wait for a slot, runs are brief: most have ended before their pipes need to be watched.
                watch_at=at + WATCH_AFTER if self._queue else 0.0,
                reader=reader,
            )
        except OSError as exc:
            raise CannotSpawn(
                f"the system has no room for another process: {(exc.strerror or str(exc)).lower()}"
            ) from exc
        group = None
        try:
            group = self._pool.take(self._pool.limits(setup.limits, setup.nice))
            if group is not None and setup.limits:
                command = command._replace(setup=_without_group_limits(setup, group))
            before = system.now_ticks()
            if group is not None and not self._pool.enter(group):
                self._pool.remove(group)
                group = None
            try:
                pid = spawn(command, stdin=self._null, stdout=out, stderr=out)
                child = Child(pid, system.start_time(pid, not_before=before))
                with contextlib.suppress(OSError):  # a full disk: then the token in its environment identifies it
                    self._journal.write(request["place"], request["token"], Record(*child))
            finally:
                if group is not None:
                    self._pool.leave(group)
        except (CannotSpawn, OSError) as exc:
            self._output.close(output)
            if group is not None:
                self._pool.release(group, was_killed=False)
            if isinstance(exc, CannotSpawn):
                raise
            raise CannotSpawn(f"its control group cannot be joined: {(exc.strerror or str(exc)).lower()}") from exc
        finally:
            os.close(out)
        if group is not None:
            with contextlib.suppress(OSError):
                self._pool.apply_limits(group)
        run = SupervisedRun(request, slot, child, output, at, group)
        self._runs[run.token] = self._running[pid] = run
        return run

    # ── ending ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _reap(self) -> None:
        """Notice which runs have ended."""
        if not self._has_exits:
            return
        self._has_exits = False
        ended = []
        # As soon as one may not be reaped, each of the others is asked for.
        for which in [pid for pid in self._running if pid not in self._terminating] if self._terminating else (-1,):
            while (found := _reap_child(which)) is not None:
                pid, status, usage = found
                if (run := self._running.pop(pid, None)) is not None:
                    if run.slot is not None:
                        heapq.heappush(self._free_slots, run.slot)
                    self._note_exit(run)
                    ended.append((run, _how(status), self._usage(run, usage)))
        for pid in self._terminating:
            run = self._running[pid]
            if not run.has_exited and _is_zombie(pid):
                self._note_exit(run)
                self._add_news("leaders", run.token)
        if ended:
            # A worker that takes over the runs of ours, which may be stopped, says in the journal why it terminates them.
            reasons, closed = self._journal.appended()
            for run, how, report in ended:
                self._finish(run, how, report, reasons.get(run.token), is_closed=run.token in closed)

    def _note_exit(self, run: SupervisedRun) -> None:
        if not run.has_exited:
            run.has_exited, run.exited_at, run.ended_at = True, self._clock.monotonic(), system.now_ticks()

    def _finish(
        self,
        run: SupervisedRun,
        how: Exited | Signalled,
        report: ResourceReport,
        reason: str | None,
        *,
        is_closed: bool,
    ) -> None:
        """Close the log of an ended run and report its end. `reason`: why another worker has terminated it. `is_closed`: that one writes
        its END marker."""
        run.output.is_announced = True
        duration = run.exited_at - run.began
        reason = run.reason or reason
        code, number = (how.code, None) if isinstance(how, Exited) else (None, how.signal)
        ending = _ENDINGS.get(reason or "")
        if ending is None:
            ending = Ending.SIGNALLED if number is not None else Ending.FAILED if code else Ending.COMPLETED
        line = partial(
            end_line, ending, exit_code=code, signal=number, error=None, duration=duration, now_ms=self._clock.now_ms()
        )
        log_to = self._output.finish(run.output, None if is_closed else line)
        run.exit = Exit(how, run.ended_at, run.output.writer.log_from, log_to, report, reason)
        self._unwritten.append(run)
        ended: Message = {"token": run.token, "code": code, "signal": number, "duration": duration, "reason": reason}
        if run.output.writer.log_from is not None:
            ended |= {"log_from": run.exit.log_from, "log_to": log_to}
        if (last_line := run.output.last_line) is not None:
            ended["last_line"] = last_line
        if run.output.problem and (run.output.dropped or log_to is None):
            ended["log_problem"] = run.output.problem
        if report.usage is not None:
            ended |= {"usage": list(report.usage), "out_of_memory": report.out_of_memory}
        self._add_news("exited", ended)

    def _usage(self, run: SupervisedRun, used: Any) -> ResourceReport:
        """`used`: a struct_rusage."""
        user, system = used.ru_utime, used.ru_stime
        blocks = used.ru_inblock * _BLOCK_BYTES, used.ru_oublock * _BLOCK_BYTES
        usage = Usage(int(user * 1000), int(system * 1000), used.ru_maxrss * _MEMORY_UNIT, *blocks)
        if run.group is None:
            return ResourceReport(usage)
        duration = self._clock.monotonic() - run.began
        return self._pool.report(run.group, usage, (user * 1e6, system * 1e6), duration=duration)

    def _write_late(self) -> None:
        """Write ends into the journal that the worker has not recorded for a while: it may be stopped, or die."""
        limit = self._clock.monotonic() - JOURNAL_AFTER
        while self._unwritten and self._unwritten[0].exited_at <= limit:
            run = self._unwritten.popleft()
            if run.token in self._runs:
                self._write_exit(run)

    def _write_exit(self, run: SupervisedRun) -> None:
        with contextlib.suppress(OSError):  # a full disk: then the end stays unknown
            self._journal.write(run.place, run.token, Record(*run.child, run.output.writer.log_from, run.exit))

    def _forget(self, runs: Collection[SupervisedRun]) -> None:
        _, closed = self._journal.appended() if runs else ({}, set())
        for run in runs:
            del self._runs[run.token]
            run.output.writer.close()  # opened again for what processes print that it has left behind
            if run.group is not None:
                was_killed = run.reason is not None or run.token in closed or _was_killed(run.exit)
                self._pool.release(run.group, was_killed=was_killed)


def main() -> None:
    descriptor, path = sys.argv[-2:]
    for number in signal.valid_signals() - _SIGNALS_THAT_KILL:
        # A signal to the whole service is meant for the worker and the jobs. A handler, since jobs would inherit an ignored signal.
        signal.signal(number, _ignore)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    wakeups, wakeup = os.pipe()
    os.set_blocking(wakeups, False)
    os.set_blocking(wakeup, False)
    signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    os.set_inheritable(int(descriptor), False)
    channel = Channel(socket.socket(fileno=int(descriptor)))
    try:
        lock = channel.receive_descriptor()
    except Disconnected:  # the worker did not start
        return
    journal = Journal(path, create=False)
    identity = tree.identity_of(os.getpid())
    with contextlib.suppress(OSError):  # a full disk: then its runs cannot be adopted
        journal.sign(identity)
    pool = CgroupPool(identity)
    pool.enter_next()
    supervisor = Supervisor(channel, journal, pool, wakeups)
    gc.freeze()  # runs leave no reference cycles behind: what exists now need not be looked through again
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    supervisor.serve()
    if not supervisor.is_idle:
        with contextlib.suppress(Disconnected):
            channel.send({"stays": True})
    # Other processes may take the worker for dead from here on: nothing more is started, and what runs is in the journal.
    os.close(lock)
    supervisor.outlive()
    pool.close()
    os._exit(0)


def _ignore(*_: object) -> None:
    """The interpreter has written the number into the wake-up pipe."""


def _setup(fields: Mapping[str, Any] | None) -> ChildSetup:
    if fields is None:
        return NO_SETUP
    user, inside = fields["user"], fields["inside"]
    return ChildSetup(
        limits=fields["limits"],
        nice=fields["nice"],
        user=None if user is None else (user[0], user[1]),
        groups=tuple(fields["groups"]),
        umask=fields["umask"],
        inside=None if inside is None else (inside[0], inside[1]),
    )


def _without_group_limits(setup: ChildSetup, group: Group) -> ChildSetup:
    """What the control group limits need not be limited twice."""
    in_group = {"memory": group.limits.memory, "processes": group.limits.processes}
    limits = {name: value for name, value in setup.limits.items() if in_group.get(name) is None}
    return setup._replace(limits=limits)


def _how(status: int) -> Exited | Signalled:
    code = os.waitstatus_to_exitcode(status)
    return Exited(code) if code >= 0 else Signalled(-code)


def _reap_child(pid: int) -> tuple[int, int, Any] | None:
    """Reap this child, or any if it is -1. Returns its PID, status and usage; None if there is none that has ended."""
    try:
        found = os.wait4(pid, os.WNOHANG)
    except ChildProcessError:
        return None
    return found if found[0] else None


def _is_zombie(pid: int) -> bool:
    """Whether a child has ended; it is not reaped."""
    if hasattr(os, "waitid"):
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    with contextlib.suppress(OSError):  # it cannot be seen now
        return not tree.is_alive(pid)
    return False


def _was_killed(ended: Exit | None) -> bool:
    return ended is not None and isinstance(ended.how, Signalled) and ended.how.signal == signal.SIGKILL
