"""What a new process does to itself before it becomes the program, as a list of system calls: see machine.py.

Nothing in it can be decided on the way. What is to be refused has to fail by itself.
"""

from __future__ import annotations

import os
import signal
import struct
from collections.abc import Sequence
from functools import cache

from queuectl.process.between import Between, Step, Stopped, as_nice, clamped
from queuectl.process.libc import Call
from queuectl.process.machine import Entry, Failed, Machine, NotHere, Numbers, numbers

_KERNEL_SIGSET = 8
_SIGACTION = bytes(32)  # the default, for whatever signal
_LIMIT = struct.Struct("=2Q")


@cache
def machine() -> Machine | None:
    """None: there is no such way here, and a fork does it."""
    known = numbers()
    try:
        return None if known is None else Machine(known)
    except (NotHere, OSError):
        return None


def make(
    call: Call, program: bytes, between: Between, *, cwd: bytes, descriptors: Sequence[int]
) -> tuple[int, Stopped | None]:
    """As `posix_spawn` does it with what `call` says. Returns when the program is running, or will not be. Raises NotHere where
    it has to be done by other means."""
    found, known = machine(), numbers()
    if found is None or known is None or call.is_cut or between.needs_a_fork or _overlap(descriptors):
        raise NotHere
    steps = _steps(known, call, program, between, cwd, descriptors)
    try:
        return found.make([entry for _, entry in steps], group=between.group), None
    except Failed as exc:
        step = (Step.PROGRAM if between.group is None else Step.GROUP) if exc.at is None else steps[exc.at][0]
        return 0, Stopped(step, [exc.errno])


def _steps(
    known: Numbers, call: Call, program: bytes, between: Between, cwd: bytes, descriptors: Sequence[int]
) -> list[tuple[Step, Entry]]:
    found = [(Step.BEGINNING, Entry(known.setsid, ()))]
    found += [(Step.BEGINNING, Entry(known.dup3, (fd, number, 0))) for number, fd in enumerate(descriptors)]
    if between.umask is not None:
        found.append((Step.BEGINNING, Entry(known.umask, (between.umask,))))
    if between.nice is not None:
        # Less than we are, and we may not: then as it is.
        entry = Entry(known.setpriority, (os.PRIO_PROCESS, 0, as_nice(between.nice)), is_vital=False)
        found.append((Step.NICE, entry))
    found.append((Step.DIRECTORY, Entry(known.chdir, (cwd,))))
    found += [(Step.BEGINNING, entry) for entry in _signals(known)]
    for kind, values in clamped(between.limits):
        found.append((Step.LIMITS, Entry(known.prlimit, (0, kind, _LIMIT.pack(*values), 0))))
    found.append((Step.PROGRAM, Entry(known.execve, (program, call.argv_at, call.env_at))))
    return found


@cache
def _signals(known: Numbers) -> Sequence[Entry]:
    """Those that we have set or ignore ourselves, which does not change: the rest are as a new program finds them anyway. Then none
    is blocked."""
    ours = [
        number
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
        if signal.getsignal(number) not in (signal.SIG_DFL, None)
    ]
    default = [Entry(known.sigaction, (number, _SIGACTION, 0, _KERNEL_SIGSET)) for number in ours]
    return [*default, Entry(known.sigprocmask, (signal.SIG_SETMASK, bytes(_KERNEL_SIGSET), 0, _KERNEL_SIGSET))]


def _overlap(descriptors: Sequence[int]) -> bool:
    """Whether one would be replaced before it is copied, or is in its place already, which `dup3` refuses."""
    return min(descriptors) < len(descriptors)
