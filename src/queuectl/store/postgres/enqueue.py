"""Enqueue in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from queuectl import errors
from queuectl.jobs.priority import Ageing
from queuectl.jobs.spec import NewJob
from queuectl.store.conflicts import retry_conflicts
from queuectl.store.dependencies import NewLinks
from queuectl.store.enqueue import (
    EnqueueSteps,
    InsertGroup,
    new_job_ids,
    tag_rows,
)
from queuectl.store.postgres.connection import LONG_SECONDS, SQL
from queuectl.store.postgres.dependencies import PostgresResolver
from queuectl.store.postgres.errors import ConnectionLost, UniqueViolation
from queuectl.store.postgres.transactions import PostgresTransactions
from queuectl.store.transactions import Query, Transitions, read_ageing
from queuectl.store.types import Enqueued, Request, Row

MAX_DEFERRED_ROWS: Final = 20  # that are sent one by one with the commit: a stream takes two round trips of its own
LONG_ENQUEUE_JOBS: Final = 10_000  # jobs in one call that may take longer than a command


class PostgresEnqueuer(EnqueueSteps):
    _tx: PostgresTransactions

    def __init__(self, tx: PostgresTransactions, resolver: PostgresResolver) -> None:
        super().__init__(tx)
        self._db = tx.db
        self._resolver = resolver

    @retry_conflicts
    def enqueue(self, jobs: Sequence[NewJob], *, on_complete: NewJob | None, idempotency: Request | None) -> Enqueued:
        """See EnqueueStore. If the connection is lost before the answer, StoreUnreachable is `in_doubt`: either all jobs are
        enqueued or none. Its hint tells how to find out; callers that choose the IDs get DuplicateId when they try again."""
        made = iter(new_job_ids(sum(job.id is None for job in jobs)))
        ids = [next(made) if job.id is None else job.id for job in jobs]
        if not jobs:
            return Enqueued()
        seconds = None if len(jobs) < LONG_ENQUEUE_JOBS else LONG_SECONDS
        given = [job.id for job in jobs if job.id is not None]
        # If nothing else can refuse these jobs, sequence numbers are taken at once: that saves a round trip.
        is_plain = (
            idempotency is None
            and not any(job.unique_key is not None or job.depends_on for job in jobs)
            and len(set(ids)) == len(ids)
        )
        first = [Query(SQL["hold_ageing"]), *(_seq_queries(given, len(ids)) if is_plain else ())]
        transitions = Transitions()
        try:
            with self._db.transaction(*first, after=self._tx.notification(), seconds=seconds) as (_, *results):
                taken = self._read_seqs(given, results) if is_plain else None
                answer, has_replaced = self.add_requested(
                    jobs, ids, transitions, on_complete=on_complete, idempotency=idempotency, taken=taken
                )
                self._tx.count(transitions)
        except UniqueViolation as exc:
            raise_duplicate(self._tx, ids, exc)
            raise
        except ConnectionLost as exc:
            raise _in_doubt(exc, ids) from exc
        if has_replaced:
            self._resolver.try_to_resolve_all()  # a replaced job may have had children
        return answer

    def take_seqs(self, given: Sequence[str], count: int) -> tuple[Ageing, Sequence[int]]:
        return self._read_seqs(given, self._db.query(*_seq_queries(given, count)))

    def _read_seqs(self, given: Sequence[str], results: Sequence[list[Row]]) -> tuple[Ageing, Sequence[int]]:
        """`results`: of `_seq_queries`."""
        ageing, seqs = results
        if (numbers := seqs[0][0]) is None:
            raise errors.DuplicateId(self._db.value(SQL["duplicate"], {"ids": given}))
        return read_ageing(ageing[0][0] if ageing else None), numbers

    def insert_rows(self, group: InsertGroup, rows: Iterator[Row]) -> None:
        self._insert(rows, len(group.jobs), one=SQL["enqueue"], many=SQL["enqueue_many"])
        if tags := sum(len(job.tags) for job in group.jobs):
            self._insert(tag_rows(group), tags, one=SQL["tag"], many=SQL["tag_many"])

    def _insert(self, rows: Iterable[Row], count: int, *, one: str, many: str) -> None:
        """`one`: the statement for a single row; `many`: for a stream of them."""
        if count > MAX_DEFERRED_ROWS:
            self._db.copy(many, rows)
            return
        for row in rows:
            self._db.defer(one, row)

    def insert_links(self, links: NewLinks, new: Mapping[str, int]) -> None:
        seqs, blocked, texts = map(list, zip(*links.depends_on(new), strict=True))
        self._db.execute(SQL["block"], {"seqs": seqs, "blocked": blocked, "depends_on": texts})
        self._db.copy(SQL["link"], links.edges(new))
        # A parent that ends at this moment does not see its new children.
        self._db.copy(SQL["leave_undecided"], ((parent.seq,) for parent in links.parents.values()))

    def find_request(self, values: Mapping[str, Any]) -> Row | None:
        if self._db.all(SQL["take_request"], values):
            return None
        # In a statement of its own, which sees what was committed while the first one waited.
        return self._db.one(SQL["request"], values)


def raise_duplicate(tx: PostgresTransactions, ids: Sequence[str], exc: UniqueViolation) -> None:
    """Raise DuplicateId if another transaction has inserted a job with one of these IDs."""
    found = tx.all("duplicate", {"ids": list(ids)})
    if found:
        raise errors.DuplicateId(found[0][0]) from exc


def _seq_queries(given: Sequence[str], jobs: int) -> tuple[Query, Query]:
    """The ranking rule, and sequence numbers for new jobs."""
    return Query(SQL["ageing"]), Query(SQL["next_seqs"], {"ids": given, "jobs": jobs})


def _in_doubt(exc: ConnectionLost, ids: Sequence[str]) -> errors.StoreUnreachable:
    what = "whether the job is queued" if len(ids) == 1 else f"whether the {len(ids):,} jobs are queued, all or none,"
    hint = f"{what} is not known: queuectl show {ids[0]} finds it once the server is back; only if not, enqueue again"
    return errors.StoreUnreachable(exc.path, exc.problem, hint=hint, in_doubt=True)
