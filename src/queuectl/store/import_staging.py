"""Records on their way into a store, sorted and looked through before the first goes in, in numbers that no memory holds.

In a SQLite database that is a temporary file without a name: private, and gone with the process, however that ends.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple, Self

from queuectl import errors
from queuectl.jobs.import_record import ImportRecord, hidden_variable, pack_record, unpack_record

PAGE: Final = 200  # records at a time: a job may hold a megabyte of words

_TABLE: Final = """
    create table staged (
        place integer primary key,
        number integer not null,
        id text not null unique,
        created_at integer not null,
        is_new integer not null default 1,
        was_running integer not null,
        hidden text,
        record text not null
    )
"""
_ADD: Final = "insert into staged (number, id, created_at, was_running, hidden, record) values (?, ?, ?, ?, ?, ?)"


class Staged(NamedTuple):
    number: int  # of the line, item or row that it was
    id: str
    packed: str  # see jobs/import_record.py


class Stage:
    def __init__(self) -> None:
        self.size = 0
        self._db = sqlite3.connect("", isolation_level=None)
        for statement in ("pragma journal_mode = off", "pragma synchronous = off", _TABLE, "begin"):
            self._db.execute(statement)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def add(self, number: int, record: ImportRecord) -> bool:
        """False if one of this id is there already."""
        row = (number, record.id, record.created_at, record.was_running, hidden_variable(record), pack_record(record))
        try:
            with _trouble():
                self._db.execute(_ADD, row)
        except sqlite3.IntegrityError:
            return False
        self.size += 1
        return True

    def pages(self) -> Iterator[list[Staged]]:
        """All but those left out, in the order they came. Between two pages more of them may be left out."""
        last = 0
        while True:
            with _trouble():
                rows = self._db.execute(
                    "select place, number, id, record from staged where is_new and place > ? order by place limit ?",
                    (last, PAGE),
                ).fetchall()
            if not rows:
                return
            last = rows[-1][0]
            yield [Staged(*row[1:]) for row in rows]

    def leave_out(self, ids: Sequence[str]) -> None:
        with _trouble():
            self._db.execute(
                "update staged set is_new = 0 where id in (select value from json_each(?))", (json.dumps(ids),)
            )

    def left(self) -> tuple[int, int]:
        """How many were not left out, and how many of these ran when they were exported."""
        found = self._db.execute("select count(*), coalesce(sum(was_running), 0) from staged where is_new").fetchone()
        return int(found[0]), int(found[1])

    def hidden(self) -> tuple[int, str] | None:
        """The number of the first that lacks a value of its environment, and the name of the variable."""
        found: tuple[int, str] | None = self._db.execute(
            "select number, hidden from staged where is_new and hidden is not null order by place limit 1"
        ).fetchone()
        return found

    def by_age(self) -> Iterator[list[ImportRecord]]:
        """All but those left out, the oldest first; those of one moment in the order they came."""
        with _trouble():
            self._db.execute("create index if not exists by_age on staged (created_at, place)")
            found = self._db.execute("select record from staged where is_new order by created_at, place")
            while rows := found.fetchmany(PAGE):
                yield [unpack_record(text) for (text,) in rows]


@contextmanager
def _trouble() -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as exc:
        hint = "free some disk space where temporary files are; nothing was imported"
        raise errors.StoreFailed("of the import", str(exc), hint=hint) from exc
