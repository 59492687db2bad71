"""The keeper: the process that makes a worker's jobs and waits for them, and that outlives the worker.

Started by the worker, told by it what to make, and otherwise without a will of its own. It is the parent of the jobs: how
a process ended is told to its parent only. If the worker is gone, however that came, the keeper writes the end of each job
into the ledger, for whoever adopts it, and goes with the last of them.

It is a process of its own, in a session of its own, so that what ends the worker (a signal to its group, a terminal that
closes, the want of memory) does not end it. It imports little, and it has no thread: see docs/adr/0019.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from queuectl.clock import SystemClock, boot_ticks
from queuectl.job.outcome import Exited, Signalled
from queuectl.process.ledger import Finish, Footprint, Identity, Ledger
from queuectl.process.libc import Words
from queuectl.process.making import Made, Making
from queuectl.process.table import started
from queuectl.process.wire import HungUp, Wire

# The descriptors that it is started with.
WIRE: Final = 3
LOCK: Final = 4

# So many of a row may be left to make when the worker is told of the others. With more, it settles what has ended in smaller
# and dearer portions; with fewer, there is nothing to make while it settles.
FEW: Final = 2

BASE, MAKE, BURY = range(3)


class _Kept(NamedTuple):
    slot: int
    token: str
    footprint: Footprint


class Keeper:
    def __init__(self, wire: Wire, ledger: Ledger) -> None:
        self._wire = wire
        self._ledger = ledger
        self._clock = SystemClock()
        self._null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self._base = Words([])
        self._living: dict[int, _Kept] = {}
        self._ended: dict[int, tuple[_Kept, Finish]] = {}  # and not buried: its number stays its own until then
        self._news: list[tuple[int, int | None, int | None]] = []  # pid, exit code or signal

    def serve(self, signals: int) -> None:
        """Until the worker hangs up. `signals` becomes readable when a child ends."""
        watch = select.poll()
        watch.register(self._wire, select.POLLIN)
        watch.register(signals, select.POLLIN)
        with contextlib.suppress(HungUp):
            while True:
                ready = {fd for fd, _ in watch.poll()}
                if signals in ready:
                    _drain(signals)
                    self._look()
                if self._wire.fileno() in ready:
                    for message in self._wire.receive():
                        self._obey(*message)
                self._tell([])

    def outlive(self, signals: int) -> None:
        """Write down how they end, until none is left."""
        watch = select.poll()
        watch.register(signals, select.POLLIN)
        while True:
            self._look()
            for pid, (kept, finish) in self._ended.items():
                with contextlib.suppress(OSError):  # a full disk: then nobody will know
                    self._ledger.write(kept.slot, kept.token, kept.footprint._replace(finish=finish))
                _bury(pid)
            self._ended.clear()
            if not self._living:
                return
            watch.poll()
            _drain(signals)

    def _obey(self, order: int, what: Any, bury: Sequence[int]) -> None:
        for pid in bury:
            self._ended.pop(pid, None)
            _bury(pid)
        if order == BASE:
            self._base = Words(what)
        elif order == MAKE:
            self._make(what)

    def _make(self, rows: Sequence[tuple[Any, ...]]) -> None:
        makings = []
        outs = [self._wire.descriptors.popleft() for _ in rows]
        for (programs, argv, base, env, cwd, *_), out in zip(rows, outs, strict=True):
            words = self._base if base is None else Words(base)
            makings.append(Making(programs, argv, words, env, cwd=cwd, descriptors=(self._null, out, out)))
        told = 0
        made: list[tuple[Made, float]] = []
        for number, making in enumerate(makings):
            if len(makings) - number == FEW and number:
                self._record(rows[told:number], made[told:])
                self._tell(made[told:])
                told = number
            at = self._clock.monotonic()
            made.append((making.run(), at))
        self._record(rows[told:], made[told:])
        self._tell(made[told:])
        for out in outs:
            os.close(out)

    def _record(self, rows: Sequence[tuple[Any, ...]], made: Iterable[tuple[Made, float]]) -> None:
        for (*_, slot, token, log_from), (one, _) in zip(rows, made, strict=True):
            if not one.errors:
                kept = _Kept(slot, token, Footprint(one.pid, one.started, log_from))
                self._living[one.pid] = kept
                with contextlib.suppress(OSError):  # a full disk: then there is the mark
                    self._ledger.write(slot, token, kept.footprint)
        self._look()

    def _look(self) -> None:
        """Who has ended?"""
        for pid in list(self._living):
            status = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if status is None:
                continue
            exited = status.si_code == os.CLD_EXITED
            how = Exited(status.si_status) if exited else Signalled(status.si_status)
            self._ended[pid] = self._living.pop(pid), Finish(how, boot_ticks())
            self._news.append((pid, *((status.si_status, None) if exited else (None, status.si_status))))

    def _tell(self, made: Sequence[tuple[Made, float]]) -> None:
        if made or self._news:
            news, self._news = self._news, []
            self._wire.send(([(*one, at) for one, at in made], news))


def main() -> None:
    signals, ring = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP, signal.SIGUSR1):
        signal.signal(number, lambda *_: None)  # whoever ends a whole service means the worker, and the jobs
    for descriptor in (WIRE, LOCK):
        os.set_inheritable(descriptor, False)
    ledger = Ledger(sys.argv[-1], join=True)
    with contextlib.suppress(OSError):  # a full disk: then nobody will adopt its jobs
        ledger.sign(Identity(os.getpid(), started(os.getpid()) or 0))
    keeper = Keeper(Wire(socket.socket(fileno=WIRE)), ledger)
    keeper.serve(signals)
    # Only now may others take the worker for dead: nothing more will begin, and what has begun stands in the ledger.
    os.close(LOCK)
    keeper.outlive(signals)
    os._exit(0)


def _bury(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


def _drain(fd: int) -> None:
    with contextlib.suppress(BlockingIOError):
        while os.read(fd, 4096):
            pass
