"""Which process holds an exclusive lock on a file, and whether that process can run: read from /proc.

The kernel lists the locks of each open file in /proc/PID/fdinfo. Rejected: fcntl(F_GETLK) needs a descriptor of the file, and closing
it would release every POSIX lock that this process has on it, those of SQLite included. /proc/locks is read in pieces of a page, and
leaves out locks if others come and go meanwhile. Where there is no /proc, and for processes of other users unless we are root, no
holder is found.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, NamedTuple

from queuectl.process import tree
from queuectl.process.cgroups import is_frozen
from queuectl.process.linux import PROC
from queuectl.process.model import ProcessInfo, raise_if_blind

STOPPED: Final = "Tt"  # by a signal, by a debugger
PROGRAM: Final = "queuectl"
_FIRST_ARGUMENTS: Final = 6  # of an interpreter with its own options


class Holder(NamedTuple):
    process: ProcessInfo
    user: int
    program: str  # a short name without arguments, which may hold secrets
    is_ours: bool  # whether it is a queuectl command or worker
    is_stopped: bool  # by a signal, a debugger, or a frozen control group
    switches: int  # context switches of its main thread: if the number is the same, it has not run in between


def holder_of(path: str, *offsets: int) -> Holder | None:
    """The process that has an exclusive lock on one of these bytes of the file, on any byte if none are given."""
    try:
        wanted = os.stat(path)
        pids = [name for name in os.listdir(PROC) if name.isdecimal()]
    except OSError as exc:
        raise_if_blind(exc)
        return None
    for pid in pids:
        if _is_locked_by(pid, path, wanted, offsets) and (found := _holder(int(pid))):
            return found
    return None


def _is_locked_by(pid: str, path: str, wanted: os.stat_result, offsets: Sequence[int]) -> bool:
    name = os.path.basename(path)
    try:
        for number in os.listdir(f"{PROC}/{pid}/fd"):
            # By its name first: to ask for more of a file on a mount that hangs would hang, too.
            descriptor = f"{PROC}/{pid}/fd/{number}"
            if (
                os.path.basename(os.readlink(descriptor)) == name
                and _is_exclusive(_read(pid, f"fdinfo/{number}"), offsets)
                and os.path.samestat(os.stat(descriptor), wanted)
            ):
                return True
    except OSError as exc:  # it has ended, has closed it, or belongs to another user
        raise_if_blind(exc)
    return False


def _is_exclusive(information: str, offsets: Sequence[int]) -> bool:
    """Whether there is an exclusive POSIX lock that covers one of the bytes: `lock: 1: POSIX ADVISORY WRITE PID DEVICE FIRST LAST`."""
    for line in information.splitlines():
        words = line.split()
        if words[:1] == ["lock:"] and words[2] == "POSIX" and words[4] == "WRITE":
            first, last = int(words[7]), float("inf") if words[8] == "EOF" else int(words[8])
            if not offsets or any(first <= offset <= last for offset in offsets):
                return True
    return False


def _holder(pid: int) -> Holder | None:
    found = tree.find(pid)
    if found is None or found.is_zombie:
        return None
    try:
        status = dict(line.split(":", 1) for line in _read(pid, "status").splitlines() if ":" in line)
        arguments = _read(pid, "cmdline").split("\0")
        name = _read(pid, "comm").strip()
    except OSError as exc:
        raise_if_blind(exc)
        return None
    subcommand = _subcommand(arguments)
    return Holder(
        found,
        user=int(status["Uid"].split()[0]),
        program=name if subcommand is None else f"{PROGRAM} {subcommand}".strip(),
        is_ours=subcommand is not None,
        is_stopped=found.state in STOPPED or is_frozen(pid),
        switches=int(status["voluntary_ctxt_switches"]) + int(status["nonvoluntary_ctxt_switches"]),
    )


def _subcommand(arguments: list[str]) -> str | None:
    """The command after `queuectl` or `python -m queuectl`; empty if options come first, None for another program."""
    for place, argument in enumerate(arguments[:_FIRST_ARGUMENTS]):
        is_module = argument == PROGRAM and place > 0 and arguments[place - 1] == "-m"
        if is_module or (place < 2 and os.path.basename(argument) == PROGRAM):
            following = arguments[place + 1 : place + 2]
            return following[0] if following and following[0].isalpha() else ""
    return None


def _read(pid: int | str, name: str) -> str:
    with open(f"{PROC}/{pid}/{name}", encoding="utf-8", errors="replace") as file:
        return file.read()
