"""Staging for an import: records are validated and sorted before the first one is inserted, in bounded memory.

A temporary SQLite database without a name: private, and removed when the process ends, however that happens.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple, Self

from queuectl import errors
from queuectl.jobs.import_record import ImportRecord, hidden_variable, pack_record, unpack_record

PAGE: Final = 200  # records at a time: a job may have a megabyte of text

_TABLE: Final = """
    create table staged (
        position integer primary key,
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
    number: int  # of the line, item or row
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
        """False if the ID is staged already."""
        row = (number, record.id, record.created_at, record.was_running, hidden_variable(record), pack_record(record))
        try:
            with _translate_errors():
                self._db.execute(_ADD, row)
        except sqlite3.IntegrityError:
            return False
        self.size += 1
        return True

    def pages(self) -> Iterator[list[Staged]]:
        """All records that are not excluded, in the order added. More may be excluded between two pages."""
        last = 0
        while True:
            with _translate_errors():
                rows = self._db.execute(
                    "select position, number, id, record from staged where is_new and position > ? order by position limit ?",
                    (last, PAGE),
                ).fetchall()
            if not rows:
                return
            last = rows[-1][0]
            yield [Staged(*row[1:]) for row in rows]

    def exclude(self, ids: Sequence[str]) -> None:
        with _translate_errors():
            self._db.execute(
                "update staged set is_new = 0 where id in (select value from json_each(?))", (json.dumps(ids),)
            )

    def remaining(self) -> tuple[int, int]:
        """The number of records that are not excluded, and how many of them were running at the export."""
        found = self._db.execute("select count(*), coalesce(sum(was_running), 0) from staged where is_new").fetchone()
        return int(found[0]), int(found[1])

    def first_hidden(self) -> tuple[int, str] | None:
        """The number of the first record with a hidden value in its environment, and the name of the variable."""
        found: tuple[int, str] | None = self._db.execute(
            "select number, hidden from staged where is_new and hidden is not null order by position limit 1"
        ).fetchone()
        return found

    def by_age(self) -> Iterator[list[ImportRecord]]:
        """All records that are not excluded, the oldest first; those of the same time in the order added."""
        with _translate_errors():
            self._db.execute("create index if not exists by_age on staged (created_at, position)")
            found = self._db.execute("select record from staged where is_new order by created_at, position")
            while rows := found.fetchmany(PAGE):
                yield [unpack_record(text) for (text,) in rows]


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as exc:
        hint = "free some disk space where temporary files are; nothing was imported"
        raise errors.StoreFailed("of the import", str(exc), hint=hint) from exc
