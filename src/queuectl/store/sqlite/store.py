"""The store in one SQLite file: it needs no server and serves one machine. Here are the queries and the removal of jobs that differ
from PostgreSQL."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, Final

from queuectl import errors
from queuectl.clock import Clock
from queuectl.jobs.audit import Act
from queuectl.jobs.model import Job
from queuectl.jobs.states import State
from queuectl.store import rows
from queuectl.store.audit import state_change
from queuectl.store.counters import BUCKET_COLUMNS, EVER, Sampling, bucket_rows
from queuectl.store.reads import PAGE_SIZE, Position, count_unpromoted, positions_before
from queuectl.store.sqlite.claims import SqliteClaims
from queuectl.store.sqlite.connection import MEMORY, SQL, OnWait, SqliteTransactions, connect
from queuectl.store.sqlite.dependencies import SqliteResolver
from queuectl.store.sqlite.enqueue import SqliteEnqueuer
from queuectl.store.sqlite.transfer import SqliteTransfers
from queuectl.store.statements import LATEST
from queuectl.store.store import Store
from queuectl.store.transactions import OUTSIDE, Transactions
from queuectl.store.types import Filter, Health, Ids, Row, Sort
from queuectl.store.unique import subjects
from queuectl.store.webhook_outbox import DRAIN_ATTEMPTS
from queuectl.text import WEBHOOK_QUEUE

MAX_PROBLEMS: Final = 10  # that an integrity check reports
_ARGUMENTS: Final = "select group_concat(value, ' ') from (select value from json_each(argv) order by key)"
# The indexes of jobs in the order of their ends, by state.
_BY_FINGERPRINT: Final = {Sort.CREATED: "jobs_fingerprint", Sort.FINISHED: "jobs_failures"}  # of dead jobs of one kind
_BY_END: Final = {State.COMPLETED: "jobs_completed", State.DEAD: "jobs_ended", State.CANCELLED: "jobs_ended"}
SPARE_PAGES: Final = 256  # free pages that are kept for new jobs
MAX_FREED_PAGES: Final = 200  # in one step
# Seconds of a transaction with the write lock, before the commit. On a busy machine, or a slow disk, it removes fewer rows;
# usually it takes a few milliseconds.
MAX_LOCK_SECONDS: Final = 0.015


class SqliteStore(Store):
    tx: SqliteTransactions
    is_shared = False  # the lock of a SQLite file works on one machine
    jobs_table = "jobs"
    tags_table = "job_tags"
    command_text = f"coalesce(command, ({_ARGUMENTS}))"
    mark = "?"
    no_limit = -1
    job_columns = f"""{rows.JOB_COLUMNS},
        case when jobs.state = 'blocked' then (
            select json_group_array(json_array(id, state))
              from (
                select parent.id, parent.state
                  from edges
                  join jobs as parent on parent.seq = edges.parent
                 where edges.child = jobs.seq
                   and edges.state = 'waiting'
                 limit {rows.MAX_PARENTS_SHOWN}
              )
        ) end"""

    def __init__(self, path: str, *, clock: Clock, patience: float = 30.0, on_wait: OnWait | None = None) -> None:
        tx = SqliteTransactions(connect(path, clock=clock, patience=patience, on_wait=on_wait), clock)
        resolver = SqliteResolver(tx)
        super().__init__(tx, SqliteEnqueuer(tx), resolver)
        self.db = tx.db
        self.claims = SqliteClaims(tx, self, resolver)
        self.transfers = SqliteTransfers(self)
        self.reads_at_once = self.db.path == MEMORY
        self._seen_version = -1

    @property
    def shown(self) -> str:
        return self.db.path

    def read_jobs(
        self,
        text: str,
        values: Sequence[Any],
        *,
        plan_freely: bool = False,  # noqa: ARG002 # for PostgreSQL
    ) -> tuple[list[Row], rows.Present]:
        with self.db.snapshot():
            return self.db.all(text, values), self.context(self.tx)

    def long_list(self, where: Filter, chosen: str, values: list[Any]) -> Iterator[Job]:
        # One statement selects and sorts the jobs, which are then read page by page: a caller that pauses must not hold a read
        # transaction, or the write-ahead log grows. This keeps 8 bytes per job in memory.
        with self.db.snapshot():
            seqs = self.db.integers(f"select seq {chosen}", values)
        for start in range(0, len(seqs), PAGE_SIZE):
            yield from self._page(where, seqs[start : start + PAGE_SIZE].tolist())

    def index_hint(self, where: Filter, sort: Sort) -> str:
        """The index that has the jobs in this order, where SQLite would choose another one and sort."""
        if where.ids or where.tags or where.prefixes:
            return ""
        if len(where.fingerprints) == 1 and where.states == {State.DEAD}:
            name = _BY_FINGERPRINT.get(sort)
            return "" if name is None else f" indexed by {name}"
        if sort is Sort.FINISHED and len(where.states) == 1:
            name = _BY_END.get(next(iter(where.states)))
            return "" if name is None else f" indexed by {name}"
        return ""

    def _page(self, where: Filter, seqs: Sequence[int]) -> Iterator[Job]:
        """The jobs with these sequence numbers, in this order, without those that were removed or no longer match."""
        clause, values = self.where(where)
        # The cross join makes SQLite begin with the page: with an index on the state it would read all jobs for each page.
        page = "(select value as wanted from json_each(?)) cross join jobs on jobs.seq = wanted"
        text = f"select {self.job_columns} from {page}{clause}"
        found, context = self.read_jobs(text, [json.dumps(seqs), *values])
        by_seq = {row[0]: row for row in found}
        for seq in seqs:
            if (row := by_seq.get(seq)) is not None:
                yield rows.job(row, context)

    def is_drained(self, queues: tuple[str, ...] | None) -> bool:
        with self.db.snapshot():
            if self.tx.all("batch_due") or self.tx.value("is_undecided"):
                return False  # a completion job or children are about to become due
            if (queues is None or WEBHOOK_QUEUE in queues) and self.tx.value("has_deliveries"):
                return False  # deliveries are about to be enqueued
            tally = self.tally()
            paused = {queue for queue, rules in self.queues.rules().items() if rules.paused}
            for queue in tally if queues is None else queues:
                if queue in paused:
                    continue
                states = tally.get(queue, {})
                if states.get(State.PROCESSING):
                    return False
                retrying = {"queue": queue, "patience": DRAIN_ATTEMPTS}
                if states.get(State.FAILED) and self.tx.value("is_retrying", retrying):
                    return False
                if self.tx.value("is_ready", {"queue": queue}):
                    return False
                if self.tx.value("is_due", {"queue": queue, "now": self.now_ms()}):
                    return False
        return True

    def changed(self) -> bool:
        self.db.check_in_place()
        version = int(self.db.value("pragma data_version"))
        if version == self._seen_version:
            return False
        if (schema := int(self.db.value("pragma user_version"))) > LATEST:
            raise errors.StoreTooNew(self.db.path, schema, LATEST)
        self._seen_version = version
        return True

    def backup(self, path: str) -> None:
        self.db.backup(path)

    def ahead(self, job_id: str, *, queues: tuple[str, ...] | None, most: int) -> int:
        with self.db.snapshot():
            position, _ = self.position(job_id)
            late = [Position(*row) for row in self.tx.all("late", {"now": self.now_ms(), "limit": most})]
            ready = [queue for (queue,) in self.tx.all("ready_queues")]
            known = {*ready, *(one.queue for one in late)} if queues is None else queues
            limits = positions_before(position, known, in_one_order=queues is None)
            found = count_unpromoted(late, limits)
            for limit in limits:
                if found >= most:
                    return most
                found += int(self.tx.value("ahead", {**limit._asdict(), "limit": most}))
            return min(found, most)

    def examine(self) -> Health:
        with self.db.snapshot():
            schema = int(self.db.value("pragma user_version"))
            # Not quick_check, which does not compare indexes with their tables: claims rely on indexes.
            damage = [str(row[0]) for row in self.db.all(f"pragma integrity_check({MAX_PROBLEMS})")]
            strays = self.tx.all("strays")
        problems = [] if damage == ["ok"] else [line for text in damage for line in text.splitlines()]
        problems += [f"{count:,} rows of {table} belong to jobs that are not there" for table, count in strays]
        return Health(f"SQLite {sqlite3.sqlite_version}", schema, LATEST, tuple(problems))

    def context(self, tx: Transactions) -> rows.Present:  # noqa: ARG002 # the same on each connection
        # A stopping worker claims no more jobs.
        served = [worker.queues for worker in self.workers() if worker.state == "running"]
        brakes = self.queues.loads()
        return rows.Present(
            now_ms=self.now_ms(),
            last_seq=self.tx.last_seq(),
            ageing=self.tx.ageing(),
            served=rows.served_queues(served),
            brakes=brakes,
            of_key=self.queues.running_keys(),
        )

    def is_any(self, column: str, values: Sequence[str]) -> tuple[str, list[Any]]:
        if column != "state":
            return f"{column} in ({', '.join('?' * len(values))})", list(values)
        # As in the conditions of the two indexes on states: SQLite uses a partial index only if the query repeats its condition,
        # with literals.
        settled = [state for state in values if state != State.PROCESSING]
        among = f"= '{settled[0]}'" if len(settled) == 1 else f"in ({', '.join(map(repr, settled))})"
        either = [f"(state {among} and state <> 'processing')"] if settled else []
        if len(settled) < len(values):
            either.append("seq in (select seq from jobs indexed by jobs_running where state = 'processing')")
        return f"({' or '.join(either)})", []

    def contains(self, text: str) -> str:
        return f"{text} like ? escape '\\'"

    # ── removal ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def prune(self, ids: Sequence[str], *, before_ms: int) -> dict[str, str | None]:
        gone: dict[str, str | None] = {}
        self.dependencies.resolve_all()
        with self.db.synced_after_commit(), self.tx.write() as transitions:
            since, uncounted = self._counted_until(before_ms), []
            until = self.tx.clock.monotonic() + MAX_LOCK_SECONDS
            for job_id in ids:
                if gone and self.tx.clock.monotonic() > until:
                    break
                if row := self.db.one(SQL["prune"], {"id": job_id, "before": before_ms}):
                    queue, state, gone[job_id], finished_at, ran_ms, waited_ms = row
                    transitions.add(queue, state, OUTSIDE)
                    if since is not None and state == State.COMPLETED and finished_at > since:
                        uncounted.append((queue, ran_ms, waited_ms))
            self.db.executemany(SQL["add_to_bucket"], bucket_rows(uncounted))
            self.tx.record(Act("prune", list(gone)))
        return gone

    def trim(self, job_id: str, *, before_ms: int, rows: int) -> int:
        values = {"id": job_id, "before": before_ms, "rows": rows}
        with self.db.synced_after_commit(), self.db.transaction():
            return sum(self.db.execute(SQL[name], values) for name in ("trim_runs", "trim_output"))

    def purge(self, ids: Ids) -> dict[str, tuple[State, str | None]]:
        self.dependencies.resolve_all()
        with self.tx.write() as transitions:
            found = subjects(self.tx, ids)
            dead = [job for job in found if job.state is State.DEAD]
            for job in dead:
                transitions.add(job.queue, job.state, OUTSIDE)
            self.db.executemany(SQL["purge"], [(job.seq,) for job in dead])
            self.tx.record(state_change("dlq purge", dead))
        return {job.id: (job.state, job.log) for job in found}

    def reset(self) -> int:
        with self.tx.write() as transitions:
            for queue, states in self.tally().items():
                for state, jobs in states.items():
                    if jobs:
                        transitions.add(queue, state, OUTSIDE, jobs=jobs)
            since = self._counted_until(EVER)
            if since is not None:
                measured = self.db.all(SQL["measured"], {"since": since, "until": EVER})
                self.db.executemany(SQL["add_to_bucket"], [row[:BUCKET_COLUMNS] for row in measured])
            self.db.execute("delete from batches")
            self.db.execute("delete from webhook_outbox")
            removed = self.db.execute(SQL["reset_jobs"])
            self.tx.record(Act("reset", ["jobs"], before={"jobs": removed}))
            return removed

    def shrink(self) -> bool:
        """As in Store. The file gets smaller when the write-ahead log is moved into it."""
        spare = int(self.db.value("pragma freelist_count")) - SPARE_PAGES
        if spare > 0:
            freed = 0
            with self.db.synced_after_commit(), self.db.transaction():
                until = self.tx.clock.monotonic() + MAX_LOCK_SECONDS
                # One by one: the statement frees one page per step, and Python steps a statement without columns once.
                while freed < min(spare, MAX_FREED_PAGES) and self.tx.clock.monotonic() <= until:
                    self.db.execute("pragma incremental_vacuum(1)")
                    freed += 1
            if spare > freed:
                return True
            self.db.checkpoint()
        return False

    def _counted_until(self, before_ms: int) -> int | None:
        """Within a transaction that is about to remove jobs that ended by then: `buckets` has the times of runs up to this end. None:
        of all these jobs."""
        if not self.db.execute(SQL["note_removal"], {"before": before_ms}):
            return None
        return Sampling.of(self.db.all(SQL["sampling"])).until_ms
