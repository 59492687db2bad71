"""Removing what has ended from a SQLite file, and giving the room back. See store/pruning.py."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Final

from queuectl.job.audit import Act
from queuectl.job.lifecycle import State
from queuectl.store.counting import OUTSIDE
from queuectl.store.pruning import Ended
from queuectl.store.sampling import bucket_rows
from queuectl.store.sqlite.base import SQL
from queuectl.store.sqlite.connection import MEMORY
from queuectl.store.sqlite.edges import SqliteEdges
from queuectl.store.sqlite.sampling import SqliteSamples

PAGE: Final = 500
SPARE_PAGES: Final = 256  # room that is kept, for jobs to come: given back, it would have to be asked for again
PAGES_AT_ONCE: Final = 200
NO_LIMIT: Final = -1
# Seconds with the write lock, for what is removed, before the commit: on a machine that is busy, or where pages have to be read
# from a slow disk first, a transaction has fewer rows. Without either it takes a few milliseconds.
LONGEST: Final = 0.015


class SqlitePruning(SqliteSamples, SqliteEdges):
    def ended(
        self, state: State, *, before_ms: int, limit: int | None = None, host: str | None = None
    ) -> Iterator[Ended]:
        sql = SQL["ended_completed" if state is State.COMPLETED else "ended"]
        values = {"before": before_ms, "limit": NO_LIMIT if limit is None else limit, "host": host}
        if state is not State.COMPLETED:
            values["state"] = state.value
        if limit is not None or self._db.path == MEMORY:
            yield from map(Ended._make, self._db.all(sql, values))
            return
        with closing(self._db.beside()) as db:
            for page in db.pages(sql, values, size=PAGE):
                yield from map(Ended._make, page)

    def ended_of(self, ids: Sequence[str], state: State, *, before_ms: int, host: str | None = None) -> list[Ended]:
        values = {"ids": json.dumps(list(ids)), "state": state.value, "before": before_ms, "host": host}
        return [Ended._make(row) for row in self._db.all(SQL["ended_of"], values)]

    def count_ended(self, state: State, *, before_ms: int) -> int:
        return int(self._db.value(SQL["count_ended"], {"state": state.value, "before": before_ms}))

    def prune(self, ids: Sequence[str], *, before_ms: int) -> dict[str, str | None]:
        gone: dict[str, str | None] = {}
        self._settle_children()
        with self._db.synced_apart(), self._moving() as moves:
            since, uncounted = self._counted_until(before_ms), []
            until = self._clock.monotonic() + LONGEST
            for job_id in ids:
                if gone and self._clock.monotonic() > until:
                    break
                if row := self._db.one(SQL["prune"], {"id": job_id, "before": before_ms}):
                    queue, state, gone[job_id], finished_at, ran_ms, waited_ms = row
                    moves.add(queue, state, OUTSIDE)
                    if since is not None and state == State.COMPLETED and finished_at > since:
                        uncounted.append((queue, ran_ms, waited_ms))
            self._db.executemany(SQL["add_to_bucket"], bucket_rows(uncounted))
            self._record(Act("prune", list(gone)))
        return gone

    def trim(self, job_id: str, *, before_ms: int, rows: int) -> int:
        values = {"id": job_id, "before": before_ms, "rows": rows}
        with self._db.synced_apart(), self._db.transaction():
            return sum(self._db.execute(SQL[name], values).rowcount for name in ("trim_runs", "trim_output"))

    def shrink(self) -> bool:
        """As in the protocol. What is given back leaves the file when the write-ahead log is taken over into it."""
        spare = int(self._db.value("pragma freelist_count")) - SPARE_PAGES
        if spare > 0:
            freed = 0
            with self._db.synced_apart(), self._db.transaction():
                until = self._clock.monotonic() + LONGEST
                # One by one: the statement frees a page each time it is stepped, and Python steps one without columns once.
                while freed < min(spare, PAGES_AT_ONCE) and self._clock.monotonic() <= until:
                    self._db.execute("pragma incremental_vacuum(1)")
                    freed += 1
            if spare > freed:
                return True
            self._db.fold_log()
        return False
