"""Queries in SQLite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, Final

from queuectl import errors
from queuectl.jobs.model import Job
from queuectl.jobs.states import State
from queuectl.store import rows
from queuectl.store.admin import QueueAdmin
from queuectl.store.reads import PAGE_SIZE, JobReads, Order, Position, count_unpromoted, positions_before
from queuectl.store.sqlite.connection import MEMORY, SqliteTransactions
from queuectl.store.statements import LATEST
from queuectl.store.transactions import Transactions
from queuectl.store.types import After, Filter, Health, Sort
from queuectl.store.webhook_outbox import DRAIN_ATTEMPTS
from queuectl.text import WEBHOOK_QUEUE

MAX_PROBLEMS: Final = 10  # that an integrity check reports
_ARGUMENTS: Final = "select group_concat(value, ' ') from (select value from json_each(argv) order by key)"
# The indexes of jobs in the order of their ends, by state.
_BY_END: Final = {State.COMPLETED: "jobs_completed", State.DEAD: "jobs_ended", State.CANCELLED: "jobs_ended"}


class SqliteReads(JobReads):
    is_shared = False  # the lock of a SQLite file works on one machine
    jobs_table = "jobs"
    tags_table = "job_tags"
    # Not `like`, which has wildcards and ignores case.
    matches = f"instr(coalesce(command, ({_ARGUMENTS})), ?) > 0"
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

    def __init__(self, tx: SqliteTransactions) -> None:
        super().__init__(tx)
        self._db = tx.db
        self._queues = QueueAdmin(tx)
        self._seen_version = -1
        self.reads_at_once = self._db.path == MEMORY

    @property
    def shown(self) -> str:
        return self._db.path

    def jobs(
        self,
        where: Filter = Filter(),
        *,
        sort: Sort = Sort.CREATED,
        descending: bool = True,
        limit: int | None = None,
        offset: int = 0,
        after: After | None = None,
    ) -> Iterator[Job]:
        order = Order(sort, where, descending=descending)
        clause, values = self.where(where, None if after is None else order.condition(after, "?"))
        chosen = f"from jobs{_index(where, sort)}{clause}{order.clause} limit ? offset ?"
        values += [self.no_limit if limit is None else limit, offset]
        if (limit is not None and limit <= PAGE_SIZE) or 0 < len(where.ids) <= PAGE_SIZE:
            context = self.context(self._tx)
            for row in self._db.all(f"select {self.job_columns} {chosen}", values):
                yield rows.job(row, context)
            return
        # One statement selects and sorts the jobs, which are then read page by page: a caller that pauses must not hold a read
        # transaction, or the write-ahead log grows. This keeps 8 bytes per job in memory.
        with self._db.snapshot():
            seqs = self._db.integers(f"select seq {chosen}", values)
        for start in range(0, len(seqs), PAGE_SIZE):
            yield from self._page(where, seqs[start : start + PAGE_SIZE].tolist())

    def _page(self, where: Filter, seqs: Sequence[int]) -> Iterator[Job]:
        """The jobs with these sequence numbers, in this order, without those that were removed or no longer match."""
        clause, values = self.where(where)
        # The cross join makes SQLite begin with the page: with an index on the state it would read all jobs for each page.
        page = "(select value as wanted from json_each(?)) cross join jobs on jobs.seq = wanted"
        with self._db.snapshot():
            context = self.context(self._tx)
            found = self._db.all(f"select {self.job_columns} from {page}{clause}", [json.dumps(seqs), *values])
        by_seq = {row[0]: row for row in found}
        for seq in seqs:
            if (row := by_seq.get(seq)) is not None:
                yield rows.job(row, context)

    def is_drained(self, queues: tuple[str, ...] | None) -> bool:
        with self._db.snapshot():
            if self._tx.all("batch_due") or self._tx.value("is_undecided"):
                return False  # a completion job or children are about to become due
            if (queues is None or WEBHOOK_QUEUE in queues) and self._tx.value("has_deliveries"):
                return False  # deliveries are about to be enqueued
            tally = self.tally()
            paused = {queue for queue, rules in self._queues.rules().items() if rules.paused}
            for queue in tally if queues is None else queues:
                if queue in paused:
                    continue
                states = tally.get(queue, {})
                if states.get(State.PROCESSING):
                    return False
                retrying = {"queue": queue, "patience": DRAIN_ATTEMPTS}
                if states.get(State.FAILED) and self._tx.value("is_retrying", retrying):
                    return False
                if self._tx.value("is_ready", {"queue": queue}):
                    return False
                if self._tx.value("is_due", {"queue": queue, "now": self.now_ms()}):
                    return False
        return True

    def changed(self) -> bool:
        self._db.check_in_place()
        version = int(self._db.value("pragma data_version"))
        if version == self._seen_version:
            return False
        if (schema := int(self._db.value("pragma user_version"))) > LATEST:
            raise errors.StoreTooNew(self._db.path, schema, LATEST)
        self._seen_version = version
        return True

    def backup(self, path: str) -> None:
        self._db.backup(path)

    def ahead(self, job_id: str, *, queues: tuple[str, ...] | None, most: int) -> int:
        with self._db.snapshot():
            position, _ = self.position(job_id)
            late = [Position(*row) for row in self._tx.all("late", {"now": self.now_ms(), "limit": most})]
            ready = [queue for (queue,) in self._tx.all("ready_queues")]
            known = {*ready, *(one.queue for one in late)} if queues is None else queues
            limits = positions_before(position, known, in_one_order=queues is None)
            found = count_unpromoted(late, limits)
            for limit in limits:
                if found >= most:
                    return most
                found += int(self._tx.value("ahead", {**limit._asdict(), "limit": most}))
            return min(found, most)

    def examine(self) -> Health:
        with self._db.snapshot():
            schema = int(self._db.value("pragma user_version"))
            # Not quick_check, which does not compare indexes with their tables: claims rely on indexes.
            damage = [str(row[0]) for row in self._db.all(f"pragma integrity_check({MAX_PROBLEMS})")]
            strays = self._tx.all("strays")
        problems = [] if damage == ["ok"] else [line for text in damage for line in text.splitlines()]
        problems += [f"{count:,} rows of {table} belong to jobs that are not there" for table, count in strays]
        return Health(f"SQLite {sqlite3.sqlite_version}", schema, LATEST, tuple(problems))

    def context(self, tx: Transactions) -> rows.Present:  # noqa: ARG002 # the same on each connection
        # A stopping worker claims no more jobs.
        served = [worker.queues for worker in self.workers() if worker.state == "running"]
        brakes = self._queues.brakes()
        return rows.Present(
            now_ms=self.now_ms(),
            last_seq=self._tx.last_seq(),
            ageing=self._tx.ageing(),
            served=rows.served_queues(served),
            brakes=brakes,
            of_key=self._queues.running_keys(),
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


def _index(filters: Filter, sort: Sort) -> str:
    """The index that has the jobs in this order, where SQLite would choose another one and sort."""
    if sort is Sort.FINISHED and len(filters.states) == 1 and not filters.ids and not filters.tags:
        name = _BY_END.get(next(iter(filters.states)))
        return "" if name is None else f" indexed by {name}"
    return ""
