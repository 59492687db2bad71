"""Who is running on this machine: the process table, read from /proc.

A pid alone is no identity, since the kernel gives it out again. A pid together with the moment its process started is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final, NamedTuple

PROC: Final = "/proc"
MARK: Final = "QUEUECTL_RUN_TOKEN"  # in the environment of every run: the token of its claim


class Entry(NamedTuple):
    pid: int
    state: str
    group: int
    session: int
    started: int  # clock ticks since boot


def entry(pid: int) -> Entry | None:
    """The process with this pid, None if there is none."""
    try:
        with open(f"{PROC}/{pid}/stat", "rb") as file:
            stat = file.read()
    except OSError:
        return None
    # The name, in brackets, may hold anything, brackets and spaces included: read on from the last one.
    fields = stat[stat.rindex(b")") + 2 :].split()
    return Entry(pid, fields[0].decode(), int(fields[2]), int(fields[3]), int(fields[19]))


def entries() -> Iterator[Entry]:
    """Every process that is not a zombie."""
    try:
        names = os.listdir(PROC)
    except OSError:  # a system without /proc: nothing can be told apart, so nothing will be signalled
        return
    for name in names:
        if name.isdigit() and (found := entry(int(name))) and found.state not in "ZX":
            yield found


def carries(pid: int, token: str) -> bool:
    """Whether this process was started with the mark of that run."""
    try:
        with open(f"{PROC}/{pid}/environ", "rb") as file:
            environment = file.read()
    except OSError:  # gone, or another user's
        return False
    return f"{MARK}={token}".encode() in environment.split(b"\0")


def started(pid: int) -> int | None:
    found = entry(pid)
    return None if found is None else found.started
