"""The control groups of a keeper's runs. One that nobody is in any more serves the next run: to make one costs as much as a tenth of a
start."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from queuectl.jobs.resources import ResourceReport, Usage
from queuectl.process.between import Between
from queuectl.process.cgroups import POPULATED, PREFIX, read_file, remove, write_file
from queuectl.process.ledger import Identity
from queuectl.process.place import Place, find_place
from queuectl.process.table import boot, entry

MOST_FREE: Final = 64  # the rest is made anew when it is needed
BRIEF: Final = 0.05  # seconds
_MICROSECONDS: Final = 1000  # in a millisecond

Measured = Sequence[int]  # see libc.usage_of


class Bounds(NamedTuple):
    """What all processes of a run may have together."""

    memory: int | None = None
    processes: int | None = None
    nice: int = 0


NO_BOUNDS: Final = Bounds()


class Group(NamedTuple):
    """`used`: user and system, in microseconds, by others before."""

    name: str
    bounds: Bounds
    used: tuple[int, int] = (0, 0)


class Opened(NamedTuple):
    group: Group
    at: int  # a descriptor of its directory


class Pool:
    """Empty where there is no place for groups: then nobody gets one."""

    def __init__(self, keeper: Identity) -> None:
        self._place = find_place()
        self._at = -1
        self._free: dict[Bounds, list[Group]] = {}
        self._count = 0  # of those
        self._left: deque[Group] = deque()  # somebody is still in them
        self._number = 0
        self._namespace = boot().rpartition("/")[2]
        self._name = f"{PREFIX}{self._namespace}-{keeper.pid}-{keeper.started}-{os.urandom(3).hex()}"
        if self._place is not None:
            self._open(self._place)

    def _open(self, place: Place) -> None:
        try:
            self._at = os.open(place.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            self._sweep(place.directory)
        except OSError:
            self._place = None

    def _sweep(self, directory: str) -> None:
        """What keepers have left that are gone, of our table of processes: of another we cannot know who is."""
        for name in os.listdir(directory):
            if name.startswith(f"{PREFIX}{self._namespace}-"):
                pid, its_start = map(int, name.removeprefix(PREFIX).split("-")[1:3])
                found = entry(pid)
                if found is None or found.is_over or found.started != its_start:
                    remove(f"{directory}/{name}")

    def bounds(self, between: Between) -> Bounds:
        """What a group can see to, of all that is asked for."""
        if self._place is None:
            return NO_BOUNDS
        limits, controllers = dict(between.limits), self._place.controllers
        return Bounds(
            limits.get(resource.RLIMIT_AS) if "memory" in controllers else None,
            limits.get(resource.RLIMIT_NPROC) if "pids" in controllers else None,
            (between.nice or 0) if "cpu" in controllers else 0,
        )

    def take(self, bounds: Bounds) -> Group | None:
        """None: there is none to be had."""
        if self._place is None:
            return None
        if free := self._free.get(bounds):
            self._count -= 1
            return free.pop()
        self._number += 1
        group = Group(f"{self._name}-{self._number}", bounds)
        try:
            os.mkdir(group.name, dir_fd=self._at)
        except OSError:  # somebody has limited how many there may be, or has taken the place from us
            return None
        try:
            self._bind(group)
        except OSError:
            self.discard(group)
            return None
        return group

    def _bind(self, group: Group) -> None:
        memory, processes, nice = group.bounds
        if memory is not None:
            self._write(group, "memory.max", memory)
            # All of it or nothing: a job of which a part is missing would go on in ways that nobody has thought of.
            self._write(group, "memory.oom.group", 1)
            with contextlib.suppress(OSError):  # a kernel that does not count it
                self._write(group, "memory.swap.max", 0)
        if processes is not None:
            self._write(group, "pids.max", processes)
        if nice:
            self._write(group, "cpu.weight.nice", nice)

    def open(self, group: Group) -> Opened | None:
        """None: somebody has removed it. Raises OSError for want of descriptors."""
        try:
            return Opened(group, os.open(group.name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._at))
        except FileNotFoundError:
            return None
        except OSError:
            self.give_back(group)
            raise

    def spent(self, group: Group, measured: Measured, *, lasted: float) -> tuple[ResourceReport, Group]:
        """What a run has used, of which its own process has measured so much; and the group, for the next."""
        user, system, *rest = measured
        before_user, before_system = group.used
        if lasted < BRIEF and group.bounds.memory is None:
            # To ask costs more than what there may be to learn.
            used = before_user + user, before_system + system
            return ResourceReport(usage_of_run(measured)), group._replace(used=used)
        try:
            cpu = _facts(self._read(group, "cpu.stat"))
            events = {} if group.bounds.memory is None else _facts(self._read(group, "memory.events"))
            used = cpu["user_usec"], cpu["system_usec"]
        except (OSError, KeyError, ValueError):
            return ResourceReport(usage_of_run(measured)), group
        # How a whole is divided into the two is an estimate each time.
        times = max(user, used[0] - before_user), max(system, used[1] - before_system)
        usage = usage_of_run((*times, *rest))._replace(peak_memory_bytes=self._peak(group))
        # By its own limit, and not by that of a group around it, which is not its doing.
        is_out = bool(events.get("oom") and events.get("oom_kill"))
        return ResourceReport(usage, is_out), group._replace(used=used)

    def _peak(self, group: Group) -> int | None:
        """Of a group that others were in before, it may be theirs."""
        if group.bounds.memory is None:
            return None
        try:
            return int(self._read(group, "memory.peak"))
        except (OSError, ValueError):  # a kernel before 5.19
            return None

    def give_back(self, group: Group, *, is_clean: bool = True) -> None:
        """`is_clean`: nobody has killed what was in it, see `kill` of cgroups.py. Some kernels (6.18) would kill at once whoever is made in
        such a one afterwards."""
        if self._left:
            self._put_away(self._left.popleft(), is_clean=False)
        # How high its memory was stays with it, and how often that was too little: each run is to be told its own.
        self._put_away(group, is_clean=is_clean and group.bounds.memory is None)

    def _put_away(self, group: Group, *, is_clean: bool) -> None:
        try:
            is_used = POPULATED in self._read(group, "cgroup.events")
        except OSError as exc:
            if exc.errno in (errno.EMFILE, errno.ENFILE):
                self._left.append(group)
            return  # else somebody has removed it
        if is_used:
            self._left.append(group)
        elif not is_clean or self._count >= MOST_FREE:
            self.discard(group)
        else:
            self._free.setdefault(group.bounds, []).append(group)
            self._count += 1

    def close(self) -> None:
        """What is still used is left to its users, and removed by whoever comes after us."""
        for group in (*(one for some in self._free.values() for one in some), *self._left):
            self.discard(group)
        if self._at >= 0:
            os.close(self._at)

    def discard(self, group: Group) -> None:
        """It is of no use to anybody: nobody is in it, or can be put there."""
        assert self._place is not None
        remove(f"{self._place.directory}/{group.name}")

    def _read(self, group: Group, file: str) -> str:
        return read_file(f"{group.name}/{file}", at=self._at)

    def _write(self, group: Group, file: str, value: int) -> None:
        write_file(f"{group.name}/{file}", str(value), at=self._at)


def usage_of_run(measured: Measured) -> Usage:
    user, system, *rest = measured
    return Usage._make((user // _MICROSECONDS, system // _MICROSECONDS, *rest, None))


def _facts(text: str) -> dict[str, int]:
    lines: Sequence[list[str]] = [line.split() for line in text.splitlines()]
    return {name: int(value) for name, value in lines}
