"""A worker that is there and does nothing: stopped by Ctrl-Z, a SIGSTOP or a debugger. Only for workers of this host."""

from __future__ import annotations

import signal

from queuectl.config import Here
from queuectl.jobs.model import Worker
from queuectl.paths import lock_file
from queuectl.process.ending import send
from queuectl.process.lock_holders import STOPPED
from queuectl.process.table import Entry, entry, has_open


def is_stopped(worker: Worker, *, here: Here) -> bool:
    # Its state first, which costs next to nothing: most workers are not, and this is asked of all of them.
    found = entry(worker.pid) if worker.machine == here.machine else None
    return found is not None and found.state in STOPPED and _process(worker, here) is not None


def wake(worker: Worker, *, here: Here) -> None:
    """Let a stopped worker go on. One that a debugger holds does not."""
    if found := _process(worker, here):
        send(signal.SIGCONT, [found])


def kill(worker: Worker, *, here: Here) -> None:
    """End its process at once; what it ran is left to `rescue`."""
    if found := _process(worker, here):
        send(signal.SIGKILL, [found])


def _process(worker: Worker, here: Here) -> Entry | None:
    """The process of this worker, and of nobody who has its number now: the worker has its own lock file open."""
    found = entry(worker.pid) if worker.machine == here.machine else None
    if found is None or not has_open(worker.pid, lock_file(worker.home, worker.id)):
        return None
    # Asked again, since the number may have changed hands between the two: `send` compares with the time it started.
    again = entry(worker.pid)
    return again if again is not None and again.started == found.started else None
