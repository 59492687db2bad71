"""Batches in a SQLite file. See store/batches.py."""

from __future__ import annotations

from queuectl.errors import BatchNotFound
from queuectl.store.batches import LATELY_MS, Batch, Completed, LastJob, batch_of, completing, last_jobs_of
from queuectl.store.calling import AT_ONCE, deliveries
from queuectl.store.entry import Wave
from queuectl.store.ids import new_job_ids
from queuectl.store.requests import FORGET_AT_ONCE
from queuectl.store.rows import worker
from queuectl.store.sqlite.base import SQL
from queuectl.store.sqlite.inbox import SqliteInbox


class SqliteBatches(SqliteInbox):
    def batch(self, name: str) -> Batch:
        with self._db.snapshot():
            row = self._db.one(SQL["batch"], {"name": name})
            if row is None:
                raise BatchNotFound(name)
            lately = {"name": name, "since": self._clock.now_ms() - LATELY_MS}
            states = self._db.all(SQL["batch_states"], {"name": name})
            return batch_of(row, states, lately=self._db.value(SQL["batch_lately"], lately))

    def batches(self) -> list[Batch]:
        with self._db.snapshot():
            found = self._db.all(SQL["batches"])
            states: dict[str, list[tuple[str, int]]] = {}
            for name, state, jobs in self._db.all(SQL["all_batch_states"]):
                states.setdefault(name, []).append((state, jobs))
        return [batch_of(row, states.get(row[0], ())) for row in found]

    def last_jobs(self) -> dict[str, LastJob]:
        return last_jobs_of(self._db.all(SQL["batches"]))

    def complete_batches(self) -> list[Completed]:
        due = [name for (name,) in self._db.all(SQL["batch_due"])]
        done = [completed for name in due if (completed := self._complete(name)) is not None]
        if done:
            self._ring()
        return done

    def forget_batches(self, *, before_ms: int) -> int:
        with self._db.transaction():
            return self._db.execute(SQL["forget_batches"], {"before": before_ms}).rowcount

    def forget_requests(self, *, before_ms: int, limit: int = FORGET_AT_ONCE) -> int:
        with self._db.transaction():
            return self._db.execute(SQL["forget_requests"], {"before": before_ms, "limit": limit}).rowcount

    def make_calls(self) -> int:
        if not self._db.value(SQL["has_calls"]):
            return 0
        with self._moving() as moves:
            workers = [worker(row) for row in self._db.all(SQL["workers"], {"busy": False})]
            jobs = deliveries(self._db.all(SQL["take_calls"], {"limit": AT_ONCE}), workers)
            self._add(jobs, new_job_ids(len(jobs)), moves)
        self._ring()
        return len(jobs)

    def _complete(self, name: str) -> Completed | None:
        with self._moving() as moves:
            text = self._db.value(SQL["take_batch"], {"name": name})
            # Looked at without a lock: jobs may have come, and somebody may have been faster.
            if text is None or name not in (due for (due,) in self._db.all(SQL["batch_due"])):
                return None
            now, ageing, last_seq = self._clock.now_ms(), self._ageing(), self._last_seq()
            job = completing(text, self._db.all(SQL["batch_states"], {"name": name}), batch=name)
            (job_id,) = new_job_ids(1)
            self._insert(Wave([job], [job_id], [last_seq + 1]), moves, now_ms=now, ageing=ageing)
            self._db.execute(SQL["complete_batch"], {"name": name, "now": now, "job": job_id})
        return Completed(name, job_id)
