"""A whole PostgreSQL store, out and in. See store/copying.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Final

from queuectl.job.audit import Act
from queuectl.store.copying import AUDIT, SAMPLES, TABLES, Dump, Load, Row, Table
from queuectl.store.postgres.base import PostgresBase, ageing_values, line_up_all, read_ageing
from queuectl.store.postgres.connection import LONG_SECONDS, SNAPSHOT, SQL, Connection, Question

# What only this dialect has, and what stands there in a row from elsewhere; None: the default of the column. A token says
# which worker may write about a run: about one of these nobody may.
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


class PostgresMovable(PostgresBase):
    @property
    def shown(self) -> str:
        return self._db.shown

    def identity(self) -> str:
        (((identity,),),) = self._db.ask(Question(SQL["identity"]), plan_freely=True)
        return str(identity)

    @contextmanager
    def dump(self) -> Iterator[Dump]:
        with (
            closing(self._db.beside()) as db,
            db.transaction(begin=SNAPSHOT, seconds=LONG_SECONDS, plan_freely=True),
        ):
            yield PostgresDump(db)

    @contextmanager
    def load(self) -> Iterator[Load]:
        alone = Question(SQL["change_ageing"])
        with self._db.transaction(alone, after=self._ring(), seconds=LONG_SECONDS, plan_freely=True):
            yield PostgresLoad(self._db, self._record)


class PostgresDump:
    """Within a transaction that sees one state of the store."""

    def __init__(self, db: Connection) -> None:
        self._db = db

    def counts(self) -> dict[str, int]:
        return dict(self._db.all(SQL["copied"]))

    def running(self) -> int:
        return int(self._db.value("select count(*) from queuectl.jobs where state = 'processing'"))

    def config(self) -> dict[str, str]:
        return dict(self._db.all(SQL["config"]))

    def last_seq(self) -> int:
        return int(self._db.value(SQL["last_seq"]))

    def columns(self, table: Table) -> Sequence[str]:
        own = _OWN.get(table.name, {})
        return [name for (name,) in self._db.all(_COLUMNS, (table.name,)) if name not in own]

    def size(self, table: Table) -> int:
        return int(self._db.value(f"select count(*) from ({self._select(table)}) as found"))

    def pages(self, table: Table) -> Iterator[list[Row]]:
        yield from self._db.pages(f"{self._select(table)} order by {table.order}", size=table.page)

    def _select(self, table: Table) -> str:
        if table.name == "moves":  # of which there are many rows for each that SQLite has
            return SQL["moves"]
        return f"select {', '.join(self.columns(table))} from queuectl.{table.name}"


class PostgresLoad:
    """Within a transaction that holds change_ageing.sql: whoever adds jobs or settings waits for that."""

    def __init__(self, db: Connection, record: Callable[[Act], None]) -> None:
        self._db = db
        self.record = record

    def is_untouched(self) -> bool:
        return bool(self._db.value(SQL["is_untouched"]))

    def make_room(self) -> None:
        self._db.execute(SQL["forget_chain"])
        for name in (*SAMPLES, *AUDIT):
            self._db.execute(f"delete from queuectl.{name}")

    def clear(self) -> None:
        self._db.execute(SQL["forget_chain"])
        for name in ("workers", "done", "undecided", *(table.name for table in reversed(TABLES))):
            self._db.execute(f"delete from queuectl.{name}")

    def add(self, table: Table, columns: Sequence[str], rows: Iterable[Row]) -> None:
        made_up = {name: value for name, value in _OWN.get(table.name, {}).items() if value is not None}
        names, values = ", ".join([*columns, *made_up]), tuple(made_up.values())
        self._db.copy(f"copy queuectl.{table.name} ({names}) from stdin", (row + values for row in rows))

    def moved(self, moves: Sequence[Row]) -> None:
        self._db.executemany(SQL["moved"], moves)

    def counts(self) -> dict[str, int]:
        return dict(self._db.all(SQL["copied"]))

    def finish(self, *, last_seq: int) -> None:
        self._db.execute(SQL["note_undecided"])
        # The rank of each job came along; this is for those that are ranked from now on.
        self._db.execute(SQL["set_ageing"], ageing_values(read_ageing(self._db.value(SQL["ageing"]))))
        if last_seq:
            self._db.execute(SQL["continue_from"], {"last_seq": last_seq})
        # Who ran may wait again in the copy.
        line_up_all(self._db)
