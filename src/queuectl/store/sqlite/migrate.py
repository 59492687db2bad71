"""Open a file and migrate it to the current schema. Files of other programs and of newer versions are refused unchanged."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress

from queuectl import errors
from queuectl.clock import Clock
from queuectl.store.sqlite.connection import (
    APPLICATION_ID,
    EMPTY,
    MEMORY,
    Connection,
    OnWait,
    is_closed,
    read_only_uri,
    refuse_links,
)
from queuectl.store.sqlite.errors import translate
from queuectl.store.statements import LATEST, migrations_of


def connect(
    path: str, *, clock: Clock, patience: float = 30.0, on_wait: OnWait | None = None, made: bool = False
) -> Connection:
    """Open the file and migrate it if it is older or new. Any number of processes may do this at once.

    `made`: the caller has just created it, so it may be empty.
    """
    if path != MEMORY:
        refuse_links(path)
    if path != MEMORY and not made:
        _create(path)
        _refuse_emptied(path)
    db = Connection(path, clock=clock, patience=patience, on_wait=on_wait)
    try:
        with (
            db.snapshot()
        ):  # another process may be migrating it: half of the old and half of the new would look foreign
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
    """Copy a database that is not in use, of this version or an older one, after an integrity check, to the path that `target`
    returns."""
    name = read_only_uri(path) if is_closed(path) else path
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
    if os.path.lexists(path):  # checked first: on a read-only disk, creating an existing file fails for another reason
        return
    for new in (_mark(path), path):
        try:
            _make(new)
        except FileExistsError:  # another process was first
            pass
        except errors.HomeUnusable as exc:
            if not isinstance(exc.__cause__, FileNotFoundError):
                raise
            # The data directory is created before its database, so this is a path from --db.
            hint = "make it first, or choose another place with --db or QUEUECTL_DB"
            raise errors.StoreFailed(path, "its directory does not exist", hint=hint) from exc


def _make(path: str) -> None:
    # Created here and not by SQLite, so that it is private whatever the umask; -wal and -shm get the same mode.
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        raise
    except OSError as exc:
        raise errors.HomeUnusable(os.path.dirname(path), exc.strerror or str(exc)) from exc


def _refuse_emptied(path: str) -> None:
    """An empty file with the mark beside it is being created by another process. Without the mark, a database was truncated: SQLite
    would initialize it again, and remove its write-ahead log, which may contain all data."""
    # Checked again after the mark, which is removed when the file has been initialized.
    if _is_empty(path) and not os.path.exists(_mark(path)) and _is_empty(path):
        raise errors.StoreDamaged(path, EMPTY, hint=errors.StoreDamaged.IF_EMPTY)


def _is_empty(path: str) -> bool:
    try:
        return os.stat(path).st_size == 0
    except OSError:  # opening it reports the error
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
        # Must come before the first table, and is stored in the file: it can shrink after a prune.
        db.execute("pragma auto_vacuum = incremental")
        if db.value("pragma journal_mode = wal") != "wal":
            raise errors.StoreFailed(db.path, "this file system cannot hold a SQLite write-ahead log")
    for migration in migrations_of(__file__):
        with db.transaction():
            # Checked again under the write lock: another process may have been first.
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
