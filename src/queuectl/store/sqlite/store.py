"""The store in a SQLite file: what people and workers ask for, each one transaction."""

from __future__ import annotations

import json
from collections.abc import Mapping

from queuectl import errors
from queuectl.clock import Clock
from queuectl.home import bell_file
from queuectl.job.audit import Act
from queuectl.job.lifecycle import WAITING, Event, State, is_final, states_that_take
from queuectl.job.rank import rank
from queuectl.store.auditing import configured, of_states
from queuectl.store.counting import OUTSIDE
from queuectl.store.ids import Ids
from queuectl.store.protocol import Bell, CancelAnswer, NewWorker, Orders, Revived, StopMode
from queuectl.store.sqlite.alerting import SqliteAlerts
from queuectl.store.sqlite.amending import SqliteAmending
from queuectl.store.sqlite.auditing import SqliteAudit
from queuectl.store.sqlite.base import SQL
from queuectl.store.sqlite.batches import SqliteBatches
from queuectl.store.sqlite.bell import PipeBell, SilentBell
from queuectl.store.sqlite.connection import MEMORY, OnWait
from queuectl.store.sqlite.copying import SqliteMovable
from queuectl.store.sqlite.porting import SqlitePorting
from queuectl.store.sqlite.pruning import SqlitePruning
from queuectl.store.sqlite.queues import SqliteQueueRules
from queuectl.store.sqlite.runs import SqliteRuns
from queuectl.store.sqlite.scheduling import SqliteSchedules
from queuectl.store.sqlite.schema import connect
from queuectl.store.sqlite.unique import call_off, held
from queuectl.store.unique import free_to_revive, keys_of


class SqliteStore(
    SqliteBatches,
    SqliteSchedules,
    SqliteAlerts,
    SqliteRuns,
    SqlitePorting,
    SqliteMovable,
    SqlitePruning,
    SqliteQueueRules,
    SqliteAmending,
    SqliteAudit,
):
    def __init__(self, path: str, *, clock: Clock, patience: float = 30.0, on_wait: OnWait | None = None) -> None:
        super().__init__(connect(path, clock=clock, patience=patience, on_wait=on_wait), clock)

    # ── jobs ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def cancel(self, ids: Ids) -> dict[str, CancelAnswer]:
        with self._moving() as moves:
            now, found = self._clock.now_ms(), self._subjects(ids)
            waiting = [job for job in found if job.state in WAITING]
            running = [{"seq": job.seq, "now": now} for job in found if job.state is State.PROCESSING]
            ageing, last_seq = self._ageing(), self._last_seq()
            call_off(self._db, waiting, moves, now_ms=now, ageing=ageing, last_seq=last_seq, error="cancelled")
            self._db.executemany(SQL["cancel_running"], running)
            self._record(of_states("cancel", (job for job in found if not is_final(job.state))))
        self.try_to_settle_children()
        self._ring()
        return {job.id: CancelAnswer(job.state, job.worker, job.token) for job in found}

    def revive(self, ids: Ids, *, states: frozenset[State]) -> Revived:
        able = states.intersection(states_that_take(Event.REVIVE))
        with self._moving() as moves:
            ageing, now = self._ageing(), self._clock.now_ms()
            found = self._subjects(ids)
            able_jobs = [job for job in found if job.state in able]
            chosen, taken = free_to_revive(able_jobs, held(self._db, keys_of(able_jobs)))
            # What one of them had called off comes back with it, and waits for it again.
            seqs = json.dumps([job.seq for job in chosen])
            follows = {seq for (seq,) in self._db.all(SQL["called_off_by"], {"seqs": seqs})}
            chosen = [job for job in chosen if job.seq not in follows]
            for job in chosen:
                moves.add(job.queue, job.state, State.PENDING)
            rows = [{"seq": job.seq, "now": now, "rank": rank(ageing, job.standing)} for job in chosen]
            self._db.executemany(SQL["revive"], rows)
            self._record(of_states("retry", chosen))
        self.try_to_settle_children()
        self._ring()
        revived = Revived((job.id, job.state) for job in found)
        revived.taken = taken
        return revived

    def purge(self, ids: Ids) -> dict[str, tuple[State, str | None]]:
        self._settle_children()
        with self._moving() as moves:
            found = self._subjects(ids)
            dead = [job for job in found if job.state is State.DEAD]
            for job in dead:
                moves.add(job.queue, job.state, OUTSIDE)
            self._db.executemany(SQL["purge"], [(job.seq,) for job in dead])
            self._record(of_states("dlq purge", dead))
        return {job.id: (job.state, job.log) for job in found}

    def reset(self) -> int:
        with self._moving() as moves:
            for queue, states in self.tally().items():
                for state, jobs in states.items():
                    if jobs:
                        moves.add(queue, state, OUTSIDE, jobs=jobs)
            self._count_out()
            self._db.execute("delete from batches")
            self._db.execute("delete from calls")
            removed = self._db.execute(SQL["reset_jobs"]).rowcount
            self._record(Act("reset", ["jobs"], before={"jobs": removed}))
            return removed

    def backup(self, path: str) -> None:
        self._db.backup(path)

    # ── workers ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def register(self, worker: NewWorker) -> Bell:
        SQL.read_all()
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
            self._record(Act("worker stop", [worker] if found else [], after={"mode": mode.value}))
        self._ring()
        return found == 1

    def retire(self, worker: str) -> None:
        with self._db.transaction():
            self._db.execute(SQL["retire"], {"id": worker})

    # ── settings ────────────────────────────────────────────────────────────────────────────────────────────────────

    def set_config(self, changes: Mapping[str, str | None]) -> None:
        with self._db.transaction():
            act = configured(self.config(), changes)
            self._write_config(changes)
            self._record(act)
        self._ring()
