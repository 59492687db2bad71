"""What the store knows about itself and about the line: see store/insight.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from queuectl import errors
from queuectl.store.insight import Health, Link, Place, bounds, count_late
from queuectl.store.postgres.base import PostgresBase
from queuectl.store.postgres.connection import LONG_SECONDS, SQL, Question
from queuectl.store.postgres.schema import LATEST

TABLES: Final = (
    "batches", "config", "done", "edges", "job_tags", "jobs", "meta", "moves", "output", "queues", "runs", "schedules", "starts",
    "ticks", "undecided", "workers",
)  # fmt: skip

_SNAPSHOT: Final = "begin isolation level repeatable read read only"


class PostgresInsight(PostgresBase):
    def ahead(self, job_id: str, *, queues: tuple[str, ...] | None, most: int) -> int:
        with self._db.transaction(begin=_SNAPSHOT):
            place, _ = self._place(job_id)
            values = {"now": self._clock.now_ms(), "limit": most}
            late = [Place(*row) for row in self._db.all(SQL["late"], values)]
            known = {one.queue for one in late} if queues is None else queues
            limits = bounds(place, known, in_one_order=queues is None)
            if queues is None:
                questions = [Question(SQL["ahead_of_all"], {**place._asdict(), "limit": most})]
            else:
                questions = [Question(SQL["ahead"], {**limit._asdict(), "limit": most}) for limit in limits]
            found = sum(int(rows[0][0]) for rows in self._db.ask(*questions))
        return min(most, found + count_late(late, limits))

    def parents(self, ids: Sequence[str], *, limit: int) -> list[Link]:
        (found,) = self._db.ask(Question(SQL["parents"], {"ids": list(ids), "limit": limit}))
        return [Link.of(row) for row in found]

    def children(self, ids: Sequence[str], *, limit: int) -> list[Link]:
        (found,) = self._db.ask(Question(SQL["children"], {"ids": list(ids), "limit": limit}))
        return [Link.of(row) for row in found]

    def is_called_off(self, job_id: str) -> bool:
        with self._db.transaction(begin=_SNAPSHOT):
            return self._place(job_id)[1]

    def examine(self) -> Health:
        server, tables = self._db.ask(Question(SQL["server"]), Question(SQL["tables"], {"names": list(TABLES)}))
        version, is_read_only, schema = server[0]
        problems = list(_table_problems(tables))
        if is_read_only:
            problems.append("the server only follows another one, or is read-only: nothing can be written")
        if not problems:
            with self._db.transaction(begin=_SNAPSHOT, seconds=LONG_SECONDS, plan_freely=True):
                strays = self._db.all(SQL["strays"])
            problems += [
                f"{count:,} rows of {table} belong to jobs that are not there" for table, count in strays if count
            ]
        return Health(f"PostgreSQL {version.split()[0]}", schema, LATEST, tuple(problems))

    def _place(self, job_id: str) -> tuple[Place, bool]:
        """Within a transaction."""
        row = self._db.one(SQL["place"], {"id": job_id})
        if row is None:
            raise errors.JobNotFound(job_id)
        return Place(*row[:3]), bool(row[3])


def _table_problems(tables: list[tuple[str, bool, bool]]) -> Iterator[str]:
    for name, is_there, may_use in tables:
        if not is_there:
            yield f"the table queuectl.{name} is missing"
        elif not may_use:
            yield f"this role may not read and write the table queuectl.{name}"
