"""Whether a worker is alive: by its lock if it is on this host, by its heartbeats otherwise. Also: whether it is stopped (SIGSTOP, Ctrl-Z,
a debugger), and how to continue or kill it.
"""

from __future__ import annotations

import errno
import math
import signal
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from queuectl.config import Here
from queuectl.filelock import Lock, is_held, mark_of, take_lock
from queuectl.jobs.model import Worker
from queuectl.paths import lock_file
from queuectl.process import tree
from queuectl.process.model import ProcessInfo
from queuectl.process.system import system
from queuectl.units import to_ms

MAX_PAUSE: Final = 2.0  # between two checks, which are due every second; after a longer one we were stopped ourselves


def take_lock_of_dead(worker: Worker, *, here: Here) -> Lock | None:
    """The lock of a worker of this host that is dead; None if it is alive. Only one process gets it."""
    if worker.host != here.host:
        return None
    try:
        lock = take_lock(lock_file(worker.home, worker.id), create=False)
    except OSError as exc:
        # The data directory of another user, or read-only: only missing heartbeats will tell.
        if exc.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            return None
        raise
    # It may be of a worker with the same name, in another data directory with the same path.
    if lock is not None and lock.mark != worker.lock:
        lock.release()
        return None
    return lock


def is_alive(worker: Worker, *, here: Here) -> bool:
    """Whether its process exists. A worker of another host, where we cannot look, counts as alive."""
    path = lock_file(worker.home, worker.id)
    try:
        # Held by the worker, whatever its PID is in a container; or for a moment by its rescuer.
        if worker.host == here.host and mark_of(path) == worker.lock:
            return is_held(path)
    except PermissionError:  # the data directory of another user
        pass
    # On another host, or the file was removed, maybe while the worker is alive.
    return worker.machine != here.machine or tree.is_alive(worker.pid)


def is_serving(worker: Worker, *, here: Here, now_ms: int, lease_ms: Callable[[], int]) -> bool:
    """Whether it is alive and had a heartbeat within the lease, as far as one look can tell.

    For display only: a rescue needs a whole lease of watching (`SilenceDetector`).
    """
    return last_seen_ms(worker, here=here, now_ms=now_ms, lease_ms=lease_ms) is not None


def last_seen_ms(worker: Worker, *, here: Here, now_ms: int, lease_ms: Callable[[], int]) -> int | None:
    """When a worker that is serving was last known to live: now, if its process on this host runs, else its last heartbeat.

    None if it is dead or its last heartbeat is older than the lease. The heartbeat of a process that runs here is not asked for: the
    wall clock may have jumped.
    """
    if not is_alive(worker, here=here):
        return None
    if worker.machine == here.machine and not is_stopped(worker, here=here):
        return now_ms
    heartbeat_ms = to_ms(worker.heartbeat_at)
    return min(heartbeat_ms, now_ms) if now_ms - heartbeat_ms < lease_ms() else None


# ── stopped workers ─────────────────────────────────────────────────────────────────────────────────────────────────


def is_stopped(worker: Worker, *, here: Here) -> bool:
    # Its state first, which costs next to nothing: this is asked of all workers, and few are stopped.
    found = tree.find(worker.pid) if worker.machine == here.machine else None
    return found is not None and found.is_stopped and _process(worker, here) is not None


def continue_stopped(worker: Worker, *, here: Here) -> None:
    """One that is traced by a debugger stays stopped."""
    if found := _process(worker, here):
        tree.send(signal.SIGCONT, [found])


def kill(worker: Worker, *, here: Here) -> None:
    """Its jobs are left to a rescue."""
    if found := _process(worker, here):
        tree.send(signal.SIGKILL, [found])


def _process(worker: Worker, here: Here) -> ProcessInfo | None:
    """The process of this worker, and not one that has its PID now: a worker has its own lock file open."""
    found = tree.find(worker.pid) if worker.machine == here.machine else None
    if found is None or not system.has_open(worker.pid, lock_file(worker.home, worker.id)):
        return None
    # Asked again, since the PID may have been reused between the two: `send` compares the start time.
    again = tree.find(worker.pid)
    return again if again is not None and again.started == found.started else None


# ── missing heartbeats ──────────────────────────────────────────────────────────────────────────────────────────────


class _Watch(NamedTuple):
    heartbeat: tuple[datetime, int]  # since when it has its name, and how many heartbeats it has sent
    since: float


class SilenceDetector:
    """Which workers have sent no heartbeat for how long, by our own monotonic clock: neither the clock of another host nor a jump of ours
    can make a living worker look dead."""

    def __init__(self, own_id: str) -> None:
        self._own_id = own_id
        self._watched: dict[str, _Watch] = {}
        self._checked_at = -math.inf

    def silent(self, workers: Sequence[Worker], *, now: float, lease: float) -> list[Worker]:
        """Those of `workers` without a heartbeat for a whole lease, while we watched and sent ours."""
        watched = {}
        for worker in workers:
            seen, heartbeat = self._watched.get(worker.id), (worker.started_at, worker.beats)
            watched[worker.id] = seen if seen and seen.heartbeat == heartbeat else _Watch(heartbeat, now)
        own = watched.get(self._own_id)
        # A worker that was stopped sends a heartbeat before it checks again: its own heartbeat alone is no proof.
        was_away = now - self._checked_at > max(lease / 2, MAX_PAUSE)
        if own is None or was_away or now - own.since > lease / 2:
            # We were stopped ourselves, or could not reach the store; so may have been all others: watch them from now on.
            watched = {id_: _Watch(watch.heartbeat, now) for id_, watch in watched.items() if id_ != self._own_id}
            if own is not None:
                watched[self._own_id] = own
        self._watched, self._checked_at = watched, now
        return [w for w in workers if w.id != self._own_id and now - watched[w.id].since >= lease]
