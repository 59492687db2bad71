"""Remove the logs of removed jobs: after their records, also if the process that does it is killed in between.

A job without its log would be a loss, so the record is removed first. Before that, the logs are listed in a file of the data directory on
which its writer holds a lock; another process that finds it without a lock finishes the work. Not by searching for logs without a job: a
data directory may have the logs of several databases.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from queuectl import paths
from queuectl.filelock import Lock, take_lock
from queuectl.logs.parent_logs import remove_folders
from queuectl.logs.rotation import disk_size, remove_log


class Removed(NamedTuple):
    """Logs that were removed, and those that were not here: on another host, or removed by a user."""

    files: int = 0
    bytes: int = 0
    elsewhere: int = 0

    def __add__(self, other: object) -> Removed:
        if not isinstance(other, Removed):
            return NotImplemented
        return Removed(*(mine + yours for mine, yours in zip(self, other, strict=True)))


class Note:
    """A list of logs that are about to be removed, by job, and the store that has the jobs."""

    def __init__(self, lock: Lock | None, store: str, logs: Mapping[str, str], *, written_ns: int = 0) -> None:
        self._lock = lock
        self._written_ns = written_ns  # by the clock of the file system, as for the logs
        self.store = store
        self.logs = logs

    def finish(self, gone: Iterable[str], *, is_back: Callable[[str], bool]) -> Removed:
        """Remove the logs of the jobs that are gone, and the note. `is_back`: whether there is a job with this ID again. Called only if
        the log was written to since: then it belongs to that job."""
        logs = ((job_id, self.logs[job_id]) for job_id in gone if job_id in self.logs)
        removed = sum_removed(_remove(log) for job_id, log in logs if not (self._is_newer(log) and is_back(job_id)))
        if self._lock is not None:
            self._lock.remove()
        return removed

    def _is_newer(self, log: str) -> bool:
        try:
            return os.stat(log, follow_symlinks=False).st_mtime_ns >= self._written_ns
        except OSError:
            return False

    def leave(self) -> None:
        """Let another process finish it."""
        if self._lock is not None:
            self._lock.release()


def write_note(home: str, *, writer: str, store: str, logs: Mapping[str, str]) -> Note:
    """List logs that are about to be removed, in a file of the data directory. If none can be written, no process can finish the work after
    a crash: no reason to keep the jobs, least of all on a full disk."""
    path, lock, written_ns = paths.removing_file(home, writer), None, 0
    try:
        # Half a note counts as none, see `_read`. The descriptor of the lock is not for writing.
        if logs and (lock := take_lock(path)) is not None:
            with open(
                os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW), "w", encoding="utf-8"
            ) as file:
                file.write(json.dumps({"store": store, "logs": dict(logs)}) + "\n")
            written_ns = os.stat(path).st_mtime_ns
    except OSError:
        if lock is not None:
            lock.remove()
            lock = None
    return Note(lock, store, logs, written_ns=written_ns)


def abandoned_notes(home: str, *, store: str) -> Iterator[Note]:
    """The notes of processes that were killed before they had removed the logs of jobs of this store."""
    for path in paths.removing_files(home):
        if (lock := take_lock(path, create=False)) is None:
            continue
        if (note := _read(path, lock)) is None:
            lock.remove()  # its writer died while writing it, so nothing was removed by it
        elif note.store == store:
            yield note
        else:
            lock.release()


def log_size(path: str | None) -> Removed:
    """What `finish` would remove."""
    if path is None:
        return Removed()
    try:
        return Removed(1, disk_size(path))
    except OSError:
        return Removed(elsewhere=1)


def sum_removed(some: Iterable[Removed]) -> Removed:
    total = Removed()
    for removed in some:
        total += removed
    return total


def _remove(path: str) -> Removed:
    found = log_size(path)
    remove_folders(path)  # of lost runs
    try:
        remove_log(path)
    except OSError:  # of another user: the record is removed, and that is what was asked for
        return Removed(elsewhere=1)
    return found


def _read(path: str, lock: Lock) -> Note | None:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW), encoding="utf-8") as file:
            found = json.load(file)
            written_ns = os.fstat(file.fileno()).st_mtime_ns
        return Note(lock, found["store"], found["logs"], written_ns=written_ns)
    except (OSError, ValueError, KeyError, TypeError):
        return None
