"""Removing what has ended from PostgreSQL. See store/pruning.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Final

from queuectl.job.audit import Act
from queuectl.job.lifecycle import State
from queuectl.store.postgres.connection import LONG_SECONDS, SNAPSHOT, SQL, Question
from queuectl.store.postgres.edges import PostgresEdges
from queuectl.store.postgres.sampling import PostgresSamples, counting_out
from queuectl.store.postgres.trouble import run_again
from queuectl.store.pruning import Ended

PAGE: Final = 500


class PostgresPruning(PostgresSamples, PostgresEdges):
    def ended(
        self, state: State, *, before_ms: int, limit: int | None = None, host: str | None = None
    ) -> Iterator[Ended]:
        sql = SQL["ended_completed" if state is State.COMPLETED else "ended"]
        values = {"state": state.value, "before": before_ms, "limit": limit, "host": host}
        if limit is not None:
            (found,) = self._db.ask(Question(sql, values))
            yield from map(Ended._make, found)
            return
        with (
            closing(self._db.beside()) as db,
            db.transaction(begin=SNAPSHOT, seconds=LONG_SECONDS),
        ):
            for page in db.pages(sql, values, size=PAGE):
                yield from map(Ended._make, page)

    def ended_of(self, ids: Sequence[str], state: State, *, before_ms: int, host: str | None = None) -> list[Ended]:
        values = {"ids": list(ids), "state": state.value, "before": before_ms, "host": host}
        (found,) = self._db.ask(Question(SQL["ended_of"], values))
        return [Ended._make(row) for row in found]

    def count_ended(self, state: State, *, before_ms: int) -> int:
        question = Question(SQL["count_ended"], {"state": state.value, "before": before_ms})
        (((jobs,),),) = self._db.ask(question)
        return int(jobs)

    @run_again
    def prune(self, ids: Sequence[str], *, before_ms: int) -> dict[str, str | None]:
        self._settle_children()
        hold = Question(SQL["hold_ended"], {"ids": list(ids)})
        prune = Question(SQL["prune"], {"ids": list(ids), "before": before_ms})
        with self._db.transaction(hold, *counting_out(ids, before_ms=before_ms), prune) as (*_, rows):
            gone = dict(rows)
            self._record(Act("prune", list(gone)))
        return gone

    @run_again
    def trim(self, job_id: str, *, before_ms: int, rows: int) -> int:
        values = {"id": job_id, "before": before_ms, "rows": rows}
        trimmed = self._db.transact([Question(SQL[name], values) for name in ("trim_runs", "trim_output")])
        return sum(answer.touched for answer in trimmed)

    def shrink(self) -> bool:
        """Nothing to do: the server's autovacuum sees to it, see the settings of the tables."""
        return False
