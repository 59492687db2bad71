"""A copy of the store in a file: a SQLite store, which every queuectl opens without a server.

Not a dump for PostgreSQL: that is pg_dump's trade, and it copies the database as a whole. What `backup` promises is that what
there was can be looked at and used again, whatever happens to the server.
"""

from __future__ import annotations

import os
from contextlib import closing
from typing import Final

from queuectl import errors
from queuectl.clock import Clock
from queuectl.store.copying import TABLES, Table
from queuectl.store.postgres.connection import LONG_SECONDS, SNAPSHOT, Connection
from queuectl.store.postgres.copying import PostgresDump
from queuectl.store.sqlite.copying import SqliteLoad
from queuectl.store.sqlite.schema import connect

# Unlike a copy to work with, a backup shows who was at work.
_WORKERS: Final = Table("workers", "id")


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
            closing(connect(path, clock=clock, made=True)) as target,
            source.transaction(begin=SNAPSHOT, seconds=LONG_SECONDS, plan_freely=True),
            target.transaction(),
        ):
            _copy(PostgresDump(source), SqliteLoad(target, lambda _: None))  # nobody asked for a record in the copy
    except BaseException:
        os.unlink(path)
        raise


def _copy(dump: PostgresDump, load: SqliteLoad) -> None:
    load.make_room()
    for table in (*TABLES, _WORKERS):
        columns = dump.columns(table)
        for page in dump.pages(table):
            load.add(table, columns, page)
    load.finish(last_seq=dump.last_seq())
