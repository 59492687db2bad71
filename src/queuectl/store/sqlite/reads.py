"""Looking into the store: no method here writes or takes a lock."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from queuectl import errors
from queuectl.clock import Clock
from queuectl.job.lifecycle import State
from queuectl.job.model import Claim, Job, Run, Worker
from queuectl.job.names import WEBHOOKS
from queuectl.store import rows
from queuectl.store.calling import DRAIN_TRIES
from queuectl.store.migrate import LATEST
from queuectl.store.order import Order
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
from queuectl.store.sqlite import select
from queuectl.store.sqlite.base import SQL
from queuectl.store.sqlite.connection import Connection
from queuectl.store.sqlite.insight import SqliteInsight
from queuectl.store.sqlite.queues import SqliteQueueReads
from queuectl.store.sqlite.sampling import SqliteSampleReads
from queuectl.store.totals import oldest_of, tally_of, totals_of

CANDIDATES: Final = 5  # how many ids an ambiguous beginning names
PAGE: Final = 500  # jobs read at a time by a long list

# What `rows.job` reads: a job, and the first of those that it waits for.
JOB: Final = f"""{rows.JOB_COLUMNS},
    case when jobs.state = 'blocked' then (
        select json_group_array(json_array(id, state))
          from (
            select parent.id, parent.state
              from edges
              join jobs as parent on parent.seq = edges.parent
             where edges.child = jobs.seq
               and edges.state = 'waiting'
             limit {rows.WAITED_FOR}
          )
    ) end"""


class SqliteReads(SqliteInsight, SqliteQueueReads, SqliteSampleReads):
    is_shared: Final = False  # its lock is of one machine

    def __init__(self, db: Connection, clock: Clock) -> None:
        super().__init__(db, clock)
        self._seen_version = -1

    # ── jobs ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def get(self, job_id: str) -> Job:
        with self._db.snapshot():
            row = self._db.one(f"select {JOB} from jobs where id = ?", (job_id,))
            if row is None:
                raise errors.JobNotFound(job_id)
            return rows.job(row, self._present())

    def resolve(self, ref: str) -> str:
        if ref == "last":
            last: str | None = self._db.value(SQL["last_id"])
            if last is None:
                raise errors.JobNotFound(ref)
            return last
        # Every id is ASCII; a word of the command line may hold bytes that SQLite cannot even be asked for.
        is_possible = ref != "" and ref.isascii()
        ids = self._db.all(SQL["ids_from"], {"ref": ref, "limit": CANDIDATES}) if is_possible else []
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
        clause, values = select.where(where, None if after is None else order.behind(after, "?"))
        chosen = f"from jobs{select.index(where, sort)}{clause}{order.clause} limit ? offset ?"
        values += [-1 if limit is None else limit, offset]
        if (limit is not None and limit <= PAGE) or 0 < len(where.ids) <= PAGE:
            present = self._present()
            for row in self._db.all(f"select {JOB} {chosen}", values):
                yield rows.job(row, present)
            return
        # Which jobs, and in which order, is decided by one statement. They are then read page by page: a caller that pauses must not
        # hold a read transaction, or the write-ahead log grows until it goes on. 8 bytes a job are kept in memory.
        with self._db.snapshot():
            seqs = self._db.integers(f"select seq {chosen}", values)
        for start in range(0, len(seqs), PAGE):
            yield from self._page(where, seqs[start : start + PAGE].tolist())

    def _page(self, where: Filter, seqs: Sequence[int]) -> Iterator[Job]:
        """The jobs with these numbers, in this order, without those that have been removed or no longer match."""
        clause, values = select.where(where)
        # The cross join makes SQLite begin with the page: by an index on the state it would read all jobs for each page.
        page = "(select value as wanted from json_each(?)) cross join jobs on jobs.seq = wanted"
        with self._db.snapshot():
            present = self._present()
            found = self._db.all(f"select {JOB} from {page}{clause}", [json.dumps(seqs), *values])
        by_seq = {row[0]: row for row in found}
        for seq in seqs:
            if (row := by_seq.get(seq)) is not None:
                yield rows.job(row, present)

    def choose(self, where: Filter) -> list[Chosen]:
        clause, values = select.where(where)
        found = self._db.all(f"select id, state, held from jobs{clause} order by seq", values)
        return [Chosen(job_id, State(state), bool(held)) for job_id, state, held in found]

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
        return int(self._db.value(f"select count(*) from jobs{clause}", values))

    def history(self, job_id: str) -> list[Run]:
        with self._db.snapshot():
            seq = self._db.value("select seq from jobs where id = ?", (job_id,))
            if seq is None:
                raise errors.JobNotFound(job_id)
            found = self._db.all(SQL["history"], {"seq": seq}) + self._db.all(SQL["latest_run"], {"seq": seq})
        return [rows.run(row) for row in found]

    def latest_runs(self, ids: Sequence[str]) -> list[LatestRun]:
        found = self._db.all(SQL["latest_runs"], {"ids": json.dumps(ids)})
        return [LatestRun(row[0], row[1], rows.run(row[2:])) for row in found]

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def output(self, job_id: str, run: int, *, start: int = 0) -> list[Printed]:
        values = {"id": job_id, "run": run, "start": start, "limit": OUTPUT_AT_ONCE}
        return [Printed(*row) for row in self._db.all(SQL["output"], values)]

    def running(self, worker: str) -> list[Claim]:
        return [claim for claim, _ in self._running(worker)]

    # ── counts ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def tally(self) -> dict[str, dict[State, int]]:
        return tally_of(self._db.all(SQL["tally"]))

    def totals(self) -> dict[str, dict[str, int]]:
        return totals_of(self._db.all(SQL["moves"]))

    def oldest_waiting_ms(self) -> dict[str, int]:
        now = self._clock.now_ms()
        return oldest_of(self._db.all(SQL["oldest_waiting"], {"now": now}), now_ms=now)

    def durations(self) -> tuple[Spread, Spread]:
        return (
            spread((value, times) for _, value, times in self._db.all(SQL["durations"])),
            spread((value, times) for _, value, times in self._db.all(SQL["waits"])),
        )

    def throughput(self) -> Throughput:
        now = self._clock.now_ms()
        spans = (60_000, 3_600_000, 86_400_000)
        return Throughput(*(int(self._db.value(SQL["completed_since"], {"since": now - span})) for span in spans))

    def average_attempts(self) -> float | None:
        average: float | None = self._db.value(SQL["average_attempts"])
        return average

    # ── workers and settings ────────────────────────────────────────────────────────────────────────────────────────

    def workers(self, *, busy: bool = True) -> list[Worker]:
        return [rows.worker(row) for row in self._db.all(SQL["workers"], {"busy": busy})]

    def is_drained(self, queues: tuple[str, ...] | None) -> bool:
        with self._db.snapshot():
            if self._db.all(SQL["batch_due"]):
                return False  # a job is about to be made
            if self._db.value("select exists (select 1 from undecided)"):
                return False  # some of their children may be due in a moment
            if (queues is None or WEBHOOKS in queues) and self._db.value(SQL["has_calls"]):
                return False  # a job is about to be made
            tally = self.tally()
            paused = {queue for queue, rules in self.rules().items() if rules.paused}
            for queue in tally if queues is None else queues:
                if queue in paused:
                    continue
                states = tally.get(queue, {})
                if states.get(State.PROCESSING):
                    return False
                retrying = {"queue": queue, "patience": DRAIN_TRIES}
                if states.get(State.FAILED) and self._db.value(SQL["is_retrying"], retrying):
                    return False
                if self._db.value(SQL["is_ready"], {"queue": queue}):
                    return False
                if self._db.value(SQL["is_due"], {"queue": queue, "now": self._clock.now_ms()}):
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

    # ── shared with the writing half ────────────────────────────────────────────────────────────────────────────────

    def _present(self) -> rows.Present:
        # One that is stopping claims nothing more.
        queues: list[Any] = [worker.queues for worker in self.workers() if worker.state == "running"]
        brakes = self.brakes()
        return rows.Present(
            now_ms=self._clock.now_ms(),
            last_seq=self._last_seq(),
            ageing=self._ageing(),
            served=rows.served_queues(queues),
            brakes=brakes,
            of_key=self.running_keys(),
        )

    def _running(self, worker: str) -> list[tuple[Claim, bool]]:
        """The claims of a worker, each with whether somebody cancelled it."""
        found = []
        for seq, id_, token, run, *rest, key, log, cancelled, said, hooks, limits, secrets in self._db.all(
            SQL["running"], {"worker": worker}
        ):
            of_run = (seq, id_, run, *rest)
            of_job = {"depends_on": said, "hooks": hooks, "limits": limits, "secrets": secrets}
            claim = rows.claim(of_run, token=token, run=run, log=log, key=key, **of_job)
            found.append((claim, bool(cancelled)))
        return found
