"""A SQLite database that stays locked because the process that holds the lock is stopped: kill that process.

A worker or a command that is stopped (SIGSTOP, Ctrl-Z, a frozen control group) inside a transaction keeps the write lock.
It is killed once it has been watched for a whole `lease` and has not run in that time. Its transaction is rolled back, and the jobs
of a worker continue under its supervisor. A process that is only slow, is not a queuectl program, or belongs to another user, is
never killed: the error names it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from queuectl.clock import Clock
from queuectl.config import load_settings
from queuectl.errors import UsageError
from queuectl.process import tree
from queuectl.process.lock_holders import Holder, holder_of

# https://sqlite.org/walformat.html: the write lock, and the lock of the process that initializes the file.
_SHARED_MEMORY_LOCKS: Final = (120, 128)
_MAX_PAUSE: Final = 2.0  # between two looks; after a longer one this process may have been stopped itself


StoredSettings = Callable[[], Mapping[str, str]]


class Killed(NamedTuple):
    pid: int
    program: str
    seconds: float  # it was watched

    @property
    def message(self) -> str:
        return (
            f"killed process {self.pid} ({self.program}): it was stopped for {self.seconds:.0f} s"
            " and kept the database locked"
        )


class _Watch(NamedTuple):
    identity: tuple[int, int, int]
    since: float


class LockBreaker:
    """Call it while waiting for the lock, at least every two seconds. It returns a hint that names the holder, if there is one."""

    def __init__(self, environ: Mapping[str, str], clock: Clock, *, on_kill: Callable[[Killed], None]) -> None:
        self._environ = environ
        self._clock = clock
        self._on_kill = on_kill
        self._watch: _Watch | None = None
        self._looked_at = 0.0

    def __call__(self, path: str, stored: StoredSettings) -> str | None:
        try:
            holder = lock_holder(path)
        except OSError:  # no descriptor left to look with
            return None
        if holder is None:
            return None
        if not holder.is_stopped:
            self._watch = None
            return f"process {holder.process.pid} ({holder.program}) uses it; try again later"
        if holder.is_ours and holder.user == os.geteuid():
            self._kill_after_lease(holder, self._lease(stored))
        return hint_for(holder)

    def _kill_after_lease(self, holder: Holder, lease: float) -> None:
        now = self._clock.monotonic()
        identity = (holder.process.pid, holder.process.started, holder.switches)
        was_away = now - self._looked_at > max(_MAX_PAUSE, lease / 2)
        self._looked_at = now
        if self._watch is None or self._watch.identity != identity or was_away:
            self._watch = _Watch(identity, now)
        elif (watched := now - self._watch.since) >= lease:
            tree.send(signal.SIGKILL, [holder.process])
            self._watch = None
            self._on_kill(Killed(holder.process.pid, holder.program, watched))

    def _lease(self, stored: StoredSettings) -> float:
        try:
            settings = load_settings(stored(), self._environ)
        except UsageError:  # reported by every command that depends on it
            settings = load_settings({}, {})
        return settings.lease_ms / 1000


def lock_holder(path: str) -> Holder | None:
    """The process that keeps others from writing to this SQLite database."""
    return holder_of(f"{path}-shm", *_SHARED_MEMORY_LOCKS) or holder_of(path)


def hint_for(holder: Holder) -> str:
    """What a person can do about a stopped holder. Commands that write to the database would wait for it, too."""
    pid = holder.process.pid
    return f"process {pid} ({holder.program}) is stopped: resume it with kill -CONT {pid}, or end it with kill -9 {pid}"
