"""Control groups of the kernel (cgroup v2): where runs have theirs, who is in one, and the end of all of them at once.

A run that has one is the only one in it, and nothing that it starts leaves it by itself: neither a session of its own nor another
environment helps. Nobody needs to be told which it is: the kernel says it of every process. See docs/adr/0040.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator
from typing import Final

from queuectl.process.table import PROC, unless_blind

PREFIX: Final = "queuectl-run-"
# Where a worker and its keeper are themselves: what has controllers for its children must have no processes of its own.
WORKER: Final = "queuectl-worker"
_MOUNTED: Final = "cgroup2"
_UNIFIED: Final = "0::"  # the line of version 2: the others are of hierarchies of version 1
POPULATED: Final = "populated 1"  # what `cgroup.events` says
_FROZEN: Final = "frozen 1"
_AT_ONCE: Final = 1 << 16


def read_file(path: str, *, at: int | None = None) -> str:
    """Raises OSError."""
    # Not open(), whose buffers cost more than the reading: this is done for every run.
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=at)
    try:
        found = b""
        while more := os.read(fd, _AT_ONCE):  # the kernel gives a page at a time
            found += more
        return found.decode("utf-8", "surrogateescape")
    finally:
        os.close(fd)


def write_file(path: str, text: str, *, at: int | None = None) -> None:
    """Raises OSError."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC, dir_fd=at)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def directory_of(pid: int | str = "self") -> str | None:
    """The control group of a process; None if there is none that we can see."""
    mounted = _mount()
    if mounted is None:
        return None
    where, root = mounted
    try:
        lines = read_file(f"{PROC}/{pid}/cgroup").splitlines()
    except OSError as exc:  # it has ended
        unless_blind(exc)
        return None
    path = next((line.removeprefix(_UNIFIED) for line in lines if line.startswith(_UNIFIED)), None)
    # What lies outside of what we see begins with "..".
    if path is None or path.startswith("/..") or not f"{path}/".startswith(root.rstrip("/") + "/"):
        return None
    return os.path.normpath(where + "/" + path.removeprefix(root))


def group_of(pid: int | str) -> str | None:
    """The control group of the run that this process is of; None if it is of none."""
    found = directory_of(pid)
    if found is None or PREFIX not in found:
        return None
    # The innermost: a job may be a worker, whose jobs have groups in that one.
    parts = found.split("/")
    last = max(place for place, part in enumerate(parts) if PREFIX in part)
    return "/".join(parts[: last + 1]) if parts[last].startswith(PREFIX) else None


def leave_group() -> None:
    """If we are of a run: not any more. Where that is not for us to do, we end with it."""
    if (group := group_of("self")) is None:
        return
    place = os.path.dirname(group)
    for directory in (f"{place}/{WORKER}", place):
        with contextlib.suppress(OSError):
            write_file(f"{directory}/cgroup.procs", "0")
            return


def members(group: str) -> Iterator[int]:
    """The processes in it, and in groups that they have made in it."""
    for folder, _, _ in os.walk(group, onerror=unless_blind):
        try:
            pids = read_file(f"{folder}/cgroup.procs").split()
        except OSError as exc:  # removed meanwhile
            unless_blind(exc)
            continue
        yield from map(int, pids)


def kill(group: str) -> None:
    """KILL to everybody in it, in one step: who forks meanwhile is ended with the rest."""
    # Gone, or a kernel before 5.14: then it is left to who sends signals one by one.
    with contextlib.suppress(OSError):
        write_file(f"{group}/cgroup.kill", "1")


def is_populated(group: str) -> bool:
    """Whether somebody is in it, or in a group in it. Raises OSError."""
    return POPULATED in read_file(f"{group}/cgroup.events")


def is_frozen(pid: int) -> bool:
    """Whether its control group is frozen: `docker pause`, `systemctl freeze`."""
    group = directory_of(pid)
    try:
        return group is not None and _FROZEN in read_file(f"{group}/cgroup.events")
    except OSError:  # the root of the hierarchy has no such file; a group may be gone
        return False


def remove(group: str) -> None:
    """With the groups that somebody has made in it, unless somebody is still there."""
    with contextlib.suppress(OSError):
        if not is_populated(group):
            for folder, _, _ in os.walk(group, topdown=False):
                os.rmdir(folder)


@functools.cache
def _mount() -> tuple[str, str] | None:
    """Where the groups are to be seen, and which of them is at the top there."""
    with (
        contextlib.suppress(OSError),
        open(f"{PROC}/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file,
    ):
        for line in file:
            before, _, behind = line.partition(" - ")
            if behind.startswith(_MOUNTED + " "):
                root, where = before.split()[3:5]
                return _unescaped(where), _unescaped(root)
    return None


def _unescaped(path: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        path = path.replace(code, character)
    return path
