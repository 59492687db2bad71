"""The keeper: the process that makes a worker's jobs and waits for them, and that outlives the worker.

Started by the worker, told by it what to make, and otherwise without a will of its own. It is the parent of the jobs: how
a process ended is told to its parent only. If the worker is gone, however that came, the keeper writes the end of each job
into the ledger, for whoever adopts it, and goes with the last of them.

It is a process of its own, in a session of its own, so that what ends the worker (a signal to its group, a terminal that
closes, the want of memory) does not end it. It imports little: see docs/adr/0019.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from queuectl.clock import SystemClock, boot_ticks
from queuectl.jobs.outcome import Ending, Exited, Signalled
from queuectl.jobs.resources import ResourceReport
from queuectl.logs.frames import end_line
from queuectl.process.ended import Ended, Kept
from queuectl.process.ledger import Finish, Footprint, Identity, Ledger
from queuectl.process.libc import Words, descriptor_of, usage_of
from queuectl.process.making import Made
from queuectl.process.orders import BASE, LEAVE, LIMIT, MAKE, STAYS, WIRE, News
from queuectl.process.pool import Pool, usage_of_run
from queuectl.process.preparing import Ordered, Preparing, Rows
from queuectl.process.pump import Pump
from queuectl.process.row import Helper, Row
from queuectl.process.table import boot, started
from queuectl.process.wire import HungUp, Wire

NO_LIMIT: Final = 1 << 62  # until the worker says which
TOLD: Final = 4  # of what was made, see Made: the rest is for us


class Keeper:
    def __init__(self, wire: Wire, ledger: Ledger, pool: Pool) -> None:
        self._wire = wire
        self._ledger = ledger
        self._clock = SystemClock()
        self._pump = Pump(NO_LIMIT)
        self._pool = pool
        self._preparing = Preparing(self._pump, pool)
        self._helper = Helper()
        self._living: dict[int, Kept] = {}
        self._ended = Ended(ledger, pool)
        self._left: set[int] = set()  # the worker ends them, and says so in their logs
        self._unheeded: deque[tuple[int, Any, Sequence[int]]] = deque()
        self._news: list[News] = []

    def serve(self, signals: int) -> None:
        """Until the worker hangs up. `signals` becomes readable when a child ends."""
        watch = self._watch(signals)
        watch.register(self._wire, select.POLLIN)
        with contextlib.suppress(HungUp):
            while True:
                ready = self._wait(watch)
                if self._wire.fileno() in ready:
                    self._hear()
                if signals in ready:
                    _drain(signals)
                    self._look()
                while self._unheeded:
                    self._obey(*self._unheeded.popleft())
                self._tell([])
                self._pump.turn()
                self._ended.note_unheeded()

    def outlive(self, signals: int) -> None:
        """Write down how they end, until none is left, and nobody who could print into a log."""
        watch = self._watch(signals)
        while True:
            self._look(is_alone=True)
            self._ended.bury_all()
            if self.is_free:
                return
            self._wait(watch)
            _drain(signals)
            self._pump.turn()

    @property
    def is_free(self) -> bool:
        return not (self._living or self._ended or self._pump)

    def _watch(self, signals: int) -> select.poll:
        watch = select.poll()
        watch.register(signals, select.POLLIN)
        watch.register(self._pump, select.POLLIN)
        return watch

    def _wait(self, watch: select.poll) -> set[int]:
        patience = self._ended.patience(self._pump.patience())
        return {fd for fd, _ in watch.poll(None if patience is None else patience * 1000)}

    def _hear(self) -> None:
        """Take in what the worker says, for when there is time for it; but who it ends is known at once."""
        for order, what, bury in self._wire.receive():
            if order == LEAVE:
                self._left.update(pid for pid in what if pid in self._living)
                for pid in what:
                    if pid in self._living or pid in self._ended:
                        self._ended.note_killed(pid)
            self._unheeded.append((order, what, bury))

    def _obey(self, order: int, what: Any, bury: Sequence[int]) -> None:
        for pid in bury:
            self._ended.bury(pid)
        if order == BASE:
            self._preparing.base = Words(what)
        elif order == MAKE:
            self._make(what)
        elif order == LIMIT:
            self._pump.limit_to(what)

    def _make(self, rows: Rows) -> None:
        while rows:
            orders = self._preparing.all_of(rows)
            self._run(rows[: len(orders)], orders)
            rows = rows[len(orders) :]

    def _run(self, rows: Rows, orders: Sequence[Ordered]) -> None:
        row = Row([(order.making, order.out) for order in orders], self._clock)
        self._helper.join(row)
        while (number := row.take()) is not None:
            row.make(number)
        made = row.wait()
        for order in orders:
            order.close()
        self._record(rows, made, orders)

    def _keep(self, rows: Rows, made: Sequence[tuple[Made, float]], orders: Sequence[Ordered]) -> None:
        for (*_, ends_log, place, token), (one, at), order in zip(rows, made, orders, strict=True):
            if order.group is not None and not one.is_grouped:
                self._pool.discard(order.group)
            if order.pipe is None:
                continue
            if one.errors:
                self._pump.close(order.pipe)
                continue
            footprint = Footprint(one.pid, one.started, order.pipe.log_from)
            kept = Kept(place, token, footprint, order.pipe, at, order.group if one.is_grouped else None)
            self._living[one.pid] = kept
            if not ends_log:
                self._left.add(one.pid)
            with contextlib.suppress(OSError):  # a full disk: then there is the mark
                self._ledger.write(place, token, kept.footprint)

    def _record(self, rows: Rows, made: Sequence[tuple[Made, float]], orders: Sequence[Ordered]) -> None:
        self._keep(rows, made, orders)
        self._look()
        self._tell(
            [
                (*one[:TOLD], at, 0 if order.pipe is None else order.pipe.log_from, order.log_error)
                for (one, at), order in zip(made, orders, strict=True)
            ]
        )

    def _look(self, *, is_alone: bool = False) -> None:
        """Who has ended? What stands in its log about that is ours to write, unless nobody would hear of it, or the worker does."""
        ended = []
        for pid in self._living:
            status = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if status is not None:
                ended.append((pid, status))
        if ended and not is_alone:
            try:  # whom the worker has ended, of that it had sent word before
                while self._wire.has_news:
                    self._hear()
            except HungUp:
                is_alone = True
        # Those that another has begun to end, for our worker stands still: what their logs say of it, that one writes.
        theirs = self._ledger.added_ends() if ended else set()
        for pid, status in ended:
            kept = self._living.pop(pid)
            lasted = self._clock.monotonic() - kept.began
            exited = status.si_code == os.CLD_EXITED
            how = Exited(status.si_status) if exited else Signalled(status.si_status)
            code, number = (status.si_status, None) if exited else (None, status.si_status)
            line = None
            if not (is_alone or pid in self._left or kept.token in theirs):
                ending = Ending.SIGNALLED if not exited else Ending.FAILED if code else Ending.COMPLETED
                now_ms = self._clock.now_ms()
                line = end_line(ending, exit_code=code, signal=number, error=None, duration=lasted, now_ms=now_ms)
            self._left.discard(pid)
            if number == signal.SIGKILL:
                self._ended.note_killed(pid)
            # Before anybody is told: all that it has printed is in its log by then.
            log_to = self._pump.finish(kept.pipe, line)
            measured = usage_of(pid)
            if measured is None or kept.group is None:
                spent = ResourceReport(None if measured is None else usage_of_run(measured))
            else:
                spent, group = self._pool.spent(kept.group, measured, lasted=lasted)
                kept = kept._replace(group=group)
            self._ended.add(pid, kept, Finish(how, boot_ticks(), log_to, spent))
            used = None if spent.usage is None else tuple(spent.usage)
            self._news.append((pid, code, number, lasted, log_to, used, spent.out_of_memory))

    def _tell(self, made: Sequence[tuple[Any, ...]]) -> None:
        if made or self._news:
            news, self._news = self._news, []
            self._wire.send((made, news))


def main() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD,))
    signals = descriptor_of(signal.SIGCHLD)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP, signal.SIGUSR1):
        signal.signal(number, lambda *_: None)  # whoever ends a whole service means the worker, and the jobs
    os.set_inheritable(WIRE, False)
    wire = Wire(socket.socket(fileno=WIRE))
    try:
        lock = wire.take_over()
    except HungUp:  # it did not come to be a worker
        return
    ledger = Ledger(sys.argv[-1], join=True)
    me = Identity(os.getpid(), started(os.getpid()) or 0, boot())
    with contextlib.suppress(OSError):  # a full disk: then nobody will adopt its jobs
        ledger.sign(me)
    pool = Pool(me)
    keeper = Keeper(wire, ledger, pool)
    keeper.serve(signals)
    if not keeper.is_free:
        with contextlib.suppress(HungUp):
            wire.send(STAYS)
    # Only now may others take the worker for dead: nothing more will begin, and what has begun stands in the ledger.
    os.close(lock)
    keeper.outlive(signals)
    pool.close()
    os._exit(0)


def _drain(fd: int) -> None:
    with contextlib.suppress(BlockingIOError):
        os.read(fd, 4096)
