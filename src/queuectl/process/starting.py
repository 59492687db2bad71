"""Starting a Python of our own beside this one, with a line to it."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from queuectl.process.libc import Words
from queuectl.process.making import Making

_HERE: Final = os.path.dirname(os.path.abspath(__file__))
# All that Python may need to start. The rest of our environment is for the jobs.
_NEEDED: Final = ("PATH", "LD_LIBRARY_PATH")


class Started(NamedTuple):
    pid: int
    line: socket.socket  # the other end is its descriptor 3, see WIRE


def start_beside(
    program: str, words: Sequence[str], environment: Mapping[str, str], kind: socket.SocketKind = socket.SOCK_STREAM
) -> Started:
    """A file of this package, in a session of its own. Raises OSError."""
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        ours, its = socket.socketpair(socket.AF_UNIX, kind)
        # As little as possible of what can go wrong in a Python that is started: no site, nothing from the environment.
        argv = [os.fsencode(word) for word in (sys.executable, "-I", "-S", os.path.join(_HERE, program), *words)]
        needed = Words([os.fsencode(f"{name}={environment[name]}") for name in _NEEDED if name in environment])
        made = Making(argv[:1], argv, needed, (), cwd=b"/", descriptors=(null, null, null, its.fileno())).run()
        its.close()
    finally:
        os.close(null)
    if made.errors:
        ours.close()
        raise OSError(made.errors[0], os.strerror(made.errors[0]))
    return Started(made.pid, ours)
