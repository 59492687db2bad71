"""What a new process does to itself before it becomes the program: group, priority, user, directory, limits.

`posix_spawn` knows none of it, our own limits must not change for a moment, and what is set from outside after the start comes
too late for whoever is quick. So the new process does it itself: by a list of system calls (steps.py) where there is a way to
have it make them, else, and for another user, in a fork (forking.py). See docs/adr/0039.
"""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Sequence
from enum import IntEnum
from typing import Final, NamedTuple

# What a PATH says may be wrong of one place, and right of the next.
TRY_NEXT: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EACCES})
NICEST: Final = 19


class Between(NamedTuple):
    """`limits`: resources, as the kernel numbers them, and how much of each, for good: soft and hard. What is more than we may
    have ourselves becomes that. `nice`: so much more than we are. `group`: a descriptor of a directory of control groups. `user`: its
    number and that of its main group. `inside`: device and inode of the directory that it has to find."""

    limits: tuple[tuple[int, int], ...] = ()
    nice: int | None = None
    group: int | None = None
    user: tuple[int, int] | None = None
    groups: tuple[int, ...] = ()
    umask: int | None = None
    inside: tuple[int, int] | None = None

    @property
    def needs_a_fork(self) -> bool:
        """Whether it has to decide something on the way, which no list of system calls can."""
        return self.user is not None or self.inside is not None


class Step(IntEnum):
    """Where it stopped."""

    PROGRAM = 0  # and then there is an error for each that was tried
    BEGINNING = 1
    GROUP = 2
    NICE = 3
    USER = 4
    DIRECTORY = 5
    LIMITS = 6


class Stopped(NamedTuple):
    """It has not become the program: at which step, and the error of it, or of each program that was tried."""

    step: Step
    errors: list[int]


def as_nice(nice: int) -> int:
    """The nice value of a process that is so much nicer than we are."""
    return max(-NICEST - 1, min(NICEST, os.getpriority(os.PRIO_PROCESS, 0) + nice))


def clamped(limits: Sequence[tuple[int, int]]) -> list[tuple[int, tuple[int, int]]]:
    """Soft and hard, as `setrlimit` takes them: no more than we may have ourselves. That of memory last, for whoever sets it
    may be left without room for another thought."""
    found = []
    for kind, most in sorted(limits, key=lambda limit: limit[0] == resource.RLIMIT_AS):
        _, ours = resource.getrlimit(kind)
        soft, hard = (min(n, ours) if ours != resource.RLIM_INFINITY else n for n in (most, most + afterwards(kind)))
        found.append((kind, (soft, hard)))
    return found


def afterwards(kind: int) -> int:
    """How far the hard limit is behind the other. Of the cpu time a second: the signal of the soft one is its own, and tells what
    has happened; that of the hard one is KILL, which anybody may have sent."""
    return 1 if kind == resource.RLIMIT_CPU else 0
