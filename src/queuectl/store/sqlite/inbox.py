"""Where jobs come in. Apart from the rest of the store, which takes three times as long to load as this to run."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence

from queuectl import errors
from queuectl.job.newjob import NewJob
from queuectl.store.counting import OUTSIDE
from queuectl.store.entry import new_row
from queuectl.store.ids import new_job_ids
from queuectl.store.sqlite.base import SQL, SqliteBase


class SqliteInbox(SqliteBase):
    def enqueue(self, jobs: Sequence[NewJob]) -> list[str]:
        made = iter(new_job_ids(sum(job.id is None for job in jobs)))
        ids = [next(made) if job.id is None else job.id for job in jobs]
        try:
            with self._moving() as moves:
                now, ageing, last_seq = self._clock.now_ms(), self._ageing(), self._last_seq()
                numbered = zip(jobs, ids, range(last_seq + 1, last_seq + 1 + len(jobs)), strict=True)
                self._db.executemany(
                    SQL["enqueue"],
                    (new_row(job, seq=seq, job_id=id_, now_ms=now, ageing=ageing) for job, id_, seq in numbered),
                )
                tagged = ((tag, last_seq + 1 + index) for index, job in enumerate(jobs) for tag in job.tags)
                self._db.executemany(SQL["tag"], tagged)
                for queue, count in Counter(job.queue for job in jobs).items():
                    moves.add(queue, OUTSIDE, "pending", jobs=count)
        except sqlite3.IntegrityError as exc:
            taken = self._duplicate(ids)
            if taken is None:
                raise errors.StoreFailed(self._db.path, str(exc)) from exc
            raise errors.DuplicateId(taken) from exc
        self._ring()
        return ids

    def _duplicate(self, ids: Sequence[str]) -> str | None:
        """Which of these ids is taken, or given twice; None if the schema had another reason to refuse."""
        seen: set[str] = set()
        for id_ in ids:
            if id_ in seen or self._db.value("select 1 from jobs where id = ?", (id_,)):
                return id_
            seen.add(id_)
        return None
