"""The system calls of the modules under test, on their way to the simulated machine: the one list of what stands in for what."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import queuectl.filelock
import queuectl.logs.reader
import queuectl.logs.rotation
import queuectl.logs.writer
import queuectl.maintenance.adoption
import queuectl.maintenance.rescuer
import queuectl.process.journal
import queuectl.store.sqlite.claims
import queuectl.store.sqlite.connection
import queuectl.store.sqlite.wakeup
import queuectl.worker.executor
import queuectl.worker.launcher
import queuectl.worker.slots
from queuectl.process import adopted, tree
from queuectl.process.model import Child, ProcessInfo
from tests.sim.host import TICK, Host, kill_group_of
from tests.sim.pool import Pool
from tests.sim.stage import AFTER_A_SIGNAL, Stage

AHEAD = 3  # in one of so many seeds
NO_CGROUPS = SimpleNamespace(group_of=lambda _: None, members=lambda _: (), kill_group_of=lambda _: None)


@contextlib.contextmanager
def installed(stage: Stage, pool: Pool) -> Iterator[None]:
    files, quiet_files = Files(stage, is_seen=True), Files(stage, is_seen=False)
    system = System(stage)
    numbers = itertools.count(1)
    stand_ins: list[tuple[Any, str, Any]] = [
        (queuectl.filelock, "os", files),
        (queuectl.filelock, "fcntl", Locks(stage)),
        (queuectl.logs.reader, "os", quiet_files),
        (queuectl.logs.writer, "os", files),
        (queuectl.logs.rotation, "os", files),
        (queuectl.process.journal, "os", files),
        (queuectl.process.journal, "system", system),
        (queuectl.worker.launcher, "os", quiet_files),
        (queuectl.worker.launcher, "system", system),
        (queuectl.worker.executor, "os", files),
        (queuectl.maintenance.rescuer, "os", files),
        (queuectl.maintenance.rescuer, "system", system),
        (queuectl.maintenance.adoption, "os", files),
        (queuectl.store.sqlite.wakeup, "os", quiet_files),
        (queuectl.store.sqlite.connection, "sqlite3", pool),
        # A process that waits for a lock asks again and again: rarely enough that it does not take all the time there is.
        (queuectl.store.sqlite.connection, "RETRY_EVERY", 0.05),
        # The same in each play, and short, for people who read them.
        (queuectl.store.sqlite.claims, "new_tokens", lambda count: [f"t{next(numbers)}" for _ in range(count)]),
        (adopted, "os", quiet_files),
        (adopted, "system", system),
        (adopted, "TICK", TICK),
        (tree, "system", system),
        (tree, "os", SimpleNamespace(killpg=system.kill_group)),
        (tree, "cgroups", NO_CGROUPS),
    ]
    if stage.seed % AHEAD == 0:  # simulated jobs take long: here workers claim ahead all the same
        stand_ins += [
            (queuectl.worker.slots, "SHORT_JOB", 10.0),
            (queuectl.worker.slots, "SHORT_JOBS_IN_A_ROW", 1),
            (queuectl.worker.slots, "STALE_AFTER", stage.seed % 7 / 5),
        ]
    before = [(module, name, getattr(module, name)) for module, name, _ in stand_ins]
    try:
        for module, name, stand_in in stand_ins:
            setattr(module, name, stand_in)
        yield
    finally:
        for module, name, real in before:
            setattr(module, name, real)


class System:
    """What can be known about processes: of the host of the process that asks. See queuectl/process/system.py."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def _host(self) -> Host:
        host: Host = self._stage.me().host
        return host

    def find(self, pid: int) -> ProcessInfo | None:
        process = self._host().processes.get(pid)
        return None if process is None else process.info

    def processes(self) -> list[ProcessInfo]:
        return [process.info for process in self._host().living()]

    def tokens(self, pid: int) -> list[str]:
        process = self._host().processes.get(pid)
        return [process.token] if process is not None and process.token else []

    def command_line(self, pid: int) -> str:
        process = self._host().processes.get(pid)
        return "" if process is None else process.command_line

    def open_pidfd(self, child: Child) -> int | None:
        me = self._stage.here()
        process = self._host().processes.get(child.pid)
        if process is None or process.started != child.started or process.how is not None:
            return None
        fd = self._host().pin(child.pid)
        me.descriptors.add(fd)
        return fd

    def boot_id(self) -> str:
        return self._host().machine

    def now_ticks(self) -> int:
        return self._host().ticks()

    def send_signal(self, number: int, process: ProcessInfo) -> None:
        host = self._host()
        pinned = host.processes.get(process.pid)
        if pinned is None or pinned.started != process.started:
            return
        self._stage.effect("before a signal")
        if host.processes.get(process.pid) is pinned:  # a descriptor is of a process, not of its number
            host.signal(process.pid, number)
            self._stage.note(f"sends signal {number} to process {process.pid}")
            self._stage.effect(AFTER_A_SIGNAL)

    def kill_group(self, group: int, number: int) -> None:
        kill_group_of(self._stage, self._host(), group, number)


class Files:
    """`os`, as far as it is about files: real ones, but closed when the participant that has them open crashes, and a write may fail."""

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
        if self._is_seen and not self._stage.is_aside:
            self._stage.effect("after a write")
        return written

    def pwrite(self, fd: int, data: bytes, offset: int) -> int:
        self._before_write()
        return os.pwrite(fd, data, offset)

    def unlink(self, path: str) -> None:
        if self._stage.is_aside:
            os.unlink(path)
            return
        if self._stage.me().is_gone:
            return
        if self._is_seen:
            self._stage.effect("before an unlink")
        os.unlink(path)

    def rename(self, path: str, new: str) -> None:
        if not self._stage.is_aside:
            self._stage.effect("before a rename")
        os.rename(path, new)
        if not self._stage.is_aside:
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
