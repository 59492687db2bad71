"""Changes to jobs that wait in a SQLite file. See store/amending.py."""

from __future__ import annotations

import json
from collections.abc import Sequence

from queuectl.job.change import Change
from queuectl.job.lifecycle import WAITING, State
from queuectl.store.amending import Amended, amended, is_amendable, new_place, new_rules
from queuectl.store.auditing import changed
from queuectl.store.ids import Ids
from queuectl.store.rows import Subject, subject
from queuectl.store.sqlite.base import SQL, SqliteBase


class SqliteAmending(SqliteBase):
    def amend(
        self, ids: Ids, change: Change, *, states: frozenset[State] = WAITING, as_of: int | None = None
    ) -> dict[str, Amended]:
        with self._moving() as moves:
            ageing, now = self._ageing(), self._clock.now_ms()
            found = self._subjects(ids)
            chosen = [job for job in found if is_amendable(job, states, as_of)]
            places = (new_place(job, change, ageing=ageing, now_ms=now) for job in chosen)
            named = {"ids": json.dumps([job.id for job in chosen])}
            act = None if self.actor is None else changed(change, self._db.all(SQL["audit_before"], named))
            rules = {**new_rules(change), "now": now}
            self._db.executemany(SQL["amend"], [{**rules, **place._asdict()} for place in places])
            for job in chosen:
                moves.relocate(job.queue, change.queue, job.state)
            self._admit(sorted({(job.queue, job.key) for job in chosen if job.key is not None}))
            self._record(act)
        self._ring()
        return amended(found, as_of)

    def _subjects(self, ids: Sequence[str]) -> list[Subject]:
        """Within a transaction."""
        return [subject(row) for row in self._db.all(SQL["standing"], {"ids": json.dumps(ids)})]
