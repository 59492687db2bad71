"""Who is running on this machine: the process table, read from /proc.

A pid alone is no identity, since the kernel gives it out again. A pid together with the moment its process started is.

Whoever cannot look, since no descriptor is left, gets the OSError: a process that nobody sees would pass for one that has
ended, and its job would be run again beside it.
"""

from __future__ import annotations

import errno
import functools
import os
from collections.abc import Iterator
from typing import Final, NamedTuple

PROC: Final = "/proc"
LONGEST_STAT: Final = 4096  # some 50 numbers and a name of 16 bytes
MARK: Final = "QUEUECTL_RUN_TOKEN"  # in the environment of every run: the token of its claim
_MARK: Final = f"{MARK}=".encode()
# Then nobody can be looked at, and that says nothing about who is there.
_BLIND: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})


class Entry(NamedTuple):
    pid: int
    state: str
    group: int
    session: int
    threads: int
    started: int  # clock ticks since boot

    @property
    def is_over(self) -> bool:
        """Whether it is a zombie. One with two threads only looks like it: its first has ended, another works on."""
        return self.state in "ZX" and self.threads < 2


def entry(pid: int) -> Entry | None:
    """The process with this pid, None if there is none."""
    # Not open(), whose buffers cost more than the reading: this is done for every process that is started.
    try:
        fd = os.open(f"{PROC}/{pid}/stat", os.O_RDONLY)
    except OSError as exc:
        unless_blind(exc)
        return None
    try:
        stat = os.read(fd, LONGEST_STAT)
    except OSError:  # ended between the two
        return None
    finally:
        os.close(fd)
    # The name, in brackets, may hold anything, brackets and spaces included: read on from the last one.
    fields = stat[stat.rindex(b")") + 2 :].split()
    return Entry(pid, fields[0].decode(), int(fields[2]), int(fields[3]), int(fields[17]), int(fields[19]))


def entries() -> Iterator[Entry]:
    """Every process that is not a zombie."""
    try:
        names = os.listdir(PROC)
    except OSError as exc:  # a system without /proc: nothing can be told apart, so nothing will be signalled
        unless_blind(exc)
        return
    for name in names:
        if name.isdigit() and (found := entry(int(name))) and not found.is_over:
            yield found


def marks(pid: int) -> list[str]:
    """The tokens of the runs whose mark this process was started with: one at most, unless somebody plays tricks."""
    try:
        with open(f"{PROC}/{pid}/environ", "rb") as file:
            environment = file.read()
    except OSError as exc:  # gone, or another user's
        unless_blind(exc)
        return []
    variables = environment.split(b"\0") if _MARK in environment else ()
    return [found.removeprefix(_MARK).decode("ascii", "replace") for found in variables if found.startswith(_MARK)]


def told(pid: int) -> dict[str, str]:
    """What a worker of ours told this process, or one that it comes from, of the run that it is for: QUEUECTL_…"""
    try:
        with open(f"{PROC}/{pid}/environ", "rb") as file:
            variables = file.read().split(b"\0")
    except OSError:  # as above
        return {}
    pairs = (found.decode("utf-8", "surrogateescape").partition("=") for found in variables)
    return {name: value for name, _, value in pairs if name.startswith("QUEUECTL_")}


def command(pid: int) -> str:
    """Its words, for people; empty if there is no such process."""
    try:
        with open(f"{PROC}/{pid}/cmdline", "rb") as file:
            return file.read(LONGEST_STAT).replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return ""


def has_open(pid: int, path: str) -> bool:
    """Whether the process has this file open. False if it cannot be examined: it has ended, or belongs to another user."""
    try:
        wanted = os.stat(path)
        with os.scandir(f"{PROC}/{pid}/fd") as descriptors:
            return any(_is_file(descriptor.path, wanted) for descriptor in descriptors)
    except OSError:
        return False


def _is_file(descriptor: str, wanted: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(descriptor), wanted)
    except OSError:  # closed in the meantime
        return False


def lives(pid: int) -> bool:
    """Whether there is such a process, and it has not ended: a zombie does nothing any more."""
    found = entry(pid)
    return found is not None and not found.is_over


def started(pid: int) -> int | None:
    """When it started; None if there is none, or nobody can tell."""
    try:
        found = entry(pid)
    except OSError:
        return None
    return None if found is None else found.started


@functools.cache
def boot() -> str:
    """Which start of which machine this is, and which of the process tables that are kept apart on it: numbers and start times of
    another one say nothing here. Empty where nobody can tell."""
    try:
        with open(f"{PROC}/sys/kernel/random/boot_id", encoding="ascii") as file:
            return f"{file.read().strip()}/{os.stat(f'{PROC}/self/ns/pid').st_ino}"
    except OSError:
        return ""


def unless_blind(exc: OSError) -> None:
    """Raises it if it says nothing about who is there."""
    if exc.errno in _BLIND:
        raise exc
