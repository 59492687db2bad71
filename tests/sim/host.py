"""Simulated machines: their clocks, their processes and their files.

Files, pipes and locks are real, in memory; only who has them open is kept, so that a crash closes them. Processes are not:
each is a few facts, and ends at the moment that chance has given it. What asks the kernel about processes (`ending`, `table`)
is the real code, and asks here.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from queuectl.jobs.outcome import Exited, Signalled
from queuectl.process.model import ProcessInfo
from queuectl.worker.signals import SignalPipe
from tests.sim.stage import START_MS, Stage

TICK: Final = 0.01
FIRST_PID: Final = 100
PIDS: Final = 40  # so few that numbers are given out again


class Parent(Protocol):
    """A supervisor."""

    def die(self) -> None: ...

    def child_ended(self, child: Process) -> None: ...

    def stop(self) -> None: ...

    def close(self) -> None: ...


class Process:
    def __init__(self, pid: int, started: int, *, group: int, token: str, job: str, parent: Parent | None) -> None:
        self.pid = pid
        self.started = started  # in ticks since its machine was
        self.group = group
        self.token = token
        self.job = job
        self.parent = parent
        self.ignores_term = False
        self.how: Exited | Signalled | None = None
        self.ended_at = 0.0
        self.exit_code = 0  # unless it is ended before
        self.is_ended_by_us = False
        self.supervisor: Parent | None = None  # that this is the process of
        self.command_line = ""

    @property
    def info(self) -> ProcessInfo:
        is_zombie = self.how is not None
        return ProcessInfo(self.pid, self.started, self.group, self.group, "Z" if is_zombie else "S", is_zombie)


class Host:
    """A machine; also what a participant of it has for a clock."""

    def __init__(self, stage: Stage, name: str, home: str) -> None:
        self.name = name
        self.home = home
        self.is_only_one = False
        self.wall = 0.0  # how far its wall clock is off
        self.processes: dict[int, Process] = {}
        self.supervisors: list[Parent] = []
        self.machine = name  # another one each time that it is started
        self.booted_at = 0.0
        self._pins: dict[int, list[int]] = {}  # by pid, what is closed at its end
        self.watch_signal: Callable[[Process], None] = lambda _: None
        self._stage = stage
        self._pid = FIRST_PID
        self._started: dict[int, int] = {}
        self.reserved = set[int]()  # groups that are about to be signalled

    def now_ms(self) -> int:
        return START_MS + round((self._stage.now + self.wall) * 1000)

    def monotonic(self) -> float:
        return self._stage.now

    def sleep(self, seconds: float) -> None:
        self._stage.wait(seconds)

    def ticks(self) -> int:
        return int((self._stage.now - self.booted_at) / TICK)

    def boot_again(self) -> None:
        """The power was gone: so is all that ran, and numbers and ticks begin again."""
        for supervisor in self.supervisors:
            supervisor.die()
            supervisor.close()
        self.supervisors.clear()
        for process in [*self.processes.values()]:
            process.parent, process.how = None, process.how or Signalled(signal.SIGKILL)
            self._let_go(process.pid)
        self.processes.clear()
        self.booted_at, self._pid = self._stage.now, FIRST_PID
        self.machine += "'"

    # ── processes ───────────────────────────────────────────────────────────────────────────────────────────────────

    def fork(
        self, *, token: str = "", job: str = "", parent: Parent | None = None, group: int | None = None
    ) -> Process:
        # A number is free when neither a process nor a group has it. Often one is given out again that has just become so.
        # But not within a tick: PID and start time would be the same.
        taken = {number for one in self.processes.values() for number in (one.pid, one.group)} | self.reserved
        taken |= {pid for pid, started in self._started.items() if started == self.ticks()}
        begin = 0 if self._stage.random.random() < 0.5 else self._pid - FIRST_PID + 1
        pid = next(n for n in (FIRST_PID + (begin + step) % PIDS for step in range(PIDS)) if n not in taken)
        self._pid = max(pid, self._pid) if begin == 0 else pid
        made = Process(pid, self.ticks(), group=group or pid, token=token, job=job, parent=parent)
        self.processes[pid] = made
        self._started[pid] = made.started
        return made

    def living(self) -> Iterator[Process]:
        return (one for one in self.processes.values() if one.how is None)

    def end(self, process: Process, how: Exited | Signalled) -> None:
        if process.how is not None:
            return
        process.how, process.ended_at = how, self._stage.now
        self._let_go(process.pid)
        if process.parent is None:
            del self.processes[process.pid]  # init has reaped it
        else:
            process.parent.child_ended(process)

    def pin(self, pid: int) -> int:
        """A descriptor that becomes readable when it ends, as a pidfd."""
        process = self.processes.get(pid)
        if process is None:
            raise ProcessLookupError
        pin, ring = os.pipe()
        if process.how is None:
            self._pins.setdefault(pid, []).append(ring)
        else:
            os.close(ring)
        return pin

    def _let_go(self, pid: int) -> None:
        for ring in self._pins.pop(pid, ()):
            os.close(ring)

    def close(self) -> None:
        for pid in list(self._pins):
            self._let_go(pid)
        for supervisor in self.supervisors:
            supervisor.close()

    def plan_end(self, process: Process, seconds: float, code: int) -> None:
        process.exit_code = code
        self._stage.later(seconds, lambda: self.end(process, Exited(code)))

    def hurry(self) -> None:
        """Let whatever runs for jobs end soon, as it would have later."""
        for process in self.living():
            if process.token:
                self.plan_end(process, self._stage.random.random(), process.exit_code)

    def signal(self, pid: int, number: int) -> None:
        """From one of us."""
        process = self.processes.get(pid)
        if process is None or process.how is not None:
            return
        if process.supervisor is not None:
            process.supervisor.die() if number == signal.SIGKILL else process.supervisor.stop()
            return
        self.watch_signal(process)
        if number == signal.SIGKILL or (number == signal.SIGTERM and not process.ignores_term):
            process.is_ended_by_us = True
            self.end(process, Signalled(number))

    def orphan(self, children: list[Process]) -> None:
        """Their parent is gone: what it did not reap is reaped, what lives goes on."""
        for process in children:
            process.parent = None
            if process.how is not None:
                self.processes.pop(process.pid, None)


class Signals:
    """A SignalPipe without signals."""

    def __init__(self) -> None:
        self.stops = 0
        self.last_stop = 0
        self.is_leaving = False
        self.is_pending = False

    def fileno(self) -> int:
        return -1

    stop_mode = SignalPipe.stop_mode

    def drain(self) -> None:
        self.is_pending = False

    def stop(self) -> None:
        self.stops += 1
        self.last_stop = signal.SIGTERM
        self.is_pending = True


def kill_group_of(stage: Stage, host: Host, group: int, number: int) -> None:
    # The caller has just compared the start time of its leader. A kernel gives the number out again after thousands of others.
    host.reserved.add(group)
    try:
        stage.effect("before a signal to a group")
    finally:
        host.reserved.discard(group)
    for pid in [one.pid for one in host.living() if one.group == group]:
        host.signal(pid, number)
    stage.effect("after a signal to a group")
