"""Simulated machines: their clocks, their processes and their files.

Files, pipes and locks are real, in memory; only who has them open is kept, so that a crash closes them. Processes are not:
each is a few facts, and ends at the moment that chance has given it. What asks the kernel about processes (`ending`, `table`)
is the real code, and asks here.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from queuectl.job.outcome import Exited, Signalled
from queuectl.process import ending
from queuectl.process.ledger import Footprint, Ledger
from queuectl.process.protocol import Begun, CannotSpawn, Order
from queuectl.process.table import Entry
from queuectl.process.watch import Child
from tests.sim.stage import START_MS, Stage

TICK: Final = 0.01
FIRST_PID: Final = 100
PIDS: Final = 40  # so few that numbers are given out again


class Process:
    def __init__(self, pid: int, now: float, *, group: int, token: str, job: str, parent: Worker | None) -> None:
        self.pid = pid
        self.started = int(now / TICK)
        self.group = group
        self.token = token
        self.job = job
        self.parent = parent
        self.ends_at = float("inf")
        self.exit_code = 0
        self.ignores_term = False
        self.how: Exited | Signalled | None = None
        self.is_ended_by_us = False

    @property
    def entry(self) -> Entry:
        return Entry(self.pid, "S" if self.how is None else "Z", self.group, self.group, 1, self.started)


class Host:
    """A machine; also what a participant of it has for a clock."""

    def __init__(self, stage: Stage, name: str, home: str) -> None:
        self.name = name
        self.home = home
        self.wall = 0.0  # how far its wall clock is off
        self.processes: dict[int, Process] = {}
        self.ended: dict[str, Exited | Signalled] = {}  # by token, how the leader of each run ended
        self.watch_signal: Callable[[Process], None] = lambda _: None
        self._stage = stage
        self._pid = FIRST_PID

    def now_ms(self) -> int:
        return START_MS + round((self._stage.now + self.wall) * 1000)

    def monotonic(self) -> float:
        return self._stage.now

    def sleep(self, seconds: float) -> None:
        self._stage.wait(seconds)

    # ── processes ───────────────────────────────────────────────────────────────────────────────────────────────────

    def fork(
        self, *, token: str = "", job: str = "", parent: Worker | None = None, group: int | None = None
    ) -> Process:
        while True:
            self._pid = FIRST_PID + (self._pid - FIRST_PID + 1) % PIDS
            # A number is free when neither a process nor a group has it.
            if self._pid not in {number for one in self.processes.values() for number in (one.pid, one.group)}:
                break
        pid = self._pid
        made = Process(pid, self._stage.now, group=group or pid, token=token, job=job, parent=parent)
        self.processes[pid] = made
        return made

    def living(self) -> Iterator[Process]:
        return (one for one in self.processes.values() if one.how is None)

    def end(self, process: Process, how: Exited | Signalled) -> None:
        if process.how is not None:
            return
        process.how = how
        if process.pid == process.group and process.token:
            self.ended[process.token] = how
        parent = process.parent
        if parent is None or parent.is_gone:
            del self.processes[process.pid]  # init has buried it
        else:
            parent.signals.is_pending = True

    def plan_end(self, process: Process, seconds: float, code: int) -> None:
        self._stage.later(seconds, lambda: self.end(process, Exited(code)))

    def signal(self, pid: int, number: int) -> None:
        """From one of us."""
        process = self.processes.get(pid)
        if process is None or process.how is not None:
            return
        self.watch_signal(process)
        if number == signal.SIGKILL or (number == signal.SIGTERM and not process.ignores_term):
            process.is_ended_by_us = True
            self.end(process, Signalled(number))

    def bury_children_of(self, parent: Worker) -> None:
        """The parent is gone: what it did not reap is reaped, what lives goes on."""
        for process in [one for one in self.processes.values() if one.parent is parent]:
            process.parent = None
            if process.how is not None:
                del self.processes[process.pid]


class Signals:
    """A SignalPipe without signals."""

    def __init__(self) -> None:
        self.stops = 0
        self.last_stop = 0
        self.is_pending = False

    def fileno(self) -> int:
        return -1

    def hush(self) -> None:
        self.is_pending = False

    def stop(self) -> None:
        self.stops += 1
        self.last_stop = signal.SIGTERM
        self.is_pending = True


class Worker:
    """The process of a worker, and its `Processes`.

    Its keeper is gone when it is, as at the end of a container: so nobody can know how its jobs end, and they are rescued.
    Adoption is not simulated.
    """

    def __init__(self, stage: Stage, host: Host, spawned: Callable[[Host, Process], None]) -> None:
        self.is_gone = False
        self.signals = Signals()
        self.host = host
        self.process = host.fork()
        self.participant = stage.me()
        self._stage = stage
        self._spawned = spawned  # called with each new process of a job
        self._orders: list[Order] = []
        self._begun: list[Begun] = []
        self._ledger: Ledger | None = None

    def open(self, ledger: str, *, lock: int, environment: Sequence[bytes]) -> None:
        self._ledger = Ledger(ledger, join=True)

    def close(self) -> None:
        if self._ledger is not None:
            self._ledger.close()

    def look_again(self) -> float | None:
        return None

    def rest(self) -> None: ...

    def adopt(self, child: Child, token: str, ledger: str) -> float:
        raise NotImplementedError

    def lasted(self, child: Child) -> float | None:
        return None

    @property
    def is_ready(self) -> bool:
        return bool(self._orders or self._begun)

    def is_gone_now(self) -> None:
        self.is_gone = True
        self.host.processes.pop(self.process.pid, None)
        self.host.bury_children_of(self)

    def fileno(self) -> int:
        return -1

    def begin(self, orders: Sequence[Order]) -> None:
        self._orders += orders
        while self._orders and self._stage.random.random() < 0.8:
            self._make()

    def begun(self, *, wait: bool = False) -> Sequence[Begun]:
        while self._orders and (wait or self._stage.random.random() < 0.8):
            self._make()
        found, self._begun = self._begun, []
        return found

    def make_all(self) -> None:
        while self._orders:
            self._make()

    def _make(self) -> None:
        stage, host = self._stage, self.host
        stage.effect("before a spawn")
        order = self._orders.pop(0)
        if stage.strikes(stage.chances.unstartable):
            self._begun.append(Begun(CannotSpawn("the system has no room for another process"), stage.now))
            return
        known = dict(word.split(b"=", 1) for word in order.env)
        token, job = order.token, known[b"QUEUECTL_JOB_ID"].decode()
        leader = host.fork(token=token, job=job, parent=self)
        self._give_fate(leader)
        if stage.random.random() < 0.2:  # somebody of its family, who may ignore what ends the leader
            child = host.fork(token=token, job=job, group=leader.pid)
            child.ignores_term = stage.random.random() < 0.5
            self._give_fate(child)
        os.write(order.out, b"hello\n")
        self._spawned(host, leader)
        self._begun.append(Begun(Child(leader.pid, leader.started), stage.now))
        if self._ledger is not None:
            with contextlib.suppress(OSError):  # then there is the mark
                self._ledger.write(order.slot, token, Footprint(leader.pid, leader.started, order.log_from))
        stage.note(f"makes process {leader.pid} for {job}, token {token}")
        stage.effect("after a spawn")

    def _give_fate(self, process: Process) -> None:
        chance = self._stage.random.random
        seconds = chance() * 0.05 if chance() < 0.5 else chance() * 3
        if chance() < 0.15:
            seconds = 8.0  # far longer than a lease, unless it is ended
        process.ignores_term = chance() < 0.1
        code = 0 if chance() < 0.65 else 1 + int(chance() * 3)
        self.host.plan_end(process, seconds, code)
        if chance() < 0.05:  # somebody kills it
            self._stage.later(seconds / 2, lambda: self.host.end(process, Signalled(signal.SIGKILL)))

    def peek(self, child: Child) -> Exited | Signalled | None:
        return self.host.processes[child.pid].how

    def reap(self, child: Child) -> None:
        self._stage.effect("before a reap")
        del self.host.processes[child.pid]

    def families(self, runs: Mapping[str, Child]) -> dict[str, list[Entry]]:
        return ending.families({token: child.pid for token, child in runs.items()})

    def send(self, number: int, to: Sequence[Entry]) -> None:
        ending.send(number, to)

    def kill_group(self, child: Child) -> None:
        kill_group_of(self._stage, self.host, child.pid, signal.SIGKILL)

    def reap_strays(self) -> None: ...


def kill_group_of(stage: Stage, host: Host, group: int, number: int) -> None:
    stage.effect("before a signal to a group")
    for pid in [one.pid for one in host.living() if one.group == group]:
        host.signal(pid, number)
    stage.effect("after a signal to a group")
