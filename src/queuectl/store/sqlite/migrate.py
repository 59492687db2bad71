"""Create or migrate the schema of a SQLite file, and copy a file of this version or an older one."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing

from queuectl import errors
from queuectl.store.sqlite.connection import (
    APPLICATION_ID,
    MEMORY,
    Connection,
    is_closed,
    make_file,
    read_only_uri,
    read_version,
)
from queuectl.store.sqlite.errors import translate
from queuectl.store.statements import LATEST, migrations_of


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
            make_file(copy := target())
            with closing(sqlite3.connect(copy)) as made:
                source.backup(made)
    except sqlite3.Error as exc:
        raise translate(exc, path) from exc
    return copy


def migrate(db: Connection) -> None:
    if db.path != MEMORY:
        # Must come before the first table, and is stored in the file: it can shrink after a prune.
        db.execute("pragma auto_vacuum = incremental")
        if db.value("pragma journal_mode = wal") != "wal":
            raise errors.StoreFailed(db.path, "this file system cannot hold a SQLite write-ahead log")
    for migration in migrations_of(__file__):
        with db.transaction():
            # Checked again under the write lock: another process may have been first.
            if read_version(db) >= migration.version:
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
