"""Starting a keeper: a Python takes a while to begin, and a worker can use that time."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping
from typing import Final, NamedTuple

from queuectl import errors
from queuectl.process.libc import Words
from queuectl.process.making import Making
from queuectl.process.wire import Wire

_PROGRAM: Final = os.path.join(os.path.dirname(os.path.abspath(__file__)), "keep.py")
# All that Python may need to start. The rest of our environment is for the jobs.
_NEEDED: Final = ("PATH", "LD_LIBRARY_PATH")


class Raised(NamedTuple):
    """A keeper that waits to be told whose it is. It goes when its wire is closed."""

    pid: int
    wire: Wire


def raise_keeper(ledger: str, environment: Mapping[str, str]) -> Raised:
    """`ledger`: where it will write, once it is told that this is ours. Raises KeeperGone."""
    ours, its = socket.socketpair()
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    # As little as possible of what can go wrong in a Python that is started: no site, nothing from the environment.
    argv = [os.fsencode(word) for word in (sys.executable, "-I", "-S", _PROGRAM, ledger)]
    needed = Words([os.fsencode(f"{name}={environment[name]}") for name in _NEEDED if name in environment])
    made = Making(argv[:1], argv, needed, (), cwd=b"/", descriptors=(null, null, null, its.fileno())).run()
    os.close(null)
    its.close()
    if made.errors:
        ours.close()
        raise errors.KeeperGone(f"it cannot be started: {os.strerror(made.errors[0]).lower()}")
    return Raised(made.pid, Wire(ours))
