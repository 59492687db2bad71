"""Queries in PostgreSQL, and the privileges that a role needs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from queuectl import errors
from queuectl.jobs.model import Job
from queuectl.store import rows
from queuectl.store.admission import read_limit
from queuectl.store.postgres.connection import SNAPSHOT, SQL
from queuectl.store.postgres.errors import GRANTS, read_only
from queuectl.store.postgres.transactions import PostgresTransactions
from queuectl.store.postgres.transfer import backup
from queuectl.store.reads import PAGE_SIZE, JobReads, Order, Position, count_unpromoted, positions_before
from queuectl.store.statements import LATEST
from queuectl.store.transactions import Parameters, Query, Transactions, read_ageing
from queuectl.store.types import After, Caution, Filter, Health, Row, Sort
from queuectl.store.webhook_outbox import DRAIN_ATTEMPTS

_ALL: Final = ("select", "insert", "update", "delete")
_NO_UPDATE: Final = ("select", "insert", "delete")
_NO_DELETE: Final = ("select", "insert", "update")
# The privileges that a role needs. docs/guides/postgresql.md has the grants.
RIGHTS: Final[Mapping[str, tuple[str, ...]]] = {
    "alerts": _ALL, "audit": _NO_UPDATE, "batches": _ALL, "buckets": _NO_DELETE, "webhook_outbox": _ALL,
    "config": _ALL, "counters": _NO_DELETE, "done": _NO_UPDATE, "edges": _ALL, "job_tags": _NO_UPDATE, "jobs": _ALL,
    "jobs_seq_seq": ("usage", "select"), "locks": ("select", "update"), "meta": ("select",), "moves": _ALL, "output": _ALL, "points": _ALL, "queues": _ALL,
    "requests": _ALL, "runs": _NO_UPDATE, "sampling": _NO_DELETE, "schedules": _ALL, "starts": _ALL, "ticks": _ALL, "undecided": _ALL,
    "workers": _ALL,
}  # fmt: skip

_SYNCHRONOUS_COMMIT_OFF: Final = (
    "a crash of the server can lose jobs that were enqueued in the last second",
    "alter database … set synchronous_commit = on",
)
_FSYNC_OFF: Final = ("a loss of power can lose or damage the whole database", "set fsync = on in postgresql.conf")
_ARGUMENTS: Final = (
    "select string_agg(word, ' ' order by place)"
    " from json_array_elements_text(argv::json) with ordinality as words (word, place)"
)


class PostgresReads(JobReads):
    is_shared = True
    jobs_table = "queuectl.jobs"
    tags_table = "queuectl.job_tags"
    matches = f"strpos(coalesce(command, ({_ARGUMENTS})), %s) > 0"
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

    def __init__(self, tx: PostgresTransactions) -> None:
        super().__init__(tx)
        self._db = tx.db
        self._postgres = tx
        self._seen: Row | None = None

    @property
    def shown(self) -> str:
        return self._db.shown

    def get(self, job_id: str) -> Job:
        text = f"select {self.job_columns} from queuectl.jobs where id = %s"
        found, *context = self._db.query(Query(text, (job_id,)), *self._context_queries())
        if not found:
            raise errors.JobNotFound(job_id)
        return rows.job(found[0], self._read_context(context))

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
        clause, values = self.where(where, None if after is None else order.condition(after, "%s"))
        text = f"select {self.job_columns} from queuectl.jobs{clause}{order.clause} limit %s offset %s"
        values += [limit, offset]
        if (limit is not None and limit <= PAGE_SIZE) or 0 < len(where.ids) <= PAGE_SIZE:
            found, *results = self._db.query(Query(text, values), *self._context_queries(), plan_freely=True)
            context = self._read_context(results)
            for row in found:
                yield rows.job(row, context)
            return
        with self._tx.read_pages(text, values, size=PAGE_SIZE) as (tx, pages):
            context = self.context(tx)
            for page in pages:
                for row in page:
                    yield rows.job(row, context)

    def is_drained(self, queues: tuple[str, ...] | None) -> bool:
        wanted = None if queues is None else list(queues)
        drained, due = self._tx.each(
            ("is_drained", {"queues": wanted, "now": self.now_ms(), "patience": DRAIN_ATTEMPTS}), ("batch_due", ())
        )
        return bool(drained[0][0]) and not due  # the completion job of a batch that is due is about to be enqueued

    def changed(self) -> bool:
        ((snapshot, store, schema),) = self._tx.all("changed")
        if schema > LATEST:
            raise errors.StoreTooNew(self._db.shown, schema, LATEST)
        seen, self._seen = self._seen, (snapshot, store)
        if seen is not None and seen[1] != store:
            raise errors.StoreGone(self._db.shown)
        return seen is None or seen[0] != snapshot

    def backup(self, path: str) -> None:
        """As in the protocol: a SQLite store, see transfer.py."""
        backup(self._postgres, path)

    def ahead(self, job_id: str, *, queues: tuple[str, ...] | None, most: int) -> int:
        with self._db.transaction(begin=SNAPSHOT):
            position, _ = self.position(job_id)
            late = [Position(*row) for row in self._tx.all("late", {"now": self.now_ms(), "limit": most})]
            known = {one.queue for one in late} if queues is None else queues
            limits = positions_before(position, known, in_one_order=queues is None)
            asked: list[tuple[str, Parameters]]
            if queues is None:
                asked = [("ahead_of_all", {**position._asdict(), "limit": most})]
            else:
                asked = [("ahead", {**limit._asdict(), "limit": most}) for limit in limits]
            found = sum(int(result[0][0]) for result in self._tx.each(*asked))
        return min(most, found + count_unpromoted(late, limits))

    def examine(self) -> Health:
        server, tables = self._db.query(Query(SQL["server"]), privileges_query())
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
        missing = _missing(tables)
        hindrances: list[errors.QueuectlError] = [read_only(self._db.shown)] if is_read_only else []
        if missing:
            hindrances.append(errors.StoreRefused(self._db.shown, _describe_missing(missing), hint=GRANTS))
        if not problems and not any("select" in rights for rights in missing.values()):
            with self._tx.long_snapshot():
                strays = self._tx.all("strays")
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
        return f"{column} = any(%s::text[])", [list(values)]

    def bindable(self, text: str) -> str:
        return super().bindable(text).replace("\0", "?")


# ── privileges ──────────────────────────────────────────────────────────────────────────────────────────────────────


def privileges_query() -> Query:
    return Query(SQL["tables"], {"names": list(RIGHTS), "rights": [" ".join(rights) for rights in RIGHTS.values()]})


def check_privileges(tables: Iterable[Row], shown: str) -> None:
    """Raise StoreRefused, which names all missing privileges. `tables`: the rows of `privileges_query`."""
    if missing := _missing(tables):
        raise errors.StoreRefused(shown, _describe_missing(missing), hint=GRANTS)


def _missing(tables: Iterable[Row]) -> dict[str, Sequence[str]]:
    return {name: rights for name, _, rights in tables if rights}


def _describe_missing(missing: Mapping[str, Sequence[str]]) -> str:
    """In the order of a grant."""
    tables = {right: [name for name in missing if right in missing[name]] for right in (*_ALL, "usage")}
    return "this role lacks " + "; ".join(f"{right} on {', '.join(found)}" for right, found in tables.items() if found)
