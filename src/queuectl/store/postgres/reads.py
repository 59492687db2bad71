"""Looking into the store: no method here writes or takes a lock."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, Final

from queuectl import errors
from queuectl.job.lifecycle import State
from queuectl.job.model import Claim, Job, Run, Worker
from queuectl.store import rows
from queuectl.store.calling import DRAIN_TRIES
from queuectl.store.order import Order
from queuectl.store.postgres import select
from queuectl.store.postgres.base import read_ageing
from queuectl.store.postgres.connection import LONG_SECONDS, SNAPSHOT, SQL, Connection, Question
from queuectl.store.postgres.insight import PostgresInsight
from queuectl.store.postgres.queues import PostgresQueueReads, brakes
from queuectl.store.postgres.sampling import PostgresSampleReads
from queuectl.store.postgres.schema import LATEST
from queuectl.store.postgres.session import Row
from queuectl.store.protocol import (
    OUTPUT_AT_ONCE,
    After,
    Chosen,
    Filter,
    LatestRun,
    Printed,
    Sort,
    Spread,
    Throughput,
)
from queuectl.store.spread import spread
from queuectl.store.totals import oldest_of, tally_of, totals_of

CANDIDATES: Final = 5  # how many ids an ambiguous beginning names
PAGE: Final = 500  # jobs read at a time by a long list

# What `rows.job` reads: a job, and the first of those that it waits for.
JOB: Final = f"""{rows.JOB_COLUMNS},
    case when jobs.state = 'blocked' then (
        select json_agg(json_build_array(id, state))::text
          from (
            select parent.id, parent.state
              from queuectl.edges
              join queuectl.jobs as parent on parent.seq = edges.parent
             where edges.child = jobs.seq
               and edges.state = 'waiting'
             order by edges.parent
             limit {rows.WAITED_FOR}
          ) as found
    ) end"""


class PostgresReads(PostgresInsight, PostgresQueueReads, PostgresSampleReads):
    is_shared: Final = True

    def __init__(self, db: Connection) -> None:
        super().__init__(db)
        self._seen: Row | None = None

    # ── jobs ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def get(self, job_id: str) -> Job:
        sql = f"select {JOB} from queuectl.jobs where id = %s"
        found, *present = self._db.ask(Question(sql, (job_id,)), *self._present_questions())
        if not found:
            raise errors.JobNotFound(job_id)
        return rows.job(found[0], self._present(present))

    def resolve(self, ref: str) -> str:
        if ref == "last":
            (last,) = self._db.ask(Question(SQL["last_id"]))
            if not last:
                raise errors.JobNotFound(ref)
            return str(last[0][0])
        # Every id is ASCII; a word of the command line may hold bytes that PostgreSQL cannot even be asked for.
        if ref == "" or not ref.isascii() or "\0" in ref:
            raise errors.JobNotFound(ref)
        (ids,) = self._db.ask(Question(SQL["ids_from"], {"ref": ref, "limit": CANDIDATES}))
        found = [str(row[0]) for row in ids]
        if not found:
            raise errors.JobNotFound(ref)
        if found[0] == ref or len(found) == 1:
            return found[0]
        raise errors.AmbiguousId(ref, found)

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
        clause, values = select.where(where, None if after is None else order.behind(after, "%s"))
        sql = f"select {JOB} from queuectl.jobs{clause}{order.clause} limit %s offset %s"
        values += [limit, offset]
        if (limit is not None and limit <= PAGE) or 0 < len(where.ids) <= PAGE:
            found, *answers = self._db.ask(Question(sql, values), *self._present_questions(), plan_freely=True)
            present = self._present(answers)
            for row in found:
                yield rows.job(row, present)
            return
        # A cursor of the server's, in a transaction that sees one state of the store however long the reader takes.
        with (
            closing(self._db.beside()) as db,
            db.transaction(begin=SNAPSHOT, seconds=LONG_SECONDS, plan_freely=True),
        ):
            present = self._present(db.ask(*self._present_questions()))
            for page in db.pages(sql, values, size=PAGE):
                for row in page:
                    yield rows.job(row, present)

    def choose(self, where: Filter) -> list[Chosen]:
        clause, values = select.where(where)
        with self._db.transaction(begin=SNAPSHOT, seconds=LONG_SECONDS, plan_freely=True):
            found = self._db.all(f"select id, state, held from queuectl.jobs{clause} order by seq", values)
        return [Chosen(job_id, State(state), held) for job_id, state, held in found]

    def count(self, where: Filter = Filter()) -> int:
        if where.is_tallied:
            tally = self.tally()
            return sum(
                jobs
                for queue, states in tally.items()
                if where.has_queue(queue)
                for state, jobs in states.items()
                if not where.states or state in where.states
            )
        clause, values = select.where(where)
        question = Question(f"select count(*) from queuectl.jobs{clause}", values)
        ((row,),) = self._db.ask(question, plan_freely=True)
        return int(row[0])

    def history(self, job_id: str) -> list[Run]:
        with self._db.transaction(begin=SNAPSHOT):
            seq = self._db.value("select seq from queuectl.jobs where id = %s", (job_id,))
            if seq is None:
                raise errors.JobNotFound(job_id)
            over, latest = self._db.ask(
                Question(SQL["history"], {"seq": seq}), Question(SQL["latest_run"], {"seq": seq})
            )
        return [rows.run(row) for row in over + latest]

    def latest_runs(self, ids: Sequence[str]) -> list[LatestRun]:
        found = self._all(SQL["latest_runs"], {"ids": list(ids)})
        return [LatestRun(row[0], row[1], rows.run(row[2:])) for row in found]

    def output(self, job_id: str, run: int, *, start: int = 0) -> list[Printed]:
        values = {"id": job_id, "run": run, "start": start, "limit": OUTPUT_AT_ONCE}
        return [Printed(at, bytes(data)) for at, data in self._all(SQL["output"], values)]

    def running(self, worker: str) -> list[Claim]:
        return [claim for claim, _ in self._running(worker)]

    # ── counts ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def tally(self) -> dict[str, dict[State, int]]:
        return tally_of(self._all(SQL["tally"]))

    def totals(self) -> dict[str, dict[str, int]]:
        return totals_of(self._all(SQL["moves"]))

    def oldest_waiting_ms(self) -> dict[str, int]:
        now = self._clock.now_ms()
        return oldest_of(self._all(SQL["oldest_waiting"], {"now": now}), now_ms=now)

    def durations(self) -> tuple[Spread, Spread]:
        ran, waited = self._db.ask(Question(SQL["durations"]), Question(SQL["waits"]), plan_freely=True)
        return (
            spread((value, times) for _, value, times in ran),
            spread((value, times) for _, value, times in waited),
        )

    def throughput(self) -> Throughput:
        now = self._clock.now_ms()
        spans = (60_000, 3_600_000, 86_400_000)
        found = self._db.ask(*(Question(SQL["completed_since"], {"since": now - span}) for span in spans))
        return Throughput(*(int(count[0][0]) for count in found))

    def average_attempts(self) -> float | None:
        (((average,),),) = self._db.ask(Question(SQL["average_attempts"]), plan_freely=True)
        return None if average is None else float(average)

    # ── workers and settings ────────────────────────────────────────────────────────────────────────────────────────

    def workers(self, *, busy: bool = True) -> list[Worker]:
        return [rows.worker(row) for row in self._all(SQL["workers"], {"busy": busy})]

    def is_drained(self, queues: tuple[str, ...] | None) -> bool:
        wanted = None if queues is None else list(queues)
        drained, due = self._db.ask(
            Question(SQL["is_drained"], {"queues": wanted, "now": self._clock.now_ms(), "patience": DRAIN_TRIES}),
            Question(SQL["batch_due"]),
        )
        return bool(drained[0][0]) and not due  # of a batch that is due a job is about to be made

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def changed(self) -> bool:
        ((snapshot, store, schema),) = self._all(SQL["changed"])
        if schema > LATEST:
            raise errors.StoreTooNew(self._db.shown, schema, LATEST)
        seen, self._seen = self._seen, (snapshot, store)
        if seen is not None and seen[1] != store:
            raise errors.StoreGone(self._db.shown)
        return seen is None or seen[0] != snapshot

    # ── shared with the writing half ────────────────────────────────────────────────────────────────────────────────

    def _all(self, statement: str, values: dict[str, Any] | None = None) -> list[Row]:
        (found,) = self._db.ask(Question(statement, values or ()))
        return found

    def _present(self, answers: Sequence[list[Row]]) -> rows.Present:
        served, last_seq, ageing, limits, keys = answers
        now = self._clock.now_ms()
        return rows.Present(
            now_ms=now,
            last_seq=last_seq[0][0],
            ageing=read_ageing(ageing[0][0] if ageing else None),
            served=rows.served_queues([None if queues is None else tuple(json.loads(queues)) for (queues,) in served]),
            brakes=brakes(limits, now),
            of_key=rows.by_key(keys),
        )

    def _running(self, worker: str) -> list[tuple[Claim, bool]]:
        """The claims of a worker, each with whether somebody cancelled it."""
        found = []
        for seq, id_, token, run, *rest, key, log, cancelled, said, hooks, limits, secrets in self._all(
            SQL["running"], {"worker": worker}
        ):
            of_run = (seq, id_, run, *rest)
            of_job = {"depends_on": said, "hooks": hooks, "limits": limits, "secrets": secrets}
            claim = rows.claim(of_run, token=token, run=run, log=log, key=key, **of_job)
            found.append((claim, bool(cancelled)))
        return found

    def _present_questions(self) -> list[Question]:
        """What `_present` needs the answers to."""
        limits = Question(SQL["limits"], {"now": self._clock.now_ms()})
        first = (Question(SQL[name]) for name in ("served", "last_seq", "ageing"))
        return [*first, limits, Question(SQL["running_keys"])]
