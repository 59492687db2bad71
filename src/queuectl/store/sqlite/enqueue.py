"""Enqueue in SQLite. `queuectl enqueue` loads this and not the rest of the store, which takes three times as long as the insert."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

from queuectl import errors
from queuectl.jobs.priority import Ageing
from queuectl.jobs.spec import NewJob
from queuectl.store.enqueue import EnqueueSteps, InsertGroup, new_job_ids, tag_rows
from queuectl.store.sqlite.connection import SQL, SqliteTransactions
from queuectl.store.types import Enqueued, Request, Row

if TYPE_CHECKING:
    from queuectl.store.dependencies import NewLinks

ROWS_PER_STATEMENT: Final = 50


class SqliteEnqueuer(EnqueueSteps):
    _tx: SqliteTransactions

    def __init__(self, tx: SqliteTransactions) -> None:
        super().__init__(tx)
        self._db = tx.db

    def enqueue(self, jobs: Sequence[NewJob], *, on_complete: NewJob | None, idempotency: Request | None) -> Enqueued:
        made = iter(new_job_ids(sum(job.id is None for job in jobs)))
        ids = [next(made) if job.id is None else job.id for job in jobs]
        try:
            with self._db.journal_in_memory(), self._tx.write() as transitions:
                answer, has_replaced = self.add_requested(
                    jobs, ids, transitions, on_complete=on_complete, idempotency=idempotency
                )
        except sqlite3.IntegrityError as exc:
            for id_ in ids:
                if self._db.value("select 1 from jobs where id = ?", (id_,)):
                    raise errors.DuplicateId(id_) from exc
            raise errors.StoreFailed(self._db.path, str(exc)) from exc
        if has_replaced:
            from queuectl.store.sqlite.dependencies import SqliteResolver

            SqliteResolver(self._tx).try_to_resolve_all()  # a replaced job may have had children
        self._tx.notify_workers()
        return answer

    def take_seqs(self, given: Sequence[str], count: int) -> tuple[Ageing, Sequence[int]]:  # noqa: ARG002 # the schema checks IDs
        last_seq = self._tx.last_seq()
        return self._tx.ageing(), range(last_seq + 1, last_seq + 1 + count)

    def insert_rows(self, group: InsertGroup, rows: Iterator[Row]) -> None:
        # Starting and ending a statement costs a third of a row, most of it to store the last sequence number.
        if (count := len(group.jobs)) >= ROWS_PER_STATEMENT:
            head, _, values = SQL["enqueue"].rpartition("values")
            statement = f"{head}values {', '.join([values.strip()] * ROWS_PER_STATEMENT)}"
            whole = range(count // ROWS_PER_STATEMENT)
            chunks = (tuple(chain.from_iterable(islice(rows, ROWS_PER_STATEMENT))) for _ in whole)
            self._db.executemany(statement, chunks)
        self._db.executemany(SQL["enqueue"], rows)
        self._db.executemany(SQL["tag"], tag_rows(group))

    def insert_links(self, links: NewLinks, new: Mapping[str, int]) -> None:
        rows = ({"seq": seq, "is_blocked": blocked, "depends_on": text} for seq, blocked, text in links.depends_on(new))
        self._db.executemany(SQL["block"], rows)
        self._db.executemany(SQL["link"], links.edges(new))

    def find_request(self, values: Mapping[str, Any]) -> Row | None:
        return self._db.one(SQL["request"], values)
