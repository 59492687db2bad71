"""Copy, back up, restore and reset a store."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from queuectl import paths as places
from queuectl.clock import Clock
from queuectl.errors import (
    FileExists,
    FileUnwritable,
    HomeUnusable,
    QueuectlError,
    WorkersAlive,
)
from queuectl.jobs.model import Worker
from queuectl.logs.parent_logs import FOLDER_SUFFIX, SUFFIX, remove_folders
from queuectl.logs.rotation import ROTATED_SUFFIX
from queuectl.operations.copy import Advance, CopyResult, copy_store
from queuectl.operations.export import publish
from queuectl.store.reads import Reads
from queuectl.store.store import Store
from queuectl.units import from_ms

PARTIAL = ".partial"


def create_backup(store: Reads, path: str) -> int:
    """Write a snapshot of the store to a new file and return its size. The file appears under its name when it is complete."""
    if os.path.lexists(path):
        raise FileExists(path)
    if not os.path.isdir(os.path.dirname(path)):
        raise FileUnwritable(path, "there is no such directory")
    partial = f"{path}{PARTIAL}"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(partial)  # of a killed process
    store.backup(partial)
    try:
        size = os.path.getsize(partial)
        publish(partial, path)
        folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except FileExistsError as exc:
        raise FileExists(path) from exc
    except OSError as exc:
        raise FileUnwritable(path, exc.strerror or str(exc)) from exc
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial)
    return size


def new_backup_path(home: str, clock: Clock, *, before: str) -> str:
    """The path of a new automatic backup; `before` is the command that removes the data."""
    folder = places.backups(home)
    places.make_home(home)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError as exc:
        raise HomeUnusable(home, f"backups: {exc.strerror}") from exc
    # To the millisecond: two backups in one second must not have the same name.
    moment = from_ms(clock.now_ms()).strftime("%Y%m%dT%H%M%S.%f")[:-3]
    return os.path.join(folder, f"{before}-{moment}Z.db")


class ResetResult(NamedTuple):
    jobs: int  # removed
    backup: str
    schedules: int  # kept, as are queues and alerts
    queues: int
    alerts: int


def reset_store(store: Store, clock: Clock, *, home: str, is_alive: Callable[[Worker], bool]) -> ResetResult:
    """Remove all jobs, their history and logs, after a backup. Raises WorkersAlive, with nothing changed, while workers run."""
    require_no_workers(store, verb="reset", home=home, is_alive=is_alive)
    path = new_backup_path(home, clock, before="reset")
    store.backup(path)
    jobs = store.reset()
    _remove_logs(home)
    return ResetResult(jobs, path, **count_kept(store))


def count_kept(store: Reads) -> dict[str, int]:
    """The number of schedules, queues with settings, and alerts, which a reset keeps."""
    return {
        "schedules": len(store.schedules.all()),
        "queues": len(store.queues.rules()),
        "alerts": len(store.alerts.all()),
    }


def require_no_workers(store: Reads, *, verb: str, home: str, is_alive: Callable[[Worker], bool]) -> None:
    if alive := [worker for worker in store.workers() if is_alive(worker)]:
        are_ours = all(worker.home == home for worker in alive)
        hint = "queuectl worker stop" if are_ours else "queuectl worker stop --all"
        raise WorkersAlive(verb, [worker.id for worker in alive], hint=hint)


def _remove_logs(home: str) -> None:
    # By directory, not by job: this needs no memory for a million paths, and removes logs of purged jobs, too.
    if not os.path.isdir(places.logs(home)):
        return  # no job ever ran on this host
    with os.scandir(places.logs(home)) as logs:
        for entry in logs:
            if entry.name.endswith((".log", ".log" + ROTATED_SUFFIX)) and entry.is_file(follow_symlinks=False):
                os.unlink(entry.path)
            elif entry.name.endswith(FOLDER_SUFFIX):
                remove_folders(entry.path.removesuffix(FOLDER_SUFFIX) + SUFFIX)


SQLITE_SUFFIXES = ("", "-wal", "-shm")  # the files of a SQLite database


class RestoreResult(NamedTuple):
    copied: CopyResult
    kept: str | None  # backup of the previous content; None if there was none


class RestoreTarget(NamedTuple):
    """The target of a restore."""

    home: str
    file: str | None  # of SQLite; None for PostgreSQL
    unusable: tuple[type[QueuectlError], ...]  # errors of a database that cannot be used as it is
    is_there: Callable[[], bool]
    open: Callable[[], Store]
    refuse_while_locked: Callable[[], None]  # by the lock files of workers, if the database cannot be read


def restore_backup(
    source: Store,
    name: str,
    place: RestoreTarget,
    *,
    clock: Clock,
    is_alive: Callable[[Worker], bool],
    advance: Advance,
) -> RestoreResult:
    """Replace the content of the target by that of `source`, a copy of the backup `name`; running jobs become pending.

    The previous content is backed up; a damaged database is moved to the backups. Raises WorkersAlive while workers run.
    """
    kept = None
    try:
        if place.is_there():
            target = place.open()
            require_no_workers(target, verb="restore", home=place.home, is_alive=is_alive)
            kept = new_backup_path(place.home, clock, before="restore")
            target.backup(kept)
            return RestoreResult(_fill(source, name, target, clock, advance), kept)
    except place.unusable:
        if place.file is None:
            raise
        place.refuse_while_locked()
        if kept is not None:
            with suppress(FileNotFoundError):  # an incomplete copy of the damaged database
                os.unlink(kept)
        kept = move_damaged(place.file, home=place.home, clock=clock)
    return RestoreResult(_fill(source, name, place.open(), clock, advance), kept)


def move_damaged(path: str, *, home: str, clock: Clock) -> str:
    """Move a database that cannot be opened to the backups."""
    kept = new_backup_path(home, clock, before="damaged")
    for beside in reversed(SQLITE_SUFFIXES):
        try:
            os.rename(path + beside, kept + beside)
        except FileNotFoundError:
            continue
        except OSError as exc:
            raise HomeUnusable(home, f"backups: {exc.strerror}") from exc
    return kept


def _fill(source: Store, name: str, target: Store, clock: Clock, advance: Advance) -> CopyResult:
    return copy_store(
        source,
        lambda: target,
        clock=clock,
        is_alive=lambda _: False,
        force=True,
        replace=True,
        why="it ran when the backup was made",
        name=name,
        advance=advance,
    )
