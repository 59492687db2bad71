"""Where jobs come in. Apart from the rest of the store, which takes three times as long to load as this to run."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from queuectl import errors
from queuectl.job.newjob import NewJob
from queuectl.job.rank import Ageing
from queuectl.store.auditing import added
from queuectl.store.counting import OUTSIDE, Moves
from queuectl.store.entry import (
    NOBODY,
    Enqueued,
    Row,
    Wave,
    arrivals,
    batches_of,
    beyond,
    lined_up,
    new_rows,
    replacements,
    shares_keys,
    tag_rows,
)
from queuectl.store.ids import new_job_ids
from queuectl.store.sqlite.base import SQL, SqliteBase

if TYPE_CHECKING:
    from queuectl.store.linking import Entering, Links
    from queuectl.store.requests import Request


ROWS_AT_ONCE: Final = 50  # by one statement


class SqliteInbox(SqliteBase):
    def enqueue(
        self, jobs: Sequence[NewJob], *, on_complete: NewJob | None = None, idempotency: Request | None = None
    ) -> Enqueued:
        made = iter(new_job_ids(sum(job.id is None for job in jobs)))
        ids: Sequence[str] = [next(made) if job.id is None else job.id for job in jobs]
        answer = Enqueued(ids)
        try:
            with self._db.undone_from_memory(), self._moving() as moves:
                now, ageing, last_seq = self._clock.now_ms(), self._ageing(), self._last_seq()
                if idempotency is not None and (earlier := self._answer_to(idempotency, now_ms=now)) is not None:
                    return earlier
                plan, links = None, None
                if any(job.unique_key is not None for job in jobs):
                    from queuectl.store.sqlite import unique  # here, since few jobs have a key

                    plan = unique.plan(self._db, jobs, ids, now_ms=now)
                    answer, ids = plan.answer, plan.ids
                if any(job.depends_on for job in jobs):
                    from queuectl.store.linking import Entering  # here, since most jobs wait for nobody

                    links = self._links(Entering(jobs, ids) if plan is None else plan.entering)
                seqs = range(last_seq + 1, last_seq + 1 + len(ids))
                blocked = () if links is None else links.blocked()
                if plan is None:
                    self._insert(Wave(jobs, ids, seqs), moves, now_ms=now, ageing=ageing, blocked=blocked)
                else:
                    from queuectl.store.sqlite import unique

                    for wave in plan.waves(seqs):
                        unique.replace(self._db, wave.replaced, moves, now_ms=now, ageing=ageing)
                        self._insert(wave, moves, now_ms=now, ageing=ageing, blocked=blocked)
                if links is not None:
                    self._block(links, dict(zip(ids, seqs, strict=True)))
                if on_complete is not None and on_complete.batch is not None:
                    self._complete_with(on_complete, on_complete.batch, now_ms=now)
                if idempotency is not None:
                    self._keep_answer(idempotency, answer, now_ms=now)
                if self.actor is not None:
                    self._record(added(jobs, ids))
        except sqlite3.IntegrityError as exc:
            taken = self._duplicate(ids)
            if taken is None:
                raise errors.StoreFailed(self._db.path, str(exc)) from exc
            raise errors.DuplicateId(taken) from exc
        if plan is not None and plan.replaced:
            from queuectl.store.sqlite.edges import SqliteEdges

            SqliteEdges(self._db, self._clock).try_to_settle_children()  # some may have waited for one of them
        self._ring()
        return answer

    def _insert(self, wave: Wave, moves: Moves, *, now_ms: int, ageing: Ageing, blocked: Collection[str] = ()) -> None:
        """`blocked`: the ids of those that `_block` will be told of."""
        jobs, ids = wave.jobs, wave.ids
        due = lined_up(jobs, ids, blocked)
        aside = beyond(due, dict(self._db.all(SQL["per_key"]))) if shares_keys(due) else frozenset()
        self._insert_rows(new_rows(wave, now_ms=now_ms, ageing=ageing, aside=aside), len(jobs))
        if aside:
            self._admit(sorted({(jobs[at].queue, str(jobs[at].key)) for at in aside}))
        self._db.executemany(SQL["tag"], tag_rows(wave))
        for queue, state, count in arrivals(jobs, ids, blocked):
            moves.add(queue, OUTSIDE, state, jobs=count)
        for batch, count in batches_of(jobs):
            self._join(batch, count, now_ms=now_ms)

    def _insert_rows(self, rows: Iterator[Row], count: int) -> None:
        # To begin and end a statement costs as much as a third of a row, most of it to note the last number given out.
        if count >= ROWS_AT_ONCE:
            head, _, values = SQL["enqueue"].rpartition("values")
            statement = f"{head}values {', '.join([values.strip()] * ROWS_AT_ONCE)}"
            whole = range(count // ROWS_AT_ONCE)
            self._db.executemany(statement, (tuple(chain.from_iterable(islice(rows, ROWS_AT_ONCE))) for _ in whole))
        self._db.executemany(SQL["enqueue"], rows)

    def _join(self, batch: str, jobs: int, *, now_ms: int) -> None:
        if self._db.value(SQL["join_batch"], {"name": batch, "jobs": jobs, "now": now_ms}) is not None:
            from queuectl.errors import BatchComplete

            raise BatchComplete(batch)

    def _complete_with(self, job: NewJob, batch: str, *, now_ms: int) -> None:
        from queuectl.errors import BatchDiffers
        from queuectl.store.batches import pack_job

        self._join(batch, 0, now_ms=now_ms)
        if not self._db.execute(SQL["set_on_complete"], {"name": batch, "job": pack_job(job)}).rowcount:
            raise BatchDiffers(batch)

    def _add(
        self, jobs: Sequence[NewJob], ids: Sequence[str], moves: Moves, *, replaced: Mapping[str, str] = NOBODY
    ) -> None:
        """Jobs whose keys are free, within a transaction, or will be: `replaced` has to make way, by the id of who comes."""
        now, ageing, last_seq = self._clock.now_ms(), self._ageing(), self._last_seq()
        seqs = range(last_seq + 1, last_seq + 1 + len(jobs))
        gone = replacements(ids, seqs, replaced)
        if gone:
            from queuectl.store.sqlite import unique

            unique.replace(self._db, gone, moves, now_ms=now, ageing=ageing)
        self._insert(Wave(jobs, ids, seqs), moves, now_ms=now, ageing=ageing)

    def _answer_to(self, request: Request, *, now_ms: int) -> Enqueued | None:
        """Within a transaction: what was answered to the same request, if it came before."""
        from queuectl.store.requests import KEPT_MS, answer_to  # here, since few requests have a key

        row = self._db.one(SQL["request"], {"key": request[0], "before": now_ms - KEPT_MS})
        return None if row is None else answer_to(request, *row)

    def _keep_answer(self, request: Request, answer: Enqueued, *, now_ms: int) -> None:
        from queuectl.store.requests import pack

        key, digest = request
        values = {"key": key, "digest": digest, "answer": pack(answer), "now": now_ms}
        self._db.execute(SQL["keep_request"], values)

    def _links(self, batch: Entering) -> Links:
        """Within a transaction. Raises ParentNotFound, ParentEnded or InvalidInput."""
        import json

        from queuectl.job.lifecycle import State
        from queuectl.store.linking import Parent, link

        found = self._db.all(SQL["new_parents"], {"ids": json.dumps(batch.outside())})
        return link(batch, {id_: Parent(seq, State(state)) for id_, seq, state in found})

    def _block(self, links: Links, new: Mapping[str, int]) -> None:
        """Within a transaction, when all of them are in. `new`: their sequence numbers."""
        said = ({"seq": seq, "is_blocked": blocked, "said": text} for seq, blocked, text in links.said(new))
        self._db.executemany(SQL["block"], said)
        self._db.executemany(SQL["link"], links.edges(new))

    def _duplicate(self, ids: Sequence[str]) -> str | None:
        """Which of these ids is taken, or given twice; None if the schema had another reason to refuse."""
        seen: set[str] = set()
        for id_ in ids:
            if id_ in seen or self._db.value("select 1 from jobs where id = ?", (id_,)):
                return id_
            seen.add(id_)
        return None
