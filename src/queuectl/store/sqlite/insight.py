"""What the store knows about itself and about the line: see store/insight.py."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Final

from queuectl import errors
from queuectl.store.insight import ERROR_SHOWN, MOST_DEATHS, Deaths, Health, Link, Place, bounds, count_late
from queuectl.store.migrate import LATEST
from queuectl.store.sqlite.base import SQL, SqliteBase

MOST_PROBLEMS: Final = 10


class SqliteInsight(SqliteBase):
    def ahead(self, job_id: str, *, queues: tuple[str, ...] | None, most: int) -> int:
        with self._db.snapshot():
            place, _ = self._place(job_id)
            late = [Place(*row) for row in self._db.all(SQL["late"], {"now": self._clock.now_ms(), "limit": most})]
            ready = [queue for (queue,) in self._db.all(SQL["ready_queues"])]
            known = {*ready, *(one.queue for one in late)} if queues is None else queues
            limits = bounds(place, known, in_one_order=queues is None)
            found = count_late(late, limits)
            for limit in limits:
                if found >= most:
                    return most
                found += int(self._db.value(SQL["ahead"], {**limit._asdict(), "limit": most}))
            return min(found, most)

    def parents(self, ids: Sequence[str], *, limit: int) -> list[Link]:
        return [Link.of(row) for row in self._db.all(SQL["parents"], {"ids": json.dumps(ids), "limit": limit})]

    def children(self, ids: Sequence[str], *, limit: int) -> list[Link]:
        return [Link.of(row) for row in self._db.all(SQL["children"], {"ids": json.dumps(ids), "limit": limit})]

    def dead_by_error(self, *, limit: int, most: int = MOST_DEATHS) -> list[Deaths]:
        found = self._db.all(SQL["dead_by_error"], {"limit": limit, "most": most, "shown": ERROR_SHOWN})
        return [Deaths(*row) for row in found]

    def is_called_off(self, job_id: str) -> bool:
        return self._place(job_id)[1]

    def examine(self) -> Health:
        with self._db.snapshot():
            schema = int(self._db.value("pragma user_version"))
            # Not quick_check, which does not compare the indexes with what they stand for: a claim trusts them.
            damage = [str(row[0]) for row in self._db.all(f"pragma integrity_check({MOST_PROBLEMS})")]
            strays = self._db.all(SQL["strays"])
        problems = [] if damage == ["ok"] else [line for words in damage for line in words.splitlines()]
        problems += [f"{count:,} rows of {table} belong to jobs that are not there" for table, count in strays]
        return Health(f"SQLite {sqlite3.sqlite_version}", schema, LATEST, tuple(problems))

    def _place(self, job_id: str) -> tuple[Place, bool]:
        row = self._db.one(SQL["place"], {"id": job_id})
        if row is None:
            raise errors.JobNotFound(job_id)
        return Place(*row[:3]), bool(row[3])
