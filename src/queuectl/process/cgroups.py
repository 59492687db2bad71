"""Control groups of Linux (cgroup v2): one for each run, with its limits, its usage, and a way to kill all of it at once.

A run that has a control group is alone in it, and nothing that it starts can leave it: neither a new session nor another environment
helps. Which run a process belongs to is read from /proc. See docs/internals/adr/0040-put-each-run-in-its-own-cgroup.md.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import resource
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from queuectl.jobs.resources import ResourceReport, Usage
from queuectl.process.linux import PROC, find, unescape
from queuectl.process.model import Identity, raise_if_blind
from queuectl.process.system import IS_PORTABLE

PREFIX: Final = "queuectl-run-"
# The group of a worker and its supervisor: a group whose children have controllers must have no processes of its own.
WORKER_GROUP: Final = "queuectl-worker"
CONTROLLERS: Final = ("memory", "pids", "cpu")
MAX_FREE_GROUPS: Final = 64
BRIEF_RUN: Final = 0.05  # seconds: reading the usage of the group would cost more than it tells
_POPULATED: Final = "populated 1"  # in `cgroup.events`
_FROZEN: Final = "frozen 1"
_VERSION_2: Final = "0::"  # the line of version 2 in /proc/PID/cgroup
_SYSTEMD: Final = "/run/systemd/system"  # as sd_booted(3) has it
_DELEGATED: Final = ("trusted.delegate", "user.delegate")
_READ_SIZE: Final = 1 << 16
_MICROSECONDS: Final = 1000  # in a millisecond


# ── which group a process is in ─────────────────────────────────────────────────────────────────────────────────────


def directory_of(pid: int | str = "self") -> str | None:
    """The control group of a process; None if there is none that we can see."""
    mounted = None if IS_PORTABLE else _mount()
    if mounted is None:
        return None
    where, root = mounted
    try:
        lines = _read(f"{PROC}/{pid}/cgroup").splitlines()
    except OSError as exc:  # it has ended
        raise_if_blind(exc)
        return None
    path = next((line.removeprefix(_VERSION_2) for line in lines if line.startswith(_VERSION_2)), None)
    # A group outside of our namespace begins with "..".
    if path is None or path.startswith("/..") or not f"{path}/".startswith(root.rstrip("/") + "/"):
        return None
    return os.path.normpath(where + "/" + path.removeprefix(root))


def group_of(pid: int | str) -> str | None:
    """The control group of the run that this process belongs to; None if it belongs to none."""
    found = directory_of(pid)
    if found is None or PREFIX not in found:
        return None
    # The innermost one: a job may be a worker, whose runs have groups below.
    parts = found.split("/")
    last = max(place for place, part in enumerate(parts) if PREFIX in part)
    return "/".join(parts[: last + 1]) if parts[last].startswith(PREFIX) else None


def leave_group() -> None:
    """Leave the control group of the run that this process belongs to, if we may: a worker that a job starts outlives the job."""
    if (group := group_of("self")) is None:
        return
    parent = os.path.dirname(group)
    for directory in (f"{parent}/{WORKER_GROUP}", parent):
        with contextlib.suppress(OSError):
            _write(f"{directory}/cgroup.procs", "0")
            return


def members(group: str) -> Iterator[int]:
    """The PIDs in it and in groups below it."""
    for folder, _, _ in os.walk(group, onerror=raise_if_blind):
        try:
            pids = _read(f"{folder}/cgroup.procs").split()
        except OSError as exc:  # removed meanwhile
            raise_if_blind(exc)
            continue
        yield from map(int, pids)


def kill_group_of(pid: int) -> None:
    """SIGKILL to the whole control group of the run that this process belongs to, in one step: forks in progress are killed as well."""
    if (group := group_of(pid)) is not None:
        with contextlib.suppress(OSError):  # removed, or a kernel before 5.14: then signals are sent one by one
            _write(f"{group}/cgroup.kill", "1")


def is_frozen(pid: int) -> bool:
    """Whether its control group is frozen, as by `docker pause` and `systemctl freeze`."""
    group = directory_of(pid)
    try:
        return group is not None and _FROZEN in _read(f"{group}/cgroup.events")
    except OSError:  # the root has no such file; a group may be removed
        return False


def _remove(group: str) -> None:
    """With the groups that a job has made in it, unless a process is still there."""
    with contextlib.suppress(OSError):
        if _POPULATED not in _read(f"{group}/cgroup.events"):
            for folder, _, _ in os.walk(group, topdown=False):
                os.rmdir(folder)


@functools.cache
def _mount() -> tuple[str, str] | None:
    """Where cgroup v2 is mounted, and which group is at the top there."""
    with (
        contextlib.suppress(OSError),
        open(f"{PROC}/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file,
    ):
        for line in file:
            before, _, behind = line.partition(" - ")
            if behind.startswith("cgroup2 "):
                root, where = before.split()[3:5]
                return unescape(where), unescape(root)
    return None


# ── where a supervisor may create groups ────────────────────────────────────────────────────────────────────────────


class Parent(NamedTuple):
    """The group in which a supervisor creates those of its runs."""

    directory: str
    controllers: frozenset[str]


def find_parent() -> Parent | None:
    """Our own group if it was delegated to us: a service with `Delegate=yes`, a container, a host without systemd.

    Where systemd manages the groups, those that it has not delegated are not ours to change, even if root could.
    """
    own = directory_of()
    if own is None:
        return None
    directory = os.path.dirname(own) if os.path.basename(own) == WORKER_GROUP else own
    if not _is_delegated(directory):
        return None
    with contextlib.suppress(OSError):
        return Parent(directory, _enable(directory))
    return None


def _is_delegated(directory: str) -> bool:
    files = (directory, f"{directory}/cgroup.procs", f"{directory}/cgroup.subtree_control")
    if not all(os.access(path, os.W_OK) for path in files):
        return False
    if not os.path.isdir(_SYSTEMD) or any(_attribute(directory, name) == b"1" for name in _DELEGATED):
        return True
    # Before version 251 only root could read it. What a user may write is delegated, except for groups of the user's own manager.
    return os.geteuid() != 0 and "/user@" not in directory


def _attribute(path: str, name: str) -> bytes | None:
    try:
        return os.getxattr(path, name)
    except OSError:
        return None


def _enable(directory: str) -> frozenset[str]:
    """Enable controllers for the groups below. Returns those that are enabled. Raises OSError."""
    available = _read(f"{directory}/cgroup.controllers").split()
    for name in CONTROLLERS:
        if name in available and name not in _read(f"{directory}/cgroup.subtree_control").split():
            try:
                _write(f"{directory}/cgroup.subtree_control", f"+{name}")
            except OSError:
                # It contains processes: only the root group may have both processes and limited children.
                if _move_into_worker_group(directory):
                    with contextlib.suppress(OSError):
                        _write(f"{directory}/cgroup.subtree_control", f"+{name}")
    return frozenset(_read(f"{directory}/cgroup.subtree_control").split()).intersection(CONTROLLERS)


def _move_into_worker_group(directory: str) -> bool:
    """Move our worker and this supervisor into a group beside those of the runs, if no other process is in `directory`.

    Not under systemd, which would start the next worker of the service where it may not be any more, while jobs of this one continue:
    there `DelegateSubgroup=` does it, from version 254 on. Nor in the group of a run, whose first process has to stay where it is.
    """
    ours = {os.getppid(), os.getpid()}
    if os.path.isdir(_SYSTEMD) or PREFIX in directory:
        return False
    with contextlib.suppress(OSError):
        if not ours.issuperset(map(int, _read(f"{directory}/cgroup.procs").split())):
            return False
        with contextlib.suppress(FileExistsError):
            os.mkdir(f"{directory}/{WORKER_GROUP}")
        for pid in sorted(ours):
            _write(f"{directory}/{WORKER_GROUP}/cgroup.procs", str(pid))
        return True
    return False


# ── the groups of a supervisor's runs ───────────────────────────────────────────────────────────────────────────────


class GroupLimits(NamedTuple):
    """Limits for all processes of a run together. `memory` in bytes."""

    memory: int | None = None
    processes: int | None = None
    nice: int = 0

    @property
    def is_reusable(self) -> bool:
        """Whether a group with these limits can serve another run. The memory peak stays with a group, and a supervisor could not fork
        in one whose number of processes is limited."""
        return self.memory is None and self.processes is None


NO_GROUP_LIMITS: Final = GroupLimits()


class Group:
    """`user` and `system`: processor time that the group has counted for earlier runs and for the supervisor, in microseconds."""

    __slots__ = ("limits", "name", "system", "user")

    def __init__(self, name: str, limits: GroupLimits) -> None:
        self.name = name
        self.limits = limits
        self.user = self.system = 0.0

    def charge(self, user: float, system: float) -> None:
        self.user += user
        self.system += system


class CgroupPool:
    """The control groups of one supervisor. An empty group is used for the next run: creating one costs a tenth of a start.

    Between two starts the supervisor waits in the group of the next run without limits.

    Without a parent group there are none, and `take` returns None.
    """

    def __init__(self, supervisor: Identity) -> None:
        self._parent = find_parent()
        self._parent_fd = self._home_fd = -1
        self._free: dict[GroupLimits, list[Group]] = {}
        self._free_count = 0
        self._occupied: deque[Group] = deque()  # of ended runs that left processes behind
        self._number = 0
        self._next: Group | None = (
            None  # the group of the next run without limits: between two starts this process is in it
        )
        self._inside: Group | None = None  # this process is in it
        self._entered_at = (0.0, 0.0)  # our own user and system time when we entered it, in microseconds
        self._namespace = supervisor.boot.rpartition("/")[2]
        self._name = f"{PREFIX}{self._namespace}-{supervisor.pid}-{supervisor.started}-{os.urandom(3).hex()}"
        if self._parent is not None:
            try:
                self._open(self._parent.directory)
            except OSError:
                self._parent = None

    def _open(self, directory: str) -> None:
        self._parent_fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._home_fd = os.open(f"{directory_of()}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
        self._remove_abandoned(directory)

    def _remove_abandoned(self, directory: str) -> None:
        """Remove the groups of dead supervisors of this PID namespace: of another namespace we cannot know who is dead."""
        for name in os.listdir(directory):
            if name.startswith(f"{PREFIX}{self._namespace}-"):
                try:
                    pid, started = map(int, name.removeprefix(PREFIX).split("-")[1:3])
                except ValueError:  # made by another program
                    continue
                found = find(pid)
                if found is None or found.is_zombie or found.started != started:
                    _remove(f"{directory}/{name}")

    def limits(self, limits: Mapping[str, int], nice: int | None) -> GroupLimits:
        """Which of these limits a group can enforce."""
        if self._parent is None or not (limits or nice):
            return NO_GROUP_LIMITS
        controllers = self._parent.controllers
        return GroupLimits(
            limits.get("memory") if "memory" in controllers else None,
            limits.get("processes") if "pids" in controllers else None,
            (nice or 0) if "cpu" in controllers else 0,
        )

    def take(self, limits: GroupLimits) -> Group | None:
        """A group for one run; None if there is none to be had. Raises OSError if there are no descriptors."""
        if self._parent is None:
            return None
        if self._next is not None and limits == NO_GROUP_LIMITS:
            return self._next
        if free := self._free.get(limits):
            self._free_count -= 1
            return free.pop()
        self._number += 1
        group = Group(f"{self._name}-{self._number}", limits)
        try:
            os.mkdir(group.name, dir_fd=self._parent_fd)
        except OSError:  # the number of groups is limited, or the parent was taken from us
            return None
        return group

    def enter(self, group: Group) -> bool:
        """A process that is started from here on is in the group from its first instruction: the supervisor is in there until `leave`.
        Returns whether it is.

        Cheaper than a shell that moves itself (10 µs against 450 µs), and without a moment in which the job could start a process
        outside.
        """
        if group is self._next or self._enter(group):
            return True
        if self._next is not None:  # the run does not get the group of another one
            self._go_home()
            self._put_back(self._next, is_reusable=True)
            self._next = None
        return False

    def leave(self, group: Group) -> None:
        # The process runs: not even an error here may make it count as one that could not be started.
        self.enter_next(None if group is self._next else self._next)

    def _enter(self, group: Group) -> bool:
        try:
            self._write(group, "cgroup.procs", 0)
        except OSError:  # the group was removed: the run goes without
            return False
        self._note_move(group)
        return True

    def enter_next(self, group: Group | None = None) -> None:
        """Leave the group of a run for that of the next run without limits: this one, or another.

        A kernel with little to do takes 10 ms to move a process, because it waits for all processors. Here that delays the report of a
        start, and not the start.
        """
        self._next = None
        group = group or self.take(NO_GROUP_LIMITS)
        if group is not None and self._enter(group):
            self._next = group
        else:
            self._go_home()

    def _go_home(self) -> None:
        with contextlib.suppress(OSError):
            os.write(self._home_fd, b"0")
            self._note_move(None)

    def _note_move(self, to: Group | None) -> None:
        """Charge our own processor time to the group that we have left."""
        user, system = _own_cpu()
        if self._inside is not None:
            self._inside.charge(user - self._entered_at[0], system - self._entered_at[1])
        self._inside, self._entered_at = to, (user, system)

    def apply_limits(self, group: Group) -> None:
        """After the start: before it they would bind the supervisor, too. Raises OSError."""
        memory, processes, nice = group.limits
        if memory is not None:
            # All processes of a run are killed together: a job of which a part is missing would fail in strange ways.
            self._write(group, "memory.oom.group", 1)
            with contextlib.suppress(OSError):  # a kernel without swap accounting
                self._write(group, "memory.swap.max", 0)
            self._write(group, "memory.max", memory)
        if processes is not None:
            self._write(group, "pids.max", processes)
        if nice:
            self._write(group, "cpu.weight.nice", nice)

    def report(self, group: Group, usage: Usage, own: tuple[float, float], *, duration: float) -> ResourceReport:
        """The usage of all processes of a run. `usage` is that of the first process, `own` its user and system time in microseconds: rounded,
        they would add up to an error over thousands of brief runs."""
        if duration < BRIEF_RUN and group.limits.memory is None:
            group.charge(*own)
            return ResourceReport(usage)
        try:
            cpu = _numbers(self._read(group, "cpu.stat"))
            events = {} if group.limits.memory is None else _numbers(self._read(group, "memory.events"))
            # How the kernel divides the sum into the two is an estimate each time.
            user, system = max(own[0], cpu["user_usec"] - group.user), max(own[1], cpu["system_usec"] - group.system)
            group.user, group.system = cpu["user_usec"], cpu["system_usec"]
        except (OSError, KeyError, ValueError):
            return ResourceReport(usage)
        usage = usage._replace(
            cpu_user_ms=int(user) // _MICROSECONDS,
            cpu_system_ms=int(system) // _MICROSECONDS,
            peak_memory_bytes=self._peak(group),
        )
        # By its own limit, and not by that of a group above it.
        return ResourceReport(usage, bool(events.get("oom") and events.get("oom_kill")))

    def _peak(self, group: Group) -> int | None:
        """None if other runs were in the group before: the peak may be theirs."""
        if group.limits.memory is None:
            return None
        try:
            return int(self._read(group, "memory.peak"))
        except (OSError, ValueError):  # a kernel before 5.19
            return None

    def release(self, group: Group, *, was_killed: bool) -> None:
        """`was_killed`: through `cgroup.kill`. Some kernels (6.18) kill every process that is started in such a group later."""
        if self._occupied:
            self._put_back(self._occupied.popleft(), is_reusable=False)
        self._put_back(group, is_reusable=not was_killed and group.limits.is_reusable)

    def _put_back(self, group: Group, *, is_reusable: bool) -> None:
        try:
            is_occupied = _POPULATED in self._read(group, "cgroup.events")
        except OSError as exc:
            if exc.errno in (errno.EMFILE, errno.ENFILE):
                self._occupied.append(group)
            return  # otherwise the group was removed
        if is_occupied:
            self._occupied.append(group)
        elif not is_reusable or self._free_count >= MAX_FREE_GROUPS:
            self.remove(group)
        else:
            self._free.setdefault(group.limits, []).append(group)
            self._free_count += 1

    def close(self) -> None:
        """Groups that still have processes are removed by a later supervisor."""
        left = [*(one for some in self._free.values() for one in some), *self._occupied]
        if self._next is not None:
            left.append(self._next)
            self._go_home()
        for group in left:
            self.remove(group)

    def remove(self, group: Group) -> None:
        assert self._parent is not None
        _remove(f"{self._parent.directory}/{group.name}")

    def _read(self, group: Group, file: str) -> str:
        return _read(f"{group.name}/{file}", at=self._parent_fd)

    def _write(self, group: Group, file: str, value: int) -> None:
        _write(f"{group.name}/{file}", str(value), at=self._parent_fd)


def _own_cpu() -> tuple[float, float]:
    """User and system time of this process, in microseconds."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime * 1e6, used.ru_stime * 1e6


def _numbers(text: str) -> dict[str, int]:
    lines = [line.split() for line in text.splitlines()]
    return {name: int(value) for name, value in lines}


def _read(path: str, *, at: int | None = None) -> str:
    """Raises OSError."""
    # Not open(), whose buffers cost more than reading: this is called for every run. Nor are files kept open from run to run: each child has to
    # close them all before it becomes its program.
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=at)
    try:
        found = b""
        while more := os.read(fd, _READ_SIZE):  # the kernel returns a page at a time
            found += more
        return found.decode("utf-8", "surrogateescape")
    finally:
        os.close(fd)


def _write(path: str, text: str, *, at: int | None = None) -> None:
    """Raises OSError."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC, dir_fd=at)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
