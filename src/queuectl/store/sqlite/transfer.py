"""Import into SQLite, and copies of a whole SQLite store."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from queuectl import errors
from queuectl.jobs.priority import Ageing
from queuectl.store.dependencies import EdgeRow
from queuectl.store.sqlite.connection import SQL, Connection, SqliteTransactions
from queuectl.store.transactions import Transitions
from queuectl.store.transfer import Dump, Importer, Load, Table, Transfers
from queuectl.store.types import Row

if TYPE_CHECKING:
    from queuectl.store.sqlite.store import SqliteStore


class SqliteImporter(Importer):
    def __init__(self, store: SqliteStore, transitions: Transitions) -> None:
        super().__init__(store, transitions)
        self._db = store.db

    def take_seqs(self, count: int) -> tuple[Ageing, Sequence[int]]:
        last_seq = self._tx.last_seq()
        return self._tx.ageing(), range(last_seq + 1, last_seq + 1 + count)

    def insert_rows(self, jobs: Sequence[Row], runs: Sequence[Row], tags: Sequence[Row]) -> None:
        for name, rows in (("import_job", jobs), ("import_run", runs), ("tag", tags)):
            self._db.executemany(SQL[name], rows)

    def insert_links(self, edges: Sequence[EdgeRow]) -> None:
        self._db.executemany(SQL["link"], edges)
        self._db.executemany(SQL["leave_undecided"], [(seq,) for seq in {row[0] for row in edges}])

    def refuse_duplicate(self, exc: Exception) -> None:
        if not isinstance(exc, sqlite3.IntegrityError):
            return
        found = sorted(self.present(self._last_ids).values(), key=lambda job: job.seq)
        if "jobs.id" not in str(exc) or not found:
            raise errors.StoreFailed(self._db.path, str(exc)) from exc
        raise errors.DuplicateId(found[0].id) from exc


class SqliteDump(Dump):
    def columns(self, table: Table) -> Sequence[str]:
        return [str(row[1]) for row in self._tx.raw(f"pragma table_info({table.name})")]


class SqliteLoad(Load):
    def __init__(self, tx: SqliteTransactions, *, records: bool = True) -> None:
        super().__init__(tx, records=records)
        self._db: Connection = tx.db

    def add(self, table: Table, columns: Sequence[str], rows: Iterable[Row]) -> None:
        names, marks = ", ".join(columns), ", ".join("?" * len(columns))
        try:
            self._db.executemany(f"insert into {table.name} ({names}) values ({marks})", rows)
        except sqlite3.IntegrityError as exc:
            raise errors.StoreFailed(
                self._db.path, str(exc), hint="the source holds what no queuectl database may hold"
            ) from exc

    def continue_after(self, last_seq: int) -> None:
        self._db.execute("delete from sqlite_sequence where name = 'jobs'")
        self._db.execute("insert into sqlite_sequence (name, seq) values ('jobs', ?)", (last_seq,))


class SqliteTransfers(Transfers):
    _store: SqliteStore

    def new_importer(self, transitions: Transitions) -> SqliteImporter:
        return SqliteImporter(self._store, transitions)

    def identity(self) -> str:
        return self._store.db.identity()

    @contextmanager
    def dump(self) -> Iterator[Dump]:
        with self._store.tx.other_connection() as tx:
            yield SqliteDump(tx)

    @contextmanager
    def load(self) -> Iterator[Load]:
        with self._tx.write(notify=True):
            yield SqliteLoad(self._store.tx)
