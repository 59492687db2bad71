"""A whole SQLite store, out and in. See store/copying.py."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager

from queuectl import errors
from queuectl.job.audit import Act
from queuectl.store.copying import AUDIT, SAMPLES, TABLES, Dump, Load, Row, Table
from queuectl.store.sqlite.base import SQL, SqliteBase
from queuectl.store.sqlite.connection import Connection


class SqliteMovable(SqliteBase):
    @property
    def shown(self) -> str:
        return self._db.path

    def identity(self) -> str:
        return self._db.identity()

    @contextmanager
    def dump(self) -> Iterator[Dump]:
        with closing(self._db.beside()) as db, db.snapshot():
            yield SqliteDump(db)

    @contextmanager
    def load(self) -> Iterator[Load]:
        with self._db.transaction():
            yield SqliteLoad(self._db, self._record)
        self._ring()


class SqliteDump:
    """Within a snapshot."""

    def __init__(self, db: Connection) -> None:
        self._db = db

    def counts(self) -> dict[str, int]:
        return dict(self._db.all(SQL["copied"]))

    def running(self) -> int:
        return int(self._db.value("select count(*) from jobs where state = 'processing'"))

    def config(self) -> dict[str, str]:
        return dict(self._db.all(SQL["config"]))

    def last_seq(self) -> int:
        return int(self._db.value(SQL["last_seq"]))

    def columns(self, table: Table) -> Sequence[str]:
        return [str(row[1]) for row in self._db.all(f"pragma table_info({table.name})")]

    def size(self, table: Table) -> int:
        return int(self._db.value(f"select count(*) from {table.name}"))

    def pages(self, table: Table) -> Iterator[list[Row]]:
        names = ", ".join(self.columns(table))
        yield from self._db.pages(f"select {names} from {table.name} order by {table.order}", size=table.page)


class SqliteLoad:
    """Within a transaction: the write lock keeps everybody else out."""

    def __init__(self, db: Connection, record: Callable[[Act], None]) -> None:
        self._db = db
        self.record = record

    def is_untouched(self) -> bool:
        return bool(self._db.value(SQL["is_untouched"]))

    def make_room(self) -> None:
        self._db.execute(SQL["forget_chain"])
        for name in (*SAMPLES, *AUDIT):
            self._db.execute(f"delete from {name}")

    def clear(self) -> None:
        self._db.execute(SQL["forget_chain"])
        for name in ("workers", *(table.name for table in reversed(TABLES))):
            self._db.execute(f"delete from {name}")

    def add(self, table: Table, columns: Sequence[str], rows: Iterable[Row]) -> None:
        names, marks = ", ".join(columns), ", ".join("?" * len(columns))
        try:
            self._db.executemany(f"insert into {table.name} ({names}) values ({marks})", rows)
        except sqlite3.IntegrityError as exc:
            raise errors.StoreFailed(self._db.path, str(exc), hint="the source holds what no store may hold") from exc

    def moved(self, moves: Sequence[Row]) -> None:
        self._db.executemany(SQL["moved"], moves)

    def counts(self) -> dict[str, int]:
        return dict(self._db.all(SQL["copied"]))

    def finish(self, *, last_seq: int) -> None:
        self._db.execute(SQL["note_undecided"])
        self._db.execute("delete from sqlite_sequence where name = 'jobs'")
        self._db.execute("insert into sqlite_sequence (name, seq) values ('jobs', ?)", (last_seq,))
        # Who ran may wait again in the copy.
        per_key = dict.fromkeys((queue for (queue,) in self._db.all(SQL["placed_queues"])), None)
        per_key |= dict(self._db.all(SQL["per_key"]))
        self._db.executemany(SQL["line_up"], [{"queue": queue, "per_key": limit} for queue, limit in per_key.items()])
