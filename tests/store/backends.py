"""The stores that have to pass the conformance suite, and a way to look behind each of them.

A new store? Add a class here and its name to BACKENDS: every test of this folder then runs on it too.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Protocol

from queuectl.clock import Clock
from queuectl.store.open import open_store
from queuectl.store.store import Store
from tests import postgres
from tests.store.blank import put_blank_store

Row = dict[str, Any]


class Backend(Protocol):
    home: Path

    def open(self, clock: Clock) -> Store:
        """The store of this test. Each call is a connection of its own, as another process would have it."""
        ...

    def open_copy(self, path: Path, clock: Clock) -> Store:
        """What `Store.backup` made at this path."""
        ...

    def rows(self, table: str = "jobs") -> list[Row]:
        """What really is in a table, past all our statements."""
        ...

    def force(self, job_id: str, **columns: Any) -> None:
        """Put a job where no method of the store can bring it yet (blocked, held)."""
        ...

    def tamper(self, statement: str) -> None:
        """Any statement."""
        ...

    def close(self) -> None: ...


class SqliteBackend:
    def __init__(self, home: Path) -> None:
        self.home = home

    def open(self, clock: Clock) -> Store:
        if not self.home.exists():
            put_blank_store(self.home)
        return open_store(str(self.home), None, clock)

    def open_copy(self, path: Path, clock: Clock) -> Store:
        return open_store(str(self.home), str(path), clock)

    def rows(self, table: str = "jobs") -> list[Row]:
        return [dict(row) for row in self._db.execute(f"select * from {table}")]

    def force(self, job_id: str, **columns: Any) -> None:
        if "state" in columns:  # as every verb has to: see store/transactions.py
            came = "insert into moves select queue, state, :state, '', 1 from jobs where id = :id"
            self._db.execute(came, {"id": job_id, **columns})
        changes = ", ".join(f"{name} = :{name}" for name in columns)
        found = self._db.execute(f"update jobs set {changes} where id = :id", {"id": job_id, **columns})
        assert found.rowcount == 1

    def tamper(self, statement: str) -> None:
        self._db.execute(statement)

    def close(self) -> None:
        if "_db" in self.__dict__:
            self._db.close()

    @cached_property
    def _db(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.home / "queue.db", isolation_level=None)
        db.row_factory = sqlite3.Row
        return db


class PostgresBackend:
    """A database of its own, cloned from one with an empty store."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.home.mkdir(exist_ok=True)  # workers need it, the store does not
        self._server = postgres.server()
        self._name = self._server.take()
        self.url = self._server.database(self._name)

    def open(self, clock: Clock) -> Store:
        return open_store(str(self.home), self.url, clock)

    def open_copy(self, path: Path, clock: Clock) -> Store:
        return open_store(str(self.home), str(path), clock)

    def rows(self, table: str = "jobs") -> list[Row]:
        return [dict(row) for row in self._db.execute(f"select * from queuectl.{table} order by 1")]

    def force(self, job_id: str, **columns: Any) -> None:
        values = {name: bool(value) if name in BOOLEANS else value for name, value in columns.items()}
        if "state" in columns:  # as every verb has to: see store/transactions.py
            came = (
                "insert into queuectl.moves select queue, state, %(state)s, '', 1 from queuectl.jobs where id = %(id)s"
            )
            self._db.execute(came, {"id": job_id, **values})
        changes = ", ".join(f"{name} = %({name})s" for name in values)
        found = self._db.execute(f"update queuectl.jobs set {changes} where id = %(id)s", {"id": job_id, **values})
        assert found.rowcount == 1

    def tamper(self, statement: str) -> None:
        self._db.execute("set search_path to queuectl")
        try:
            self._db.execute(statement)
        finally:
            self._db.execute("reset search_path")

    def close(self) -> None:
        self._server.give_back(self._name)

    @property
    def _db(self) -> Any:
        from psycopg.rows import dict_row

        return self._server.line(self._name).cursor(row_factory=dict_row)


BOOLEANS: Final = {"ready", "held"}  # in SQLite they are numbers

BACKENDS: Final[Mapping[str, Callable[[Path], Backend]]] = {"sqlite": SqliteBackend, "postgres": PostgresBackend}
