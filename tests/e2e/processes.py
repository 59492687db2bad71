"""The process table, read independently of the code under test."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.wait import wait_until


class Process(NamedTuple):
    pid: int
    parent: int
    group: int
    session: int
    state: str
    words: str


def process(pid: int) -> Process | None:
    with contextlib.suppress(OSError):
        head, _, tail = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")
        fields = tail.split()
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").replace("\0", " ").strip()
        return Process(pid, int(fields[1]), int(fields[2]), int(fields[3]), fields[0], words or head.partition("(")[2])
    return None


def is_running(pid: int) -> bool:
    """Return whether the process exists and is not a zombie."""
    found = process(pid)
    return found is not None and found.state not in "ZX"


def holds_a_lock(pid: int) -> bool:
    """Whether it has a file open that is locked, and could let go of it: one that was stopped cannot."""
    found = process(pid)
    if found is None or found.state in "TZX":
        return False
    return any("FLOCK" in _text(f"/proc/{pid}/fdinfo/{fd}") for fd in _names(f"/proc/{pid}/fdinfo"))


def has_let_go(supervisor: int) -> bool:
    """Whether it holds no lock of a worker, nor will: one that has not opened its journal yet may be about to be handed the lock, which is
    on its way then."""
    if not is_running(supervisor):
        return True
    opened = [_target(f"/proc/{supervisor}/fd/{fd}") for fd in _names(f"/proc/{supervisor}/fd")]
    return any(path.endswith((".runs", ".kept")) for path in opened) and not holds_a_lock(supervisor)


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _target(link: str) -> str:
    """Empty for a descriptor that was closed meanwhile."""
    try:
        return os.readlink(link)
    except OSError:
        return ""


def _text(path: str) -> str:
    """Empty for one that is being closed: the others are still there."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def children(pid: int) -> list[Process]:
    """Its children, zombies included."""
    return [found for found in everyone() if found.parent == pid]


def everyone() -> Iterator[Process]:
    for name in os.listdir("/proc"):
        if name.isdecimal() and (found := process(int(name))):
            yield found


def carrying(variable: str) -> list[int]:
    """The living processes that were started with `NAME=value` in their environment."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with contextlib.suppress(OSError):
                environment = Path(f"/proc/{name}/environ").read_bytes()
                if variable.encode() in environment.split(b"\0") and is_running(int(name)):
                    found.append(int(name))
    return found


def wait_until_gone(pids: Sequence[int], timeout: float = 15) -> None:
    wait_until(lambda: not [process(pid) for pid in pids if is_running(pid)], timeout=timeout, what=f"{pids} to end")


def kill(pids: Sequence[int]) -> None:
    """For those that a test left on purpose."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def descriptors(pid: int) -> dict[int, str]:
    found = {}
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            found[int(name)] = os.readlink(f"/proc/{pid}/fd/{name}")
    return found


def memory(pid: int, field: str = "VmRSS") -> int:
    """Bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"no {field} of {pid}")
