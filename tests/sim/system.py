"""The system calls of the modules under test, on their way to the simulated machine: the one list of what stands in for what."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import os
import signal
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import queuectl.filelock
import queuectl.logs.files
import queuectl.logs.locking
import queuectl.logs.writing
import queuectl.maintenance.adoption
import queuectl.maintenance.rescue
import queuectl.process.ledger
import queuectl.store.sqlite.claims
import queuectl.store.sqlite.connection
import queuectl.store.sqlite.wakeup
import queuectl.worker.launch
import queuectl.worker.reserve
import queuectl.worker.runs
from queuectl.process import ending, table, watch
from queuectl.process.table import Entry
from tests.sim.machine import TICK, Host, kill_group_of
from tests.sim.pool import Pool
from tests.sim.stage import AFTER_A_SIGNAL, Stage

AHEAD = 3  # in one of so many seeds


@contextlib.contextmanager
def installed(stage: Stage, pool: Pool) -> Iterator[None]:
    files, quiet_files = Files(stage, is_seen=True), Files(stage, is_seen=False)
    kernel = Kernel(stage)
    numbers = itertools.count(1)
    stand_ins: list[tuple[Any, str, Any]] = [
        (queuectl.filelock, "os", files),
        (queuectl.filelock, "fcntl", Locks(stage)),
        (queuectl.logs.files, "os", files),
        (queuectl.logs.writing, "os", files),
        (queuectl.logs.locking, "fcntl", WaitingLocks(stage)),
        (queuectl.process.ledger, "os", files),
        (queuectl.process.ledger, "boot", kernel.boot),
        (queuectl.worker.launch, "os", quiet_files),
        (queuectl.worker.launch, "boot_ticks", kernel.ticks),
        (queuectl.worker.runs, "os", files),
        (queuectl.maintenance.rescue, "os", files),
        (queuectl.maintenance.rescue, "boot_ticks", kernel.ticks),
        (queuectl.maintenance.adoption, "os", files),
        (queuectl.store.sqlite.wakeup, "os", quiet_files),
        (queuectl.store.sqlite.connection, "sqlite3", pool),
        # Whoever waits for a lock asks again and again: rarely enough that it does not take all the time there is.
        (queuectl.store.sqlite.connection, "RETRY_EVERY", 0.05),
        # Not by chance of the kernel's, and short: they are read by people.
        (queuectl.store.sqlite.claims, "new_tokens", lambda count: [f"t{next(numbers)}" for _ in range(count)]),
        (table, "entry", kernel.entry),
        (watch, "entry", kernel.entry),
        (watch, "os", SimpleNamespace(pidfd_open=kernel.pin_for_long, close=quiet_files.close)),
        (watch, "boot_ticks", kernel.ticks),
        (watch, "TICK", TICK),
        (ending, "entry", kernel.entry),
        (ending, "entries", kernel.entries),
        (ending, "marks", kernel.marks),
        (ending, "group_of", lambda _: None),  # the simulated machine has no control groups
        (ending, "os", SimpleNamespace(pidfd_open=kernel.pin, close=lambda _: None, killpg=kernel.kill_group)),
        (ending, "signal", SimpleNamespace(SIGKILL=signal.SIGKILL, pidfd_send_signal=kernel.send)),
    ]
    if stage.seed % AHEAD == 0:  # simulated jobs take long: here workers claim ahead all the same
        stand_ins += [
            (queuectl.worker.reserve, "BRIEF", 10.0),
            (queuectl.worker.reserve, "IN_A_ROW", 1),
            (queuectl.worker.reserve, "PATIENCE", stage.seed % 7 / 5),
        ]
    before = [(module, name, getattr(module, name)) for module, name, _ in stand_ins]
    try:
        for module, name, stand_in in stand_ins:
            setattr(module, name, stand_in)
        yield
    finally:
        for module, name, real in before:
            setattr(module, name, real)


class Kernel:
    """What can be asked about processes: of the machine of whoever asks."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def _host(self) -> Host:
        host: Host = self._stage.me().host
        return host

    def entry(self, pid: int) -> Entry | None:
        process = self._host().processes.get(pid)
        return None if process is None else process.entry

    def entries(self) -> list[Entry]:
        return [process.entry for process in self._host().living()]

    def marks(self, pid: int) -> list[str]:
        process = self._host().processes.get(pid)
        return [process.token] if process is not None and process.token else []

    def pin(self, pid: int) -> int:
        if pid not in self._host().processes:
            raise ProcessLookupError
        return pid

    def pin_for_long(self, pid: int) -> int:
        me = self._stage.here()
        fd = self._host().pin(pid)
        me.descriptors.add(fd)
        return fd

    def boot(self) -> str:
        return self._host().machine

    def ticks(self) -> int:
        return self._host().ticks()

    def send(self, pid: int, number: int) -> None:
        host = self._host()
        pinned = host.processes.get(pid)
        self._stage.effect("before a signal")
        if host.processes.get(pid) is not pinned:  # a descriptor is of a process, not of its number
            raise ProcessLookupError
        host.signal(pid, number)
        self._stage.note(f"sends signal {number} to process {pid}")
        self._stage.effect(AFTER_A_SIGNAL)

    def kill_group(self, group: int, number: int) -> None:
        kill_group_of(self._stage, self._host(), group, number)


class Files:
    """`os`, as far as it is about files: real ones, but closed when whoever has them open crashes, and a write may fail."""

    def __init__(self, stage: Stage, *, is_seen: bool) -> None:
        self._stage = stage
        self._is_seen = is_seen  # whether these calls are effects

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def open(self, path: str, flags: int, mode: int = 0o777) -> int:
        if self._stage.is_aside:
            return os.open(path, flags, mode)
        me = self._stage.here()
        fd = os.open(path, flags, mode)
        me.descriptors.add(fd)
        return fd

    def close(self, fd: int) -> None:
        if self._stage.is_aside:
            os.close(fd)
            return
        descriptors = self._stage.me().descriptors
        if fd in descriptors:  # else the crash has closed it
            descriptors.discard(fd)
            os.close(fd)

    def write(self, fd: int, data: bytes) -> int:
        self._before_write()
        written = os.write(fd, data)
        if self._is_seen:
            self._stage.effect("after a write")
        return written

    def pwrite(self, fd: int, data: bytes, offset: int) -> int:
        self._before_write()
        return os.pwrite(fd, data, offset)

    def unlink(self, path: str) -> None:
        if self._stage.me().is_gone:
            return
        if self._is_seen:
            self._stage.effect("before an unlink")
        os.unlink(path)

    def rename(self, path: str, new: str) -> None:
        self._stage.effect("before a rename")
        os.rename(path, new)
        self._stage.effect("after a rename")

    def _before_write(self) -> None:
        if not self._stage.is_aside:
            self._stage.here()
        if self._is_seen:
            if not self._stage.is_aside:
                self._stage.effect("before a write")
            if self._stage.strikes(self._stage.chances.log):
                self._stage.note("cannot write: the disk is full")
                self._stage.me().refused_at = self._stage.now
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Locks:
    LOCK_EX, LOCK_SH, LOCK_NB = fcntl.LOCK_EX, fcntl.LOCK_SH, fcntl.LOCK_NB

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def flock(self, fd: int, how: int) -> None:
        self._stage.effect("before a lock")
        fcntl.flock(fd, how)
        self._stage.effect("after a lock")


class WaitingLocks(Locks):
    """A lock that is waited for, while the others go on."""

    def flock(self, fd: int, how: int) -> None:
        while True:
            try:
                fcntl.flock(fd, how | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                self._stage.wait(0.01)
