"""What a new process does to itself before it becomes the program, as a list of system calls: see machine.py.

Nothing in it can be decided on the way. What is to be refused has to fail by itself.
"""

from __future__ import annotations

import errno
import os
import signal
import struct
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from queuectl.process.between import Between, Step, Stopped, as_nice, clamped
from queuectl.process.libc import Call
from queuectl.process.machine import Entry, Failed, Machine, NotHere, Numbers, Script, address, numbers

_KERNEL_SIGSET = 8
_SIGACTION = bytes(32)  # the default, for whatever signal
_LIMIT = struct.Struct("=2Q")
# Why a process cannot be made, wherever. All else is about its group.
_NO_ROOM = frozenset({errno.EAGAIN, errno.ENOMEM})


@cache
def machine() -> Machine | None:
    """None: there is no such way here, and a fork does it."""
    known = numbers()
    try:
        return None if known is None else Machine(known)
    except (NotHere, OSError):
        return None


class _Plan(NamedTuple):
    script: Script
    steps: Sequence[Step]  # of each of its entries


def make(
    call: Call, program: bytes, between: Between, *, cwd: bytes, descriptors: Sequence[int]
) -> tuple[int, Stopped | None]:
    """As `posix_spawn` does it with what `call` says. Returns when the program is running, or will not be. Raises NotHere where
    it has to be done by other means."""
    found, known = machine(), numbers()
    if found is None or known is None or call.is_cut or between.needs_a_fork or _overlap(descriptors):
        raise NotHere
    nice = None if between.nice is None else as_nice(between.nice)
    plan = _plan(known, between.umask, nice, tuple(clamped(between.limits)), len(descriptors))
    words = [*descriptors, address(cwd), address(program), call.argv_at, call.env_at]
    try:
        return found.make(plan.script, words, group=between.group), None
    except Failed as exc:
        if exc.at is not None:
            step = plan.steps[exc.at]
        else:
            step = Step.PROGRAM if exc.errno in _NO_ROOM else Step.GROUP
        return 0, Stopped(step, [exc.errno])


@lru_cache(maxsize=64)
def _plan(
    known: Numbers, umask: int | None, nice: int | None, limits: Sequence[tuple[int, tuple[int, int]]], count: int
) -> _Plan:
    """The jobs of a queue differ in little else than their words. `count`: of descriptors."""
    found = [(Step.BEGINNING, Entry(known.setsid, ()))]
    found += [(Step.BEGINNING, Entry(known.dup3, (None, number, 0))) for number in range(count)]
    if umask is not None:
        found.append((Step.BEGINNING, Entry(known.umask, (umask,))))
    if nice is not None:
        # Less than we are, and we may not: then as it is.
        found.append((Step.NICE, Entry(known.setpriority, (os.PRIO_PROCESS, 0, nice), is_vital=False)))
    found.append((Step.DIRECTORY, Entry(known.chdir, (None,))))
    found += [(Step.BEGINNING, entry) for entry in _signals(known)]
    found += [(Step.LIMITS, Entry(known.prlimit, (0, kind, _LIMIT.pack(*values), 0))) for kind, values in limits]
    found.append((Step.PROGRAM, Entry(known.execve, (None, None, None))))
    return _Plan(Script(known, [entry for _, entry in found]), [step for step, _ in found])


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
