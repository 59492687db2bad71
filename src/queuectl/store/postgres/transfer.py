"""Import into PostgreSQL, copies of a whole PostgreSQL store, and backups.

A backup is a SQLite file, which queuectl opens without a server. For a backup of the whole PostgreSQL database use pg_dump.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Final

from queuectl import errors
from queuectl.jobs.priority import Ageing
from queuectl.store.dependencies import EdgeRow
from queuectl.store.postgres.connection import SQL
from queuectl.store.postgres.enqueue import raise_duplicate
from queuectl.store.postgres.errors import UniqueViolation
from queuectl.store.postgres.transactions import PostgresTransactions
from queuectl.store.sqlite.connection import SqliteTransactions, connect
from queuectl.store.sqlite.transfer import SqliteLoad
from queuectl.store.transactions import Transitions
from queuectl.store.transfer import (
    TABLES,
    Dump,
    Importer,
    Load,
    Table,
    Transfers,
)
from queuectl.store.types import Row

if TYPE_CHECKING:
    from queuectl.store.postgres.store import PostgresStore

_NO_TOKEN: Final = ""  # of an imported run, which no worker can write about
_WORKERS: Final = Table("workers", "id")  # unlike a copy, a backup contains them
# Columns that only this dialect has, with the value for rows from elsewhere; None: the default of the column. Without a token, no worker
# can write about a run.
_OWN: Final[Mapping[str, Mapping[str, str | None]]] = {
    "jobs": {"ready_since": None, "last_token": ""},
    "runs": {"token": ""},
}
_COLUMNS: Final = """
    select column_name
      from information_schema.columns
     where table_schema = 'queuectl'
       and table_name = %s
     order by ordinal_position
"""


class PostgresImporter(Importer):
    _tx: PostgresTransactions

    def __init__(self, store: PostgresStore, transitions: Transitions) -> None:
        super().__init__(store, transitions)
        self._db = store.db

    def take_seqs(self, count: int) -> tuple[Ageing, Sequence[int]]:
        return self.store.enqueuer.take_seqs([], count)

    def insert_rows(self, jobs: Sequence[Row], runs: Sequence[Row], tags: Sequence[Row]) -> None:
        self._db.copy(SQL["import_job"], ((*row, _NO_TOKEN) for row in jobs))
        if runs:
            self._db.copy(SQL["import_run"], ((*row, _NO_TOKEN) for row in runs))
        if tags:
            self._db.copy(SQL["tag_many"], tags)

    def insert_links(self, edges: Sequence[EdgeRow]) -> None:
        self._db.copy(SQL["link"], edges)
        # A parent that ends at this moment does not see its new children.
        self._db.copy(SQL["leave_undecided"], ((seq,) for seq in {row[0] for row in edges}))

    def refuse_duplicate(self, exc: Exception) -> None:
        if isinstance(exc, UniqueViolation):
            raise_duplicate(self._tx, self._last_ids, exc)


class PostgresDump(Dump):
    prefix = "queuectl."

    def columns(self, table: Table) -> Sequence[str]:
        own = _OWN.get(table.name, {})
        return [name for (name,) in self._tx.raw(_COLUMNS, (table.name,)) if name not in own]

    def select(self, table: Table) -> str:
        if table.name == "moves":  # of which there are many rows for each row of SQLite
            return SQL["moves"]
        return super().select(table)


class PostgresLoad(Load):
    """Within a transaction that holds `change_ageing`, which blocks changes to jobs and settings."""

    prefix = "queuectl."
    other_tables = ("workers", "done", "undecided")

    def __init__(self, tx: PostgresTransactions) -> None:
        super().__init__(tx)
        self._db = tx.db

    def add(self, table: Table, columns: Sequence[str], rows: Iterable[Row]) -> None:
        own = {name: value for name, value in _OWN.get(table.name, {}).items() if value is not None}
        names, values = ", ".join([*columns, *own]), tuple(own.values())
        self._db.copy(f"copy queuectl.{table.name} ({names}) from stdin", (row + values for row in rows))

    def continue_after(self, last_seq: int) -> None:
        if last_seq:
            self._tx.execute("continue_from", {"last_seq": last_seq})
        self._tx.execute("continue_audit")


class PostgresTransfers(Transfers):
    _store: PostgresStore

    def new_importer(self, transitions: Transitions) -> PostgresImporter:
        return PostgresImporter(self._store, transitions)

    def identity(self) -> str:
        return str(self._tx.value("identity", plan_freely=True))

    @contextmanager
    def dump(self) -> Iterator[Dump]:
        with self._store.tx.other_connection() as tx:
            yield PostgresDump(tx)

    @contextmanager
    def load(self) -> Iterator[Load]:
        with self._tx.write("change_ageing", notify=True, seconds=self._tx.long_seconds, plan_freely=True):
            yield PostgresLoad(self._store.tx)


def backup(tx: PostgresTransactions, path: str) -> None:
    """Write the store as of one moment, in bounded memory, while others continue to work."""
    try:
        # Created here, so that it is new, and private whatever the umask.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as exc:
        raise errors.StoreFailed(path, exc.strerror or str(exc)) from exc
    try:
        with (
            tx.other_connection() as source,
            closing(connect(path, clock=tx.clock, made=True)) as target,
            target.transaction(),
        ):
            _copy(PostgresDump(source), SqliteLoad(SqliteTransactions(target, tx.clock), records=False))
    except BaseException:
        os.unlink(path)
        raise


def _copy(dump: PostgresDump, load: SqliteLoad) -> None:
    load.clear_unused()
    for table in (*TABLES, _WORKERS):
        columns = dump.columns(table)
        for page in dump.pages(table):
            load.add(table, columns, page)
    load.finish(last_seq=dump.last_seq())
