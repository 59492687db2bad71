"""Starting a keeper: a Python takes a while to begin, and a worker can use that time."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import NamedTuple

from queuectl import errors
from queuectl.process.starting import start_beside
from queuectl.process.wire import Wire


class Raised(NamedTuple):
    """A keeper that waits to be told whose it is. It goes when its wire is closed."""

    pid: int
    wire: Wire


def raise_keeper(ledger: str, environment: Mapping[str, str]) -> Raised:
    """`ledger`: where it will write, once it is told that this is ours. Raises SupervisorGone, or OSError for want of descriptors."""
    try:
        pid, line = start_beside("keep.py", [ledger], environment)
    except OSError as exc:
        if exc.errno in (errno.EMFILE, errno.ENFILE):
            raise
        raise errors.SupervisorGone(f"it cannot be started: {(exc.strerror or str(exc)).lower()}") from exc
    return Raised(pid, Wire(line))
