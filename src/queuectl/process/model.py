"""Values that name processes. A PID alone is no identity, since the kernel reuses it; a PID with its start time is."""

from __future__ import annotations

import errno
from typing import Final, NamedTuple

TOKEN_VARIABLE: Final = "QUEUECTL_RUN_TOKEN"  # noqa: S105 - in the environment of every run: the token of its claim
# With these errors no process can be examined, which says nothing about whether it is alive.
_CANNOT_LOOK: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})


class ProcessInfo(NamedTuple):
    """A row of the process table. `started` is in clock ticks since boot."""

    pid: int
    started: int
    group: int
    session: int
    state: str = "S"
    is_zombie: bool = False
    parent: int = 0

    @property
    def is_stopped(self) -> bool:
        """By a signal or a debugger. A process in a frozen control group does not look stopped."""
        return self.state in ("T", "t")


class Child(NamedTuple):
    """The first process of a run: a child of the supervisor, and the leader of its own session and process group."""

    pid: int
    started: int


class Identity(NamedTuple):
    """A process of this boot or an earlier one. `boot`: see `boot_id`; empty if unknown."""

    pid: int
    started: int
    boot: str = ""


def raise_if_blind(exc: OSError) -> None:
    """Raise an error that says nothing about whether the process is alive."""
    if exc.errno in _CANNOT_LOOK:
        raise exc
