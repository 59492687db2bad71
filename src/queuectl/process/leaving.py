"""Telling a worker to go while what it runs goes on: its keeper stays, and the next worker of the home adopts."""

from __future__ import annotations

import signal
from typing import Final

from queuectl.process.ending import send
from queuectl.process.table import entry

LEAVE: Final = signal.SIGUSR2


def tell_to_leave(pid: int) -> bool:
    """False if there is no such process. The caller knows that it is a worker: any other program would be ended."""
    found = entry(pid)
    if found is None or found.is_over:
        return False
    send(LEAVE, [found])
    return True
