"""The place where a keeper may make control groups, if there is one.

That is the keeper's own group where it was handed over to us: a service with `Delegate=yes`, a container, a machine without systemd.
Where systemd manages the groups, those that it has not handed over are not ours to touch, even if root could.
"""

from __future__ import annotations

import contextlib
import os
from typing import Final, NamedTuple

from queuectl.process.cgroups import PREFIX, WORKER, directory_of, read_file, write_file

SYSTEMD: Final = "/run/systemd/system"  # as sd_booted(3) has it
_HANDED_OVER: Final = ("trusted.delegate", "user.delegate")
CONTROLLERS: Final = ("memory", "pids", "cpu")


class Place(NamedTuple):
    directory: str
    controllers: frozenset[str]


def find_place() -> Place | None:
    own = directory_of()
    if own is None:
        return None
    directory = os.path.dirname(own) if os.path.basename(own) == WORKER else own
    if not _is_ours(directory):
        return None
    with contextlib.suppress(OSError):
        return Place(directory, _enable(directory))
    return None


def _is_ours(directory: str) -> bool:
    files = (directory, f"{directory}/cgroup.procs", f"{directory}/cgroup.subtree_control")
    if not all(os.access(path, os.W_OK) for path in files):
        return False
    if not os.path.isdir(SYSTEMD) or any(_attribute(directory, name) == b"1" for name in _HANDED_OVER):
        return True
    # Before version 251 only root could read it. What a user may write is handed over, but for what the user's own manager has made.
    return os.geteuid() != 0 and "/user@" not in directory


def _attribute(path: str, name: str) -> bytes | None:
    try:
        return os.getxattr(path, name)
    except OSError:
        return None


def _enable(directory: str) -> frozenset[str]:
    """Have the kernel count and limit in what is made there. Returns what it does. Raises OSError."""
    there = read_file(f"{directory}/cgroup.controllers").split()
    for name in CONTROLLERS:
        if name in there and name not in read_file(f"{directory}/cgroup.subtree_control").split():
            try:
                write_file(f"{directory}/cgroup.subtree_control", f"+{name}")
            except OSError:
                # There are processes in it: a group whose children are limited must have none, but for the topmost.
                if _step_aside(directory):
                    with contextlib.suppress(OSError):
                        write_file(f"{directory}/cgroup.subtree_control", f"+{name}")
    return frozenset(read_file(f"{directory}/cgroup.subtree_control").split()).intersection(CONTROLLERS)


def _step_aside(directory: str) -> bool:
    """Into a group beside those of the runs, our worker and we, if nobody else is there.

    Not under systemd, which would put the next worker of the service where it may not be any more, while jobs of this one go on: there
    `DelegateSubgroup=` does it, from version 254 on. Nor in the group of a run: its leader has to stay where it is.
    """
    ours = {os.getppid(), os.getpid()}
    if os.path.isdir(SYSTEMD) or PREFIX in directory:
        return False
    with contextlib.suppress(OSError):
        if not ours.issuperset(map(int, read_file(f"{directory}/cgroup.procs").split())):
            return False
        with contextlib.suppress(FileExistsError):
            os.mkdir(f"{directory}/{WORKER}")
        for pid in sorted(ours):
            write_file(f"{directory}/{WORKER}/cgroup.procs", str(pid))
        return True
    return False
