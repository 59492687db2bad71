"""Batches in PostgreSQL. See store/batches.py."""

from __future__ import annotations

from queuectl.errors import BatchNotFound
from queuectl.store.batches import LATELY_MS, Batch, Completed, LastJob, batch_of, completing, last_jobs_of
from queuectl.store.calling import AT_ONCE, deliveries
from queuectl.store.entry import Wave
from queuectl.store.ids import new_job_ids
from queuectl.store.postgres.base import read_ageing
from queuectl.store.postgres.connection import SQL, Question
from queuectl.store.postgres.inbox import PostgresInbox
from queuectl.store.postgres.trouble import run_again
from queuectl.store.requests import FORGET_AT_ONCE
from queuectl.store.rows import worker


class PostgresBatches(PostgresInbox):
    def batch(self, name: str) -> Batch:
        of, since = {"name": name}, self._clock.now_ms() - LATELY_MS
        found, states, lately = self._db.ask(
            Question(SQL["batch"], of),
            Question(SQL["batch_states"], of),
            Question(SQL["batch_lately"], {**of, "since": since}),
        )
        if not found:
            raise BatchNotFound(name)
        return batch_of(found[0], [(state, jobs) for state, jobs in states], lately=lately[0][0])

    def batches(self) -> list[Batch]:
        found, counted = self._db.ask(Question(SQL["batches"]), Question(SQL["all_batch_states"]), plan_freely=True)
        states: dict[str, list[tuple[str, int]]] = {}
        for name, state, jobs in counted:
            states.setdefault(name, []).append((state, jobs))
        return [batch_of(row, states.get(row[0], ())) for row in found]

    def last_jobs(self) -> dict[str, LastJob]:
        (found,) = self._db.ask(Question(SQL["batches"]))
        return last_jobs_of(found)

    def complete_batches(self) -> list[Completed]:
        (due,) = self._db.ask(Question(SQL["batch_due"]))
        return [completed for (name,) in due if (completed := self._complete(name)) is not None]

    @run_again
    def forget_batches(self, *, before_ms: int) -> int:
        (gone,) = self._db.transact([Question(SQL["forget_batches"], {"before": before_ms})])
        return gone.touched

    @run_again
    def forget_requests(self, *, before_ms: int, limit: int = FORGET_AT_ONCE) -> int:
        values = {"before": before_ms, "limit": limit}
        (gone,) = self._db.transact([Question(SQL["forget_requests"], values)])
        return gone.touched

    def make_calls(self) -> int:
        (found,) = self._db.ask(Question(SQL["has_calls"]))
        return self._make_calls() if found[0][0] else 0

    @run_again
    def _make_calls(self) -> int:
        with self._moving(Question(SQL["hold_ageing"]), ring=True) as moves:
            workers = [worker(row) for row in self._db.all(SQL["workers"], {"busy": False})]
            jobs = deliveries(self._db.all(SQL["take_calls"], {"limit": AT_ONCE}), workers)
            if jobs:
                self._add(jobs, new_job_ids(len(jobs)), moves)
        return len(jobs)

    @run_again
    def _complete(self, name: str) -> Completed | None:
        with self._moving(Question(SQL["hold_ageing"]), ring=True) as moves:
            text = self._db.value(SQL["take_batch"], {"name": name})
            # A statement of its own, after the lock: it sees the jobs of those that we have waited for.
            if text is None or name not in (due for (due,) in self._db.all(SQL["batch_due"])):
                return None
            now, ageing = self._clock.now_ms(), read_ageing(self._db.value(SQL["ageing"]))
            job = completing(
                text, [tuple(row) for row in self._db.all(SQL["batch_states"], {"name": name})], batch=name
            )
            (job_id,) = new_job_ids(1)
            seqs = self._db.value(SQL["take_places"], {"ids": [], "jobs": 1})
            self._insert(Wave([job], [job_id], seqs), moves, now_ms=now, ageing=ageing)
            self._db.execute(SQL["complete_batch"], {"name": name, "now": now, "job": job_id})
        return Completed(name, job_id)
