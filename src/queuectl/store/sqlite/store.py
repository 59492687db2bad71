"""The store in one SQLite file: it needs no server and serves one machine. Also the removal of jobs, which the dialects do differently."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from queuectl.clock import Clock
from queuectl.jobs.audit import Act
from queuectl.jobs.states import State
from queuectl.store.audit import state_change
from queuectl.store.composed import ComposedStore
from queuectl.store.counters import EVER, Sampling, bucket_rows
from queuectl.store.dependencies import Resolver
from queuectl.store.sqlite.claims import SqliteClaims
from queuectl.store.sqlite.connection import SQL, OnWait, SqliteTransactions, connect
from queuectl.store.sqlite.dependencies import SqliteResolver
from queuectl.store.sqlite.enqueue import SqliteEnqueuer
from queuectl.store.sqlite.reads import SqliteReads
from queuectl.store.sqlite.transfer import SqliteTransfers
from queuectl.store.transactions import OUTSIDE
from queuectl.store.types import Ids
from queuectl.store.unique import subjects

SPARE_PAGES: Final = 256  # free pages that are kept for new jobs
MAX_FREED_PAGES: Final = 200  # in one step
# Seconds of a transaction with the write lock, before the commit. On a busy machine, or a slow disk, it removes fewer rows;
# usually it takes a few milliseconds.
MAX_LOCK_SECONDS: Final = 0.015


class SqliteMaintenance:
    def __init__(self, tx: SqliteTransactions, reads: SqliteReads, resolver: Resolver) -> None:
        self._tx = tx
        self._db = tx.db
        self._reads = reads
        self._resolver = resolver

    def prune(self, ids: Sequence[str], *, before_ms: int) -> dict[str, str | None]:
        gone: dict[str, str | None] = {}
        self._resolver.resolve_all()
        with self._db.synced_after_commit(), self._tx.write() as transitions:
            since, uncounted = self._counted_until(before_ms), []
            until = self._tx.clock.monotonic() + MAX_LOCK_SECONDS
            for job_id in ids:
                if gone and self._tx.clock.monotonic() > until:
                    break
                if row := self._db.one(SQL["prune"], {"id": job_id, "before": before_ms}):
                    queue, state, gone[job_id], finished_at, ran_ms, waited_ms = row
                    transitions.add(queue, state, OUTSIDE)
                    if since is not None and state == State.COMPLETED and finished_at > since:
                        uncounted.append((queue, ran_ms, waited_ms))
            self._db.executemany(SQL["add_to_bucket"], bucket_rows(uncounted))
            self._tx.record(Act("prune", list(gone)))
        return gone

    def trim(self, job_id: str, *, before_ms: int, rows: int) -> int:
        values = {"id": job_id, "before": before_ms, "rows": rows}
        with self._db.synced_after_commit(), self._db.transaction():
            return sum(self._db.execute(SQL[name], values) for name in ("trim_runs", "trim_output"))

    def purge(self, ids: Ids) -> dict[str, tuple[State, str | None]]:
        self._resolver.resolve_all()
        with self._tx.write() as transitions:
            found = subjects(self._tx, ids)
            dead = [job for job in found if job.state is State.DEAD]
            for job in dead:
                transitions.add(job.queue, job.state, OUTSIDE)
            self._db.executemany(SQL["purge"], [(job.seq,) for job in dead])
            self._tx.record(state_change("dlq purge", dead))
        return {job.id: (job.state, job.log) for job in found}

    def reset(self) -> int:
        with self._tx.write() as transitions:
            for queue, states in self._reads.tally().items():
                for state, jobs in states.items():
                    if jobs:
                        transitions.add(queue, state, OUTSIDE, jobs=jobs)
            since = self._counted_until(EVER)
            if since is not None:
                measured = self._db.all(SQL["measured"], {"since": since, "until": EVER})
                self._db.executemany(SQL["add_to_bucket"], measured)
            self._db.execute("delete from batches")
            self._db.execute("delete from webhook_outbox")
            removed = self._db.execute(SQL["reset_jobs"])
            self._tx.record(Act("reset", ["jobs"], before={"jobs": removed}))
            return removed

    def shrink(self) -> bool:
        """As in the protocol. The file gets smaller when the write-ahead log is moved into it."""
        spare = int(self._db.value("pragma freelist_count")) - SPARE_PAGES
        if spare > 0:
            freed = 0
            with self._db.synced_after_commit(), self._db.transaction():
                until = self._tx.clock.monotonic() + MAX_LOCK_SECONDS
                # One by one: the statement frees one page per step, and Python steps a statement without columns once.
                while freed < min(spare, MAX_FREED_PAGES) and self._tx.clock.monotonic() <= until:
                    self._db.execute("pragma incremental_vacuum(1)")
                    freed += 1
            if spare > freed:
                return True
            self._db.checkpoint()
        return False

    def _counted_until(self, before_ms: int) -> int | None:
        """Within a transaction that is about to remove jobs that ended by then: `buckets` has the times of runs up to this end. None:
        of all these jobs."""
        if not self._db.execute(SQL["note_removal"], {"before": before_ms}):
            return None
        return Sampling.of(self._db.all(SQL["sampling"])).until_ms


class SqliteStore(ComposedStore):
    def __init__(self, path: str, *, clock: Clock, patience: float = 30.0, on_wait: OnWait | None = None) -> None:
        tx = SqliteTransactions(connect(path, clock=clock, patience=patience, on_wait=on_wait), clock)
        self.db = tx.db
        resolver, reads = SqliteResolver(tx), SqliteReads(tx)
        self.compose(
            tx,
            SqliteEnqueuer(tx),
            resolver,
            reads,
            claims=SqliteClaims(tx, reads, resolver),
            maintenance=SqliteMaintenance(tx, reads, resolver),
            transfers=partial(SqliteTransfers, tx),
        )
