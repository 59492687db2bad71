"""Removing the logs of jobs that are removed: after the record, and also if whoever is at it is killed in between.

A log without a job is litter, a job without its log would be a loss: so the record goes first. Which logs are about to go is
noted before that, in a file of the home that its writer holds a lock on; whoever finds one that nobody holds finishes it. Not by
looking for logs without a job: a home may hold the logs of several stores.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from queuectl import paths as places
from queuectl.filelock import Lock, take_lock
from queuectl.logs.bounds import BESIDE
from queuectl.logs.parents import remove_folders


class Removed(NamedTuple):
    """Logs that are gone, and those that could not be reached: of another host, or removed before by somebody."""

    files: int = 0
    bytes: int = 0
    elsewhere: int = 0

    def __add__(self, other: object) -> Removed:
        if not isinstance(other, Removed):
            return NotImplemented
        return Removed(*(mine + yours for mine, yours in zip(self, other, strict=True)))


class Note:
    """Which logs are about to be removed, by job; and of which store the jobs are."""

    def __init__(self, lock: Lock | None, store: str, logs: Mapping[str, str], *, written_ns: int = 0) -> None:
        self._lock = lock
        self._written_ns = written_ns  # by the clock of the file system, which the logs have, too
        self.store = store
        self.logs = logs

    def finish(self, gone: Iterable[str], *, is_back: Callable[[str], bool]) -> Removed:
        """Remove the logs of the jobs that are gone, and the note. `is_back`: whether there is a job of this id again, asked
        where somebody has written since: then the log is that of a new job, which took the id as soon as it was free."""
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
        """Let whoever comes next finish it."""
        if self._lock is not None:
            self._lock.release()


def write_note(home: str, *, writer: str, store: str, logs: Mapping[str, str]) -> Note:
    """Say which logs are about to go, in a file of this name. Where none can be written, nobody could finish it after a
    crash: no reason to keep the jobs, least of all on a disk that is full."""
    path, lock, written_ns = places.removing_file(home, writer), None, 0
    try:
        # Half a note is none, see `_read`; the descriptor of the lock is not ours to write to.
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
    """The notes of those who were killed before they were done with jobs of this store."""
    for path in places.removing_files(home):
        if (lock := take_lock(path, create=False)) is None:
            continue
        if (note := _read(path, lock)) is None:
            lock.remove()  # its writer died while writing it, so nothing was removed by it
        elif note.store == store:
            yield note
        else:
            lock.release()


def log_size(path: str | None) -> Removed:
    """What `finish` would remove of it."""
    if path is None:
        return Removed()
    try:
        return Removed(1, os.stat(path, follow_symlinks=False).st_size)
    except OSError:
        return Removed(elsewhere=1)


def sum_removed(some: Iterable[Removed]) -> Removed:
    total = Removed()
    for removed in some:
        total += removed
    return total


def _remove(path: str) -> Removed:
    found = log_size(path)
    remove_folders(path)  # what its parents printed, if nobody has come to that
    try:
        os.unlink(path)
        with contextlib.suppress(FileNotFoundError):  # there is one only if the writer was killed while cutting the log
            os.unlink(path + BESIDE)
    except OSError:  # of another host, or of another user: the record is gone, and that is what was asked for
        return Removed(elsewhere=1)
    return found


def _read(path: str, lock: Lock) -> Note | None:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW), encoding="utf-8") as file:
            told = json.load(file)
            written_ns = os.fstat(file.fileno()).st_mtime_ns
        return Note(lock, told["store"], told["logs"], written_ns=written_ns)
    except (OSError, ValueError, KeyError, TypeError):
        return None
