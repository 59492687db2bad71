"""Enqueue in SQLite. `queuectl enqueue` loads this and not the rest of the store, which takes three times as long as the insert."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from queuectl import errors
from queuectl.jobs.priority import Ageing
from queuectl.jobs.spec import NewJob
from queuectl.store.enqueue import EnqueueSteps, InsertGroup, new_job_ids, tag_rows
from queuectl.store.sqlite.connection import SQL, SqliteTransactions
from queuectl.store.types import Enqueued, Request, Row

if TYPE_CHECKING:
    from queuectl.store.dependencies import NewLinks
    from queuectl.store.unique import UniquePlan

ROWS_PER_STATEMENT: Final = 50


class SqliteEnqueuer(EnqueueSteps):
    _tx: SqliteTransactions

    def __init__(self, tx: SqliteTransactions) -> None:
        super().__init__(tx)
        self._db = tx.db

    def enqueue(self, jobs: Sequence[NewJob], *, on_complete: NewJob | None, idempotency: Request | None) -> Enqueued:
        tx = self._tx
        made = iter(new_job_ids(sum(job.id is None for job in jobs)))
        ids: Sequence[str] = [next(made) if job.id is None else job.id for job in jobs]
        answer = Enqueued(ids)
        plan: UniquePlan | None = None
        links: NewLinks | None = None
        try:
            with self._db.journal_in_memory(), tx.write() as transitions:
                now = tx.clock.now_ms()
                if idempotency is not None and (earlier := self._earlier_answer(idempotency, now_ms=now)) is not None:
                    return earlier
                if any(job.unique_key is not None for job in jobs):
                    from queuectl.store.unique import UniquePlan, lock_holders  # here, since few jobs have a unique key

                    plan = UniquePlan(jobs, ids, lock_holders(tx, jobs), now_ms=now)
                    answer, ids = plan.answer, plan.ids
                if any(job.depends_on for job in jobs):
                    from queuectl.store.dependencies import Entering  # here, since most jobs have no dependencies

                    links = self.find_links(Entering(jobs, ids) if plan is None else plan.entering)
                ageing, seqs = self.take_seqs((), len(ids))
                self.insert_all(jobs, ids, seqs, plan, links, transitions, now_ms=now, ageing=ageing)
                if on_complete is not None and on_complete.batch is not None:
                    self.complete_with(on_complete, on_complete.batch, now_ms=now)
                if idempotency is not None:
                    self._store_answer(idempotency, answer, now_ms=now)
                self.record(jobs, ids)
        except sqlite3.IntegrityError as exc:
            taken = self._find_duplicate(ids)
            if taken is None:
                raise errors.StoreFailed(self._db.path, str(exc)) from exc
            raise errors.DuplicateId(taken) from exc
        if plan is not None and plan.replaced:
            from queuectl.store.sqlite.dependencies import SqliteResolver

            SqliteResolver(tx).try_to_resolve_all()  # a replaced job may have had children
        tx.notify_workers()
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

    def _earlier_answer(self, request: Request, *, now_ms: int) -> Enqueued | None:
        from queuectl.store.enqueue import IDEMPOTENCY_KEPT_MS, unpack_answer

        row = self._db.one(SQL["request"], {"key": request[0], "before": now_ms - IDEMPOTENCY_KEPT_MS})
        return None if row is None else unpack_answer(request, *row)

    def _store_answer(self, request: Request, answer: Enqueued, *, now_ms: int) -> None:
        from queuectl.store.enqueue import pack_answer

        key, digest = request
        values = {"key": key, "digest": digest, "answer": pack_answer(answer), "now": now_ms}
        self._db.execute(SQL["keep_request"], values)

    def _find_duplicate(self, ids: Sequence[str]) -> str | None:
        """The ID that is taken, or given twice; None if another constraint was violated."""
        seen: set[str] = set()
        for id_ in ids:
            if id_ in seen or self._db.value("select 1 from jobs where id = ?", (id_,)):
                return id_
            seen.add(id_)
        return None
