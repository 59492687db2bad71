"""Connections to one file, given out again after they were closed: so what SQLite has prepared for one is prepared once, and not
for every participant of every seed."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from queuectl.clock import SystemClock
from queuectl.store.sqlite.store import SqliteStore


class _Lent(sqlite3.Connection):
    pool: Pool

    def close(self) -> None:
        if self.in_transaction:
            self.rollback()
        self.pool.free.append(self)

    def close_for_good(self) -> None:
        super().close()


class Pool:
    """Stands in for `sqlite3`, as far as `connect` goes: always to the file of this pool, a store without jobs."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.free: list[_Lent] = []
        self._made: list[_Lent] = []
        SqliteStore(self.path, clock=SystemClock()).close()
        with self.connect() as db:
            tables = db.execute("select name from sqlite_master where type = 'table'").fetchall()
        db.close()
        self._clear = [f"delete from {name}" for (name,) in tables]

    def __getattr__(self, name: str) -> Any:
        return getattr(sqlite3, name)

    def connect(self, *_: object, **__: object) -> _Lent:
        if self.free:
            return self.free.pop()
        # Of any thread: only one of them runs.
        made = sqlite3.connect(
            self.path,
            timeout=0,
            isolation_level=None,
            cached_statements=256,
            check_same_thread=False,
            factory=_Lent,
        )
        made.pool = self
        self._made.append(made)
        return made

    def clear(self) -> None:
        """Remove all rows, as in a new file."""
        db = self.connect()
        db.execute("begin immediate")
        for statement in self._clear:
            db.execute(statement)
        db.execute("commit")
        db.close()

    def forget(self) -> None:
        """A failed run may have left a cursor that is still read: use none of these connections again."""
        for one in self._made:
            one.close_for_good()
        self._made.clear()
        self.free.clear()
