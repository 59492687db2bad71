"""A copy of the store in a file: a SQLite store, which every queuectl opens without a server.

Not a dump for PostgreSQL: that is pg_dump's trade, and it copies the database as a whole. What `backup` promises is that what
there was can be looked at and used again, whatever happens to the server.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Final

from queuectl import errors
from queuectl.clock import Clock
from queuectl.store.postgres.connection import LONG_SECONDS, SQL, Connection
from queuectl.store.sqlite.connection import Connection as SqliteFile
from queuectl.store.sqlite.schema import connect

PAGE: Final = 1000
_SNAPSHOT: Final = "begin isolation level repeatable read read only"
# Tables that hold the same in both, each with an order to read it in.
_TABLES: Final = {"config": "key", "jobs": "seq", "runs": "job, number", "job_tags": "job, tag", "workers": "id"}


def backup(db: Connection, path: str, *, clock: Clock) -> None:
    """All of the store as it is at one moment, in bounded memory, while others go on working."""
    try:
        # Made here, so that it is new for certain, and private whatever the umask.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as exc:
        raise errors.StoreFailed(path, exc.strerror or str(exc)) from exc
    try:
        with (
            closing(db.beside()) as source,
            closing(connect(path, clock=clock)) as target,
            source.transaction(begin=_SNAPSHOT, seconds=LONG_SECONDS, plan_freely=True),
            target.transaction(),
        ):
            _copy(source, target)
    except BaseException:
        os.unlink(path)
        raise


def _copy(source: Connection, target: SqliteFile) -> None:
    for table, order in _TABLES.items():
        names = ", ".join(_columns(target, table))
        marks = ", ".join("?" * len(_columns(target, table)))
        for page in source.pages(f"select {names} from queuectl.{table} order by {order}", size=PAGE):
            target.executemany(f"insert into {table} ({names}) values ({marks})", page)
    target.executemany("insert into moves (queue, was, now, ending, jobs) values (?, ?, ?, ?, ?)", _moves(source))
    last_seq = source.value(SQL["last_seq"])
    target.execute("delete from sqlite_sequence where name = 'jobs'")
    target.execute("insert into sqlite_sequence (name, seq) values ('jobs', ?)", (last_seq,))


def _moves(source: Connection) -> Iterator[tuple[object, ...]]:
    yield from source.all(SQL["moves"])


def _columns(target: SqliteFile, table: str) -> Sequence[str]:
    return [str(row[1]) for row in target.all(f"pragma table_info({table})")]
