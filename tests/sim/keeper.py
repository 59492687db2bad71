"""The keeper of a simulated worker: no participant, for it has no will of its own. What it is told to do it does soon, whatever
becomes of the worker; when that is gone, it writes down how its children end, unless it is gone itself."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable
from typing import Final, NamedTuple

from queuectl.jobs.outcome import Ending, Exited, Signalled
from queuectl.jobs.resources import ResourceReport, Usage
from queuectl.logs.files import begin_log
from queuectl.logs.frames import end_line
from queuectl.logs.writing import Writing
from queuectl.process.ended import HEED_WITHIN
from queuectl.process.ledger import Finish, Footprint, Identity, Ledger
from queuectl.process.orders import CannotLog
from queuectl.process.protocol import Begun, CannotSpawn, Order
from queuectl.process.watch import Child
from tests.sim.machine import TICK, Host, Process, Signals
from tests.sim.stage import Stage

LIMIT: Final = 1 << 20
PRINTED: Final = b"hello\n"  # by every process
LONG: Final = 8.0  # seconds: two leases


SPENT: Final = ResourceReport(Usage(1, 2, 3, 4, 5))  # by every process here


class _Kept(NamedTuple):
    slot: int
    token: str
    footprint: Footprint
    process: Process
    log: str
    began: float


class Told(NamedTuple):
    """What a worker is told of an end."""

    lasted: float
    log_to: int | None
    spent: ResourceReport


class Keeper:
    def __init__(
        self, stage: Stage, host: Host, ledger: str, signals: Signals, spawned: Callable[[Host, Process, Keeper], None]
    ) -> None:
        self.is_gone = False
        self.is_killed = (
            False  # else it goes when all of its children have ended and nothing more is to be told of them
        )
        self.noted: set[str] = set()  # tokens that stand in the ledger
        self.finished: set[str] = set()  # with their end
        self.refused: set[str] = set()  # whose end could not be written there: the disk was full
        self.orders: list[Order] = []
        self.begun: list[Begun] = []
        self.process = host.fork()
        self.machine = host.machine
        host.keepers.append(self)
        self._is_alone = False  # the worker is gone
        self.left: set[int] = set()  # the worker ends them, and says so in their logs
        self.told: dict[int, Told] = {}
        self._kept: dict[int, _Kept] = {}
        self._stage = stage
        self._host = host
        self._signals = signals
        self._spawned = spawned
        with stage.aside():
            self._ledger: Ledger | None = Ledger(ledger, join=True)
            try:
                self._ledger.sign(Identity(self.process.pid, self.process.started, host.machine))
            except OSError:  # a full disk: it cannot begin
                self._go()

    # ── for its worker ──────────────────────────────────────────────────────────────────────────────────────────────

    def make_soon(self) -> None:
        self._stage.later(self._stage.random.random() * 0.02, self.make_all)

    def make_all(self) -> None:
        while self.orders and not self.is_gone:
            self._make(self.orders.pop(0))

    def bury(self, pid: int) -> None:
        if self._kept.pop(pid, None) is not None:
            self.told.pop(pid, None)  # its number will be another's
            self.left.discard(pid)
            self._host.processes.pop(pid, None)

    def hang_up(self) -> None:
        """The worker is gone. Its lock is held until here: all that was ordered is made before anybody can know."""
        if not self._is_alone and not self.is_gone:
            self.make_all()
            self._is_alone = True
            self._write_down()

    def die(self) -> None:
        if not self.is_gone:
            self._stage.tell(f"keeper {self.process.pid} on {self._host.name} is killed")
            self.is_killed = True
            self._go()
            self._signals.is_pending = True

    # ── by itself ───────────────────────────────────────────────────────────────────────────────────────────────────

    def child_ended(self, child: Process) -> None:
        if self._is_alone:
            self._stage.later(self._stage.random.random() * 0.05, self._write_down)
        else:
            if (kept := self._kept.get(child.pid)) is not None:
                self.told[child.pid] = Told(self._stage.now - kept.began, self._close_log(kept), SPENT)
                self._stage.later(HEED_WITHIN * TICK, lambda: self._note_unheeded(kept))
            self._signals.is_pending = True

    def _note_unheeded(self, kept: _Kept) -> None:
        """Its worker has not written the end that it was told of: it may stand still."""
        pid = kept.process.pid
        if self._kept.get(pid) is kept and not (self.is_gone or self._is_alone):
            assert kept.process.how is not None
            if self._write(kept, Finish(kept.process.how, self._host.ticks(), self.told[pid].log_to, SPENT)):
                self.finished.add(kept.token)

    def _close_log(self, kept: _Kept) -> int | None:
        how = kept.process.how
        assert how is not None
        if kept.process.pid in self.left or (self._ledger and kept.token in self._ledger.added_ends()):
            return None
        code, number = (how.code, None) if isinstance(how, Exited) else (None, how.signal)
        ending = Ending.SIGNALLED if number else Ending.FAILED if code else Ending.COMPLETED
        line = end_line(ending, exit_code=code, signal=number, error=None, duration=0.1, now_ms=0)
        try:
            with self._stage.aside(), Writing(kept.log, limit=LIMIT) as log:
                log_to = max(log.size, kept.footprint.log_from)
                log.append_line(line)
                return log_to
        except OSError:
            return None

    def _make(self, order: Order) -> None:
        stage, host = self._stage, self._host
        self._signals.is_pending = True
        try:
            with stage.aside(), begin_log(order.log, order.head, is_first=order.is_first, limit=LIMIT) as begun:
                log_from = begun.size
        except OSError as exc:
            self.begun.append(Begun(CannotLog(exc), stage.now, 0))
            return
        if stage.strikes(stage.chances.unstartable):
            problem = CannotSpawn("the system has no room for another process")
            self.begun.append(Begun(problem, stage.now, log_from))
            return
        known = dict(word.split(b"=", 1) for word in order.env)
        token, job = order.token, known[b"QUEUECTL_JOB_ID"].decode()
        leader = host.fork(token=token, job=job, parent=self)
        self._give_fate(leader)
        if stage.random.random() < 0.2:  # somebody of its family, who may ignore what ends the leader
            child = host.fork(token=token, job=job, group=leader.pid)
            child.ignores_term = stage.random.random() < 0.5
            self._give_fate(child)
        with contextlib.suppress(OSError), open(order.log, "ab") as log:
            log.write(PRINTED)
        self._spawned(host, leader, self)
        self.begun.append(Begun(Child(leader.pid, leader.started), stage.now, log_from))
        footprint = Footprint(leader.pid, leader.started, log_from)
        kept = _Kept(order.place, token, footprint, leader, order.log, stage.now)
        self._kept[leader.pid] = kept
        if self._write(kept, None):
            self.noted.add(token)
        stage.tell(f"keeper {self.process.pid} makes process {leader.pid} for {job}, token {token}")

    def _give_fate(self, process: Process) -> None:
        chance, chances = self._stage.random.random, self._stage.chances
        seconds = chance() * 0.05 if chance() < chances.brief else chance() * chances.longest
        if chance() < chances.long:
            seconds = LONG
        process.ignores_term = chance() < 0.1
        code = 0 if chance() < 0.65 else 1 + int(chance() * 3)
        self._host.plan_end(process, seconds, code)
        if chance() < 0.05:  # somebody kills it
            self._stage.later(seconds / 2, lambda: self._host.end(process, Signalled(signal.SIGKILL)))

    def _write_down(self) -> None:
        if self.is_gone:
            return
        for pid, kept in list(self._kept.items()):
            if (how := kept.process.how) is not None:
                told = self.told.get(pid)
                finish = Finish(how, self._host.ticks(), None if told is None else told.log_to, SPENT)
                if self._write(kept, finish):
                    self.finished.add(kept.token)
                    self._stage.tell(f"keeper {self.process.pid} writes down {kept.token}, {how}")
                else:
                    self.refused.add(kept.token)
                self.bury(pid)
        if not self._kept:
            self._go()

    def _write(self, kept: _Kept, finish: Finish | None) -> bool:
        if self._ledger is None:
            return False
        try:
            with self._stage.aside():
                self._ledger.write(kept.slot, kept.token, kept.footprint._replace(finish=finish))
        except OSError:
            return False
        return True

    def close(self) -> None:
        if self._ledger is not None:
            with self._stage.aside():
                self._ledger.close()
            self._ledger = None

    def _go(self) -> None:
        self.is_gone = True
        self.close()
        self.orders.clear()
        self._host.processes.pop(self.process.pid, None)
        self._host.orphan([kept.process for kept in self._kept.values()])
        self._kept.clear()
