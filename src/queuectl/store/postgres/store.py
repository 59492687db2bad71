"""The store in PostgreSQL: one queue for many machines. Also the removal of jobs, which the dialects do differently."""

from __future__ import annotations

from collections.abc import Sequence

from queuectl.jobs.audit import Act
from queuectl.jobs.states import State
from queuectl.store.audit import state_change
from queuectl.store.composed import ComposedStore
from queuectl.store.conflicts import retry_conflicts
from queuectl.store.counters import EVER
from queuectl.store.dependencies import Resolver
from queuectl.store.postgres.connection import LONG_SECONDS, SQL, Connection
from queuectl.store.postgres.dependencies import PostgresResolver
from queuectl.store.postgres.enqueue import PostgresEnqueuer
from queuectl.store.postgres.exchange import PostgresClaims
from queuectl.store.postgres.reads import PostgresReads
from queuectl.store.postgres.transactions import PostgresTransactions
from queuectl.store.postgres.transfer import PostgresTransfers
from queuectl.store.transactions import Query
from queuectl.store.types import Ids
from queuectl.store.unique import subjects


class _HasChildren(Exception):  # not an error: the reason to try again
    """A job that is to be removed has unresolved children."""


class PostgresMaintenance:
    def __init__(self, tx: PostgresTransactions, resolver: Resolver) -> None:
        self._tx = tx
        self._db = tx.db
        self._resolver = resolver

    @retry_conflicts
    def prune(self, ids: Sequence[str], *, before_ms: int) -> dict[str, str | None]:
        self._resolver.resolve_all()
        hold = Query(SQL["hold_ended"], {"ids": list(ids)})
        prune = Query(SQL["prune"], {"ids": list(ids), "before": before_ms})
        with self._db.transaction(hold, *_count_queries(ids, before_ms=before_ms), prune) as (*_, rows):
            gone = dict(rows)
            self._tx.record(Act("prune", list(gone)))
        return gone

    @retry_conflicts
    def trim(self, job_id: str, *, before_ms: int, rows: int) -> int:
        values = {"id": job_id, "before": before_ms, "rows": rows}
        trimmed = self._db.write([Query(SQL[name], values) for name in ("trim_runs", "trim_output")])
        return sum(result.rowcount for result in trimmed)

    def shrink(self) -> bool:
        """Nothing to do: autovacuum does it, see the settings of the tables."""
        return False

    @retry_conflicts
    def purge(self, ids: Ids) -> dict[str, tuple[State, str | None]]:
        while True:
            self._resolver.resolve_all()
            try:
                return self._purge(ids)
            except _HasChildren:
                continue

    def _purge(self, ids: Ids) -> dict[str, tuple[State, str | None]]:
        with self._tx.write():
            found = subjects(self._tx, ids)
            dead = [job for job in found if job.state is State.DEAD]
            if self._tx.value("is_awaited", {"seqs": [job.seq for job in dead]}):
                raise _HasChildren
            self._tx.execute("prune", {"ids": [job.id for job in dead], "before": EVER})
            self._tx.record(state_change("dlq purge", dead))
        return {job.id: (job.state, job.log) for job in found}

    @retry_conflicts
    def reset(self) -> int:
        first = _count_queries(None, before_ms=EVER)
        with self._db.transaction(*first, seconds=LONG_SECONDS, plan_freely=True):
            removed = int(self._tx.value("reset_jobs"))
            self._tx.record(Act("reset", ["jobs"], before={"jobs": removed}))
            return removed


def _count_queries(ids: Sequence[str] | None, *, before_ms: int) -> list[Query]:
    """Before these jobs are removed (None: all), in the same transaction: count their run times."""
    chosen = None if ids is None else list(ids)
    return [
        Query(SQL["note_removal"], {"before": before_ms}),
        Query(SQL["count_out"], {"ids": chosen, "before": before_ms}),
    ]


class PostgresStore(ComposedStore):
    def __init__(self, db: Connection) -> None:
        tx = PostgresTransactions(db)
        self.db = db
        resolver, reads = PostgresResolver(tx), PostgresReads(tx)
        enqueuer = PostgresEnqueuer(tx, resolver)
        self.compose(
            tx,
            enqueuer,
            resolver,
            reads,
            claims=PostgresClaims(tx, reads, resolver),
            maintenance=PostgresMaintenance(tx, resolver),
            transfers=lambda parts: PostgresTransfers(tx, parts, enqueuer),
        )
