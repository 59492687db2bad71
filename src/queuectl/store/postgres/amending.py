"""Changes to jobs that wait in PostgreSQL. See store/amending.py."""

from __future__ import annotations

from collections.abc import Sequence

from queuectl.job.change import Change
from queuectl.job.lifecycle import WAITING, State
from queuectl.store.amending import Amended, amended, is_amendable, new_place, new_rules
from queuectl.store.auditing import changed
from queuectl.store.ids import Ids
from queuectl.store.postgres.base import PostgresBase, read_ageing
from queuectl.store.postgres.connection import SQL, Question
from queuectl.store.postgres.trouble import run_again
from queuectl.store.rows import Subject, subject


class PostgresAmending(PostgresBase):
    @run_again
    def amend(
        self, ids: Ids, change: Change, *, states: frozenset[State] = WAITING, as_of: int | None = None
    ) -> dict[str, Amended]:
        with self._moving(Question(SQL["hold_ageing"]), ring=True) as moves:
            ageing, now = read_ageing(self._db.value(SQL["ageing"])), self._clock.now_ms()
            found = self._subjects(ids)
            chosen = [job for job in found if is_amendable(job, states, as_of)]
            named = {"ids": [job.id for job in chosen]}
            act = None if self.actor is None else changed(change, self._db.all(SQL["audit_before"], named))
            places = [new_place(job, change, ageing=ageing, now_ms=now) for job in chosen]
            values = {
                "seqs": [place.seq for place in places],
                "priorities": [place.priority for place in places],
                "ranks": [place.rank for place in places],
                "eligible_ats": [place.eligible_at for place in places],
                "run_ats": [place.run_at for place in places],
                "readies": [place.ready for place in places],
                "helds": [place.held for place in places],
            }
            self._db.execute(SQL["amend"], {**new_rules(change), **values, "now": now})
            for job in chosen:
                moves.relocate(job.queue, change.queue, job.state)
            self._admit(sorted({(job.queue, job.key) for job in chosen if job.key is not None}))
            self._record(act)
        return amended(found, as_of)

    def _subjects(self, ids: Sequence[str]) -> list[Subject]:
        """Within a transaction."""
        return [subject(row) for row in self._db.all(SQL["standing"], {"ids": list(ids)})]
