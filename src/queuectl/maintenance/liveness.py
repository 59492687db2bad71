"""Is that worker alive? By its lock if it is of this host; by its silence otherwise."""

from __future__ import annotations

import errno
import math
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from queuectl.config import Here
from queuectl.filelock import Lock, is_held, mark_of, take_lock
from queuectl.jobs.model import Worker
from queuectl.maintenance.stopped import is_stopped
from queuectl.paths import lock_file
from queuectl.process.table import lives
from queuectl.units import to_ms

LONGEST_PAUSE: Final = 2.0  # between two looks of one who is not kept from it: a look is due every second


def lock_of_the_dead(worker: Worker, *, here: Here) -> Lock | None:
    """The lock of a worker of this host that is gone; None if it lives. Whoever has the lock is its only heir."""
    if worker.host != here.host:
        return None
    try:
        lock = take_lock(lock_file(worker.home, worker.id), create=False)
    except OSError as exc:
        # The home of another user, or on a disk that may only be read: only its silence will tell.
        if exc.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            return None
        raise
    if (
        lock is not None and lock.mark != worker.lock
    ):  # of another worker, which had its name, in another home of this path
        lock.release()
        return None
    return lock


def is_alive(worker: Worker, *, here: Here) -> bool:
    """Whether its process exists. Of another host nobody here can tell: it counts as alive."""
    path = lock_file(worker.home, worker.id)
    try:
        # Held by the worker, whatever its pid is in a container; or for a moment by its heir.
        if worker.host == here.host and mark_of(path) == worker.lock:
            return is_held(path)
    except PermissionError:  # the home of another user
        pass
    # Of another machine, or somebody removed the file, maybe under a worker that is still there.
    return worker.machine != here.machine or lives(worker.pid)


def is_serving(worker: Worker, *, here: Here, now_ms: int, lease_ms: Callable[[], int]) -> bool:
    """Whether it lives and gave a sign within the lease, as far as one look can tell; without one it is treated as gone.

    For showing only: whoever acts on it has to watch for a lease (`Silence`).
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


class _Watch(NamedTuple):
    sign: tuple[datetime, int]  # since when it works under its name, and how often it has said so
    since: float


class Silence:
    """Who has not given a sign for how long, by our own monotonic clock: no clock of another machine, and no jump of
    ours, can make a living worker look dead."""

    def __init__(self, me: str) -> None:
        self._me = me
        self._watched: dict[str, _Watch] = {}
        self._looked_at = -math.inf

    def silent(self, workers: Sequence[Worker], *, now: float, lease: float) -> list[Worker]:
        """Those of `workers` that gave no sign for a whole lease while we were watching, and gave ours."""
        watched = {}
        for worker in workers:
            seen, sign = self._watched.get(worker.id), (worker.started_at, worker.beats)
            watched[worker.id] = seen if seen and seen.sign == sign else _Watch(sign, now)
        own = watched.get(self._me)
        # Whoever was stopped gives a sign before it looks again: so its own sign alone does not tell.
        was_away = now - self._looked_at > max(lease / 2, LONGEST_PAUSE)
        if own is None or was_away or now - own.since > lease / 2:
            # We were stopped ourselves, or kept from the store; so may have been everybody, and we are only the first to be
            # back: begin to count anew.
            watched = {id_: _Watch(watch.sign, now) for id_, watch in watched.items() if id_ != self._me}
            if own is not None:
                watched[self._me] = own
        self._watched, self._looked_at = watched, now
        return [w for w in workers if w.id != self._me and now - watched[w.id].since >= lease]
