"""The store in a SQLite file: what people and workers ask for, each one transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from queuectl import errors
from queuectl.clock import Clock
from queuectl.home import bell_file
from queuectl.job.ageing import format_ageing
from queuectl.job.lifecycle import WAITING, Event, State, states_that_take
from queuectl.job.rank import ByTime, Standing, effective_priority, rank
from queuectl.store.counting import OUTSIDE
from queuectl.store.protocol import Bell, CancelAnswer, NewWorker, Orders, StopMode
from queuectl.store.sqlite.base import SQL
from queuectl.store.sqlite.bell import PipeBell, SilentBell
from queuectl.store.sqlite.connection import MEMORY
from queuectl.store.sqlite.copying import SqliteMovable
from queuectl.store.sqlite.inbox import SqliteInbox
from queuectl.store.sqlite.runs import SqliteRuns
from queuectl.store.sqlite.schema import connect


class SqliteStore(SqliteInbox, SqliteRuns, SqliteMovable):
    def __init__(
        self, path: str, *, clock: Clock, patience: float = 30.0, on_wait: Callable[[], None] | None = None
    ) -> None:
        super().__init__(connect(path, clock=clock, patience=patience, on_wait=on_wait), clock)

    # ── jobs ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def cancel(self, job_id: str) -> CancelAnswer:
        with self._moving() as moves:
            now = self._clock.now_ms()
            seq, state, queue, worker, token, standing, _ = self._standing(job_id)
            if state in WAITING:
                shown = effective_priority(self._ageing(), standing, now_ms=now, last_seq=self._last_seq())
                self._db.execute(SQL["archive"], (seq,))
                self._db.execute(SQL["cancel_waiting"], {"seq": seq, "now": now, "effective_priority": shown})
                moves.add(queue, state, State.CANCELLED)
            elif state is State.PROCESSING:
                self._db.execute(SQL["cancel_running"], {"seq": seq, "now": now})
        self._ring()
        return CancelAnswer(state, worker, token)

    def revive(self, job_id: str, *, states: frozenset[State]) -> State:
        with self._moving() as moves:
            seq, state, queue, _, _, standing, _ = self._standing(job_id)
            if state in states and state in states_that_take(Event.REVIVE):
                place = rank(self._ageing(), standing)
                self._db.execute(SQL["revive"], {"seq": seq, "now": self._clock.now_ms(), "rank": place})
                moves.add(queue, state, State.PENDING)
        self._ring()
        return state

    def purge(self, job_id: str) -> tuple[State, str | None]:
        with self._moving() as moves:
            seq, state, queue, _, _, _, log = self._standing(job_id)
            if state is State.DEAD:
                self._db.execute(SQL["purge"], {"seq": seq})
                moves.add(queue, state, OUTSIDE)
        return state, log

    def reset(self) -> int:
        with self._moving() as moves:
            for queue, states in self.tally().items():
                for state, jobs in states.items():
                    if jobs:
                        moves.add(queue, state, OUTSIDE, jobs=jobs)
            return self._db.execute(SQL["reset_jobs"]).rowcount

    def backup(self, path: str) -> None:
        self._db.backup(path)

    # ── workers ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def register(self, worker: NewWorker) -> Bell:
        # The bell first: whoever sees the row may ring.
        try:
            bell = SilentBell() if self._db.path == MEMORY else PipeBell(bell_file(worker.home, worker.id))
        except OSError as exc:
            raise errors.HomeUnusable(worker.home, exc.strerror or str(exc)) from exc
        queues = None if worker.queues is None else json.dumps(worker.queues)
        try:
            with self._db.transaction():
                self._db.execute(SQL["register"], {**worker._asdict(), "queues": queues, "now": self._clock.now_ms()})
        except BaseException:
            bell.close()
            raise
        return bell

    def heartbeat(self, worker: str, *, slots: int, stopping: bool) -> bool:
        state = "stopping" if stopping else "running"
        with self._db.transaction():
            found = self._db.execute(
                SQL["heartbeat"], {"id": worker, "slots": slots, "state": state, "now": self._clock.now_ms()}
            )
            return found.rowcount == 1

    def orders(self, worker: str) -> Orders:
        with self._db.snapshot():
            row = self._db.one(SQL["stop_order"], {"id": worker})
            cancels = [token for (token,) in self._db.all(SQL["cancel_orders"], {"worker": worker})]
        stop = None if row is None or row[0] is None else StopMode(row[0])
        return Orders(known=row is not None, stop=stop, cancels=cancels)

    def request_stop(self, worker: str, mode: StopMode) -> bool:
        with self._db.transaction():
            found = self._db.execute(SQL["request_stop"], {"id": worker, "mode": mode}).rowcount
        self._ring()
        return found == 1

    def retire(self, worker: str) -> None:
        with self._db.transaction():
            self._db.execute(SQL["retire"], {"id": worker})

    # ── settings ────────────────────────────────────────────────────────────────────────────────────────────────────

    def set_config(self, changes: Mapping[str, str | None]) -> None:
        with self._db.transaction():
            before = self._ageing()
            for key, value in changes.items():
                if value is None:
                    self._db.execute(SQL["unset_config"], {"key": key})
                else:
                    self._db.execute(SQL["set_config"], {"key": key, "value": value})
            ageing = self._ageing()
            # By their words: kinds without a value are empty tuples, and as tuples those are all equal.
            if format_ageing(ageing) != format_ageing(before):
                step_ms = ageing.step_ms if isinstance(ageing, ByTime) else 0
                self._db.execute(SQL["rerank"], {"ageing": format_ageing(ageing), "step_ms": step_ms})
        self._ring()

    # ── within a transaction ────────────────────────────────────────────────────────────────────────────────────────

    def _standing(self, job_id: str) -> tuple[int, State, str, str | None, str | None, Standing, str | None]:
        row = self._db.one(SQL["standing"], {"id": job_id})
        if row is None:
            raise errors.JobNotFound(job_id)
        seq, state, queue, worker, token, priority, eligible_at, missed, log = row
        return seq, State(state), queue, worker, token, Standing(priority, seq, eligible_at, missed), log
