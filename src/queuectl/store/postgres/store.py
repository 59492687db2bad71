"""The store in PostgreSQL: one queue for many machines. Here are the queries and the removal of jobs that differ from SQLite."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from queuectl import errors
from queuectl.jobs.audit import Act
from queuectl.jobs.model import Job
from queuectl.jobs.states import State
from queuectl.store import rows
from queuectl.store.admission import read_limit
from queuectl.store.audit import state_change
from queuectl.store.conflicts import retry_conflicts
from queuectl.store.counters import EVER
from queuectl.store.postgres.connection import LONG_SECONDS, SNAPSHOT, SQL, Connection
from queuectl.store.postgres.dependencies import PostgresResolver
from queuectl.store.postgres.enqueue import PostgresEnqueuer
from queuectl.store.postgres.errors import GRANTS, read_only
from queuectl.store.postgres.exchange import PostgresClaims
from queuectl.store.postgres.privileges import describe_missing, missing_privileges, privileges_query
from queuectl.store.postgres.transactions import PostgresTransactions
from queuectl.store.postgres.transfer import PostgresTransfers, backup
from queuectl.store.reads import PAGE_SIZE, Position, count_unpromoted, positions_before
from queuectl.store.statements import LATEST
from queuectl.store.store import Store
from queuectl.store.transactions import Parameters, Query, Transactions, read_ageing
from queuectl.store.types import Caution, Filter, Health, Ids, Row
from queuectl.store.unique import subjects
from queuectl.store.webhook_outbox import DRAIN_ATTEMPTS

_SYNCHRONOUS_COMMIT_OFF: Final = (
    "a crash of the server can lose jobs that were enqueued in the last second",
    "alter database … set synchronous_commit = on",
)
_FSYNC_OFF: Final = ("a loss of power can lose or damage the whole database", "set fsync = on in postgresql.conf")
_ARGUMENTS: Final = (
    "select string_agg(word, ' ' order by place)"
    " from json_array_elements_text(argv::json) with ordinality as words (word, place)"
)


class _HasChildren(Exception):  # not an error: the reason to try again
    """A job that is to be removed has unresolved children."""


class PostgresStore(Store):
    tx: PostgresTransactions
    claims: PostgresClaims
    is_shared = True
    jobs_table = "queuectl.jobs"
    tags_table = "queuectl.job_tags"
    command_text = f"coalesce(command, ({_ARGUMENTS}))"
    mark = "%s"
    no_limit = None
    job_columns = f"""{rows.JOB_COLUMNS},
        case when jobs.state = 'blocked' then (
            select json_agg(json_build_array(id, state))::text
              from (
                select parent.id, parent.state
                  from queuectl.edges
                  join queuectl.jobs as parent on parent.seq = edges.parent
                 where edges.child = jobs.seq
                   and edges.state = 'waiting'
                 order by edges.parent
                 limit {rows.MAX_PARENTS_SHOWN}
              ) as found
        ) end"""

    def __init__(self, db: Connection) -> None:
        tx = PostgresTransactions(db)
        resolver = PostgresResolver(tx)
        super().__init__(tx, PostgresEnqueuer(tx, resolver), resolver)
        self.db = db
        self.claims = PostgresClaims(tx, self, resolver)
        self.transfers = PostgresTransfers(self)
        self._seen: Row | None = None

    @property
    def shown(self) -> str:
        return self.db.shown

    def read_jobs(
        self, text: str, values: Sequence[Any], *, plan_freely: bool = False
    ) -> tuple[list[Row], rows.Present]:
        found, *context = self.db.query(Query(text, values), *self._context_queries(), plan_freely=plan_freely)
        return found, self._read_context(context)

    def long_list(self, where: Filter, chosen: str, values: list[Any]) -> Iterator[Job]:  # noqa: ARG002 # for SQLite
        with self.tx.read_pages(f"select {self.job_columns} {chosen}", values, size=PAGE_SIZE) as (tx, pages):
            context = self.context(tx)
            for page in pages:
                for row in page:
                    yield rows.job(row, context)

    def is_drained(self, queues: tuple[str, ...] | None) -> bool:
        wanted = None if queues is None else list(queues)
        drained, due = self.tx.each(
            ("is_drained", {"queues": wanted, "now": self.now_ms(), "patience": DRAIN_ATTEMPTS}), ("batch_due", ())
        )
        return bool(drained[0][0]) and not due  # the completion job of a batch that is due is about to be enqueued

    def changed(self) -> bool:
        ((snapshot, store, schema),) = self.tx.all("changed")
        if schema > LATEST:
            raise errors.StoreTooNew(self.db.shown, schema, LATEST)
        seen, self._seen = self._seen, (snapshot, store)
        if seen is not None and seen[1] != store:
            raise errors.StoreGone(self.db.shown)
        return seen is None or seen[0] != snapshot

    def backup(self, path: str) -> None:
        """As in Reads: a SQLite store, see transfer.py."""
        backup(self.tx, path)

    def ahead(self, job_id: str, *, queues: tuple[str, ...] | None, most: int) -> int:
        with self.db.transaction(begin=SNAPSHOT):
            position, _ = self.position(job_id)
            late = [Position(*row) for row in self.tx.all("late", {"now": self.now_ms(), "limit": most})]
            known = {one.queue for one in late} if queues is None else queues
            limits = positions_before(position, known, in_one_order=queues is None)
            asked: list[tuple[str, Parameters]]
            if queues is None:
                asked = [("ahead_of_all", {**position._asdict(), "limit": most})]
            else:
                asked = [("ahead", {**limit._asdict(), "limit": most}) for limit in limits]
            found = sum(int(result[0][0]) for result in self.tx.each(*asked))
        return min(most, found + count_unpromoted(late, limits))

    def examine(self) -> Health:
        server, tables = self.db.query(Query(SQL["server"]), privileges_query())
        version, is_read_only, schema, synchronous_commit, fsync = server[0]
        cautions = [
            Caution("not-durable", f"the server has {name} = off: {risk}", hint)
            for name, value, risk, hint in (
                ("synchronous_commit", synchronous_commit, *_SYNCHRONOUS_COMMIT_OFF),
                ("fsync", fsync, *_FSYNC_OFF),
            )
            if value == "off"
        ]
        problems = [f"the table queuectl.{name} is missing" for name, is_there, _ in tables if not is_there]
        missing = missing_privileges(tables)
        hindrances: list[errors.QueuectlError] = [read_only(self.db.shown)] if is_read_only else []
        if missing:
            hindrances.append(errors.StoreRefused(self.db.shown, describe_missing(missing), hint=GRANTS))
        if not problems and not any("select" in rights for rights in missing.values()):
            with self.tx.long_snapshot():
                strays = self.tx.all("strays")
            problems += [
                f"{count:,} rows of {table} belong to jobs that are not there" for table, count in strays if count
            ]
        return Health(
            f"PostgreSQL {version.split()[0]}", schema, LATEST, tuple(problems), tuple(hindrances), tuple(cautions)
        )

    def context(self, tx: Transactions) -> rows.Present:
        return self._read_context(tx.each(*self._context_statements()))

    def _context_statements(self) -> list[tuple[str, Parameters]]:
        first: list[tuple[str, Parameters]] = [(name, ()) for name in ("served", "last_seq", "ageing", "running_keys")]
        return [*first, ("limits", {"now": self.now_ms()})]

    def _context_queries(self) -> list[Query]:
        return [Query(SQL[name], values) for name, values in self._context_statements()]

    def _read_context(self, results: Sequence[list[Row]]) -> rows.Present:
        served, last_seq, ageing, keys, limits = results
        now = self.now_ms()
        return rows.Present(
            now_ms=now,
            last_seq=last_seq[0][0],
            ageing=read_ageing(ageing[0][0] if ageing else None),
            served=rows.served_queues([None if queues is None else tuple(json.loads(queues)) for (queues,) in served]),
            brakes={limit.queue: limit.brake(now) for limit in map(read_limit, limits)},
            of_key=rows.by_key(keys),
        )

    def is_any(self, column: str, values: Sequence[str]) -> tuple[str, list[Any]]:
        if len(values) == 1:  # only then are the entries of an index on this column in the order of its other columns
            return f"{column} = %s", list(values)
        return f"{column} = any(%s::text[])", [list(values)]

    def contains(self, text: str) -> str:
        # The same result in every database, whatever its locale, and as in SQLite.
        return f"{text} collate \"C\" ilike %s escape '\\'"

    def bindable(self, text: str) -> str:
        return super().bindable(text).replace("\0", "?")

    # ── removal ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @retry_conflicts
    def prune(self, ids: Sequence[str], *, before_ms: int) -> dict[str, str | None]:
        self.dependencies.resolve_all()
        hold = Query(SQL["hold_ended"], {"ids": list(ids)})
        prune = Query(SQL["prune"], {"ids": list(ids), "before": before_ms})
        with self.db.transaction(hold, *_count_queries(ids, before_ms=before_ms), prune) as (*_, rows):
            gone = dict(rows)
            self.tx.record(Act("prune", list(gone)))
        return gone

    @retry_conflicts
    def trim(self, job_id: str, *, before_ms: int, rows: int) -> int:
        values = {"id": job_id, "before": before_ms, "rows": rows}
        trimmed = self.db.write([Query(SQL[name], values) for name in ("trim_runs", "trim_output")])
        return sum(result.rowcount for result in trimmed)

    def shrink(self) -> bool:
        """Nothing to do: autovacuum does it, see the settings of the tables."""
        return False

    @retry_conflicts
    def purge(self, ids: Ids) -> dict[str, tuple[State, str | None]]:
        while True:
            self.dependencies.resolve_all()
            try:
                return self._purge(ids)
            except _HasChildren:
                continue

    def _purge(self, ids: Ids) -> dict[str, tuple[State, str | None]]:
        with self.tx.write():
            found = subjects(self.tx, ids)
            dead = [job for job in found if job.state is State.DEAD]
            if self.tx.value("is_awaited", {"seqs": [job.seq for job in dead]}):
                raise _HasChildren
            self.tx.execute("prune", {"ids": [job.id for job in dead], "before": EVER})
            self.tx.record(state_change("dlq purge", dead))
        return {job.id: (job.state, job.log) for job in found}

    @retry_conflicts
    def reset(self) -> int:
        first = _count_queries(None, before_ms=EVER)
        with self.db.transaction(*first, seconds=LONG_SECONDS, plan_freely=True):
            removed = int(self.tx.value("reset_jobs"))
            self.tx.record(Act("reset", ["jobs"], before={"jobs": removed}))
            return removed


def _count_queries(ids: Sequence[str] | None, *, before_ms: int) -> list[Query]:
    """Before these jobs are removed (None: all), in the same transaction: count their run times."""
    chosen = None if ids is None else list(ids)
    return [
        Query(SQL["note_removal"], {"before": before_ms}),
        Query(SQL["count_out"], {"ids": chosen, "before": before_ms}),
    ]
