"""Bringing a file to the schema of this version, or refusing it: never damaging what is not ours or is newer."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress

from queuectl import errors
from queuectl.clock import Clock
from queuectl.store.migrate import LATEST, migrations_of
from queuectl.store.sqlite.connection import APPLICATION_ID, EMPTY, MEMORY, Connection, OnWait
from queuectl.store.sqlite.files import is_closed, refuse_links, sealed
from queuectl.store.sqlite.trouble import translate


def connect(
    path: str, *, clock: Clock, patience: float = 30.0, on_wait: OnWait | None = None, made: bool = False
) -> Connection:
    """Open the file and migrate it if it is older or new. Any number of processes may do this at once.

    `made`: by the caller just now, so that it may be empty.
    """
    if path != MEMORY:
        refuse_links(path)
    if path != MEMORY and not made:
        _create(path)
        _refuse_emptied(path)
    db = Connection(path, clock=clock, patience=patience, on_wait=on_wait)
    try:
        with db.snapshot():  # another process may be at it: half of the old and half of the new would look foreign
            version = _version(db)
        if version > LATEST:
            raise errors.StoreTooNew(path, version, LATEST)
        if version == 0 and path != MEMORY and os.path.getsize(path) == 1:
            raise errors.StoreForeign(path)  # SQLite takes a file of one byte for an empty one
        if version < LATEST:
            _migrate(db)
        if path != MEMORY:
            _unmark(path)
    except BaseException:
        db.close()
        raise
    return db


def copy_closed(path: str, target: Callable[[], str]) -> str:
    """Copy a file of ours that nobody uses, of this version or an older one, after a look at whether it is whole; to where
    `target` says."""
    name = sealed(path) if is_closed(path) else path
    try:
        with closing(sqlite3.connect(name, uri=name != path)) as source:
            owner, version = (source.execute(f"pragma {of}").fetchone()[0] for of in ("application_id", "user_version"))
            if owner != APPLICATION_ID:
                raise errors.StoreForeign(path)
            if version > LATEST:
                raise errors.StoreTooNew(path, version, LATEST)
            if (found := source.execute("pragma quick_check(1)").fetchone()[0]) != "ok":
                raise errors.StoreDamaged(path, found)
            _make(copy := target())
            with closing(sqlite3.connect(copy)) as made:
                source.backup(made)
    except sqlite3.Error as exc:
        raise translate(exc, path) from exc
    return copy


def _create(path: str) -> None:
    if os.path.lexists(path):  # asked first: on a read-only disk making what is there fails for another reason
        return
    for new in (_mark(path), path):
        try:
            _make(new)
        except FileExistsError:  # another process was first
            pass
        except errors.HomeUnusable as exc:
            if not isinstance(exc.__cause__, FileNotFoundError):
                raise
            # A home is made before its store: this is a place that --db names.
            hint = "make it first, or choose another place with --db or QUEUECTL_DB"
            raise errors.StoreFailed(path, "its directory does not exist", hint=hint) from exc


def _make(path: str) -> None:
    # Made by us, not by SQLite, so that it is private whatever the umask; -wal and -shm take over its mode.
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        raise
    except OSError as exc:
        raise errors.HomeUnusable(os.path.dirname(path), exc.strerror or str(exc)) from exc


def _refuse_emptied(path: str) -> None:
    """An empty file is a store that somebody is about to make, as long as the mark lies beside it. Without the mark there
    was one: SQLite would make a new one of it, and remove its write-ahead log, which may hold all that was ever written."""
    # Asked again after the mark, which goes when the file has been filled.
    if _is_empty(path) and not os.path.exists(_mark(path)) and _is_empty(path):
        raise errors.StoreDamaged(path, EMPTY, hint=errors.StoreDamaged.IF_EMPTY)


def _is_empty(path: str) -> bool:
    try:
        return os.stat(path).st_size == 0
    except OSError:  # whoever opens it learns more
        return False


def _mark(path: str) -> str:
    return f"{path}-new"


def _unmark(path: str) -> None:
    if os.path.exists(_mark(path)):
        with suppress(OSError):  # another process was first, or the next one will do it
            os.unlink(_mark(path))


def _version(db: Connection) -> int:
    """The schema version of our file, 0 for an empty one. Raises StoreForeign for anything else."""
    version = int(db.value("pragma user_version"))
    owner = int(db.value("pragma application_id"))
    if owner == APPLICATION_ID:
        return version
    if owner or version or db.value("select count(*) from sqlite_master"):
        raise errors.StoreForeign(db.path)
    return 0


def _migrate(db: Connection) -> None:
    if db.path != MEMORY:
        # Must come before the first table, and outlives this connection: the file can shrink after a prune.
        db.execute("pragma auto_vacuum = incremental")
        if db.value("pragma journal_mode = wal") != "wal":
            raise errors.StoreFailed(db.path, "this file system cannot hold a SQLite write-ahead log")
    for migration in migrations_of(__file__):
        with db.transaction():
            # Asked again under the write lock: another process may have been first.
            if _version(db) >= migration.version:
                continue
            for statement in _statements(migration.read()):
                db.execute(statement)
            db.execute(f"pragma application_id = {APPLICATION_ID}")
            db.execute(f"pragma user_version = {migration.version}")


def _statements(script: str) -> Iterator[str]:
    """The statements of a script one by one: `executescript` would commit the transaction around it."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
