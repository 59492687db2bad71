"""The store in PostgreSQL: what people and workers ask for, each one transaction."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Final

from queuectl import errors
from queuectl.job.audit import Act
from queuectl.job.lifecycle import WAITING, Event, State, is_final, states_that_take
from queuectl.job.rank import rank
from queuectl.store.auditing import configured, of_states
from queuectl.store.ids import Ids
from queuectl.store.postgres.alerting import PostgresAlerts
from queuectl.store.postgres.amending import PostgresAmending
from queuectl.store.postgres.auditing import PostgresAudit
from queuectl.store.postgres.backup import backup
from queuectl.store.postgres.base import read_ageing
from queuectl.store.postgres.batches import PostgresBatches
from queuectl.store.postgres.bell import NotifyBell
from queuectl.store.postgres.connection import LONG_SECONDS, SQL, Question
from queuectl.store.postgres.copying import PostgresMovable
from queuectl.store.postgres.fencing import name_of
from queuectl.store.postgres.insight import asking_rights, refuse_lack
from queuectl.store.postgres.porting import PostgresPorting
from queuectl.store.postgres.pruning import PostgresPruning
from queuectl.store.postgres.queues import PostgresQueueRules
from queuectl.store.postgres.runs import PostgresRuns
from queuectl.store.postgres.sampling import counting_out
from queuectl.store.postgres.scheduling import PostgresSchedules
from queuectl.store.postgres.schema import measure
from queuectl.store.postgres.trouble import run_again
from queuectl.store.postgres.unique import call_off, holders_of
from queuectl.store.protocol import CancelAnswer, NewWorker, Orders, Revived, StopMode
from queuectl.store.sampling import EVER
from queuectl.store.unique import free_to_revive, keys_of

FOLD_FROM: Final = 500  # rows of `moves` that are worth folding
FOLD_AT_ONCE: Final = 20_000


class _Awaited(Exception):  # not an error: the reason to try again
    """A job that is to be removed has children that have not been told what became of it."""


class PostgresStore(
    PostgresBatches,
    PostgresSchedules,
    PostgresAlerts,
    PostgresRuns,
    PostgresPorting,
    PostgresMovable,
    PostgresPruning,
    PostgresQueueRules,
    PostgresAmending,
    PostgresAudit,
):
    _bell: NotifyBell | None = None

    # ── jobs ────────────────────────────────────────────────────────────────────────────────────────────────────────

    @run_again
    def cancel(self, ids: Ids) -> dict[str, CancelAnswer]:
        with self._moving(Question(SQL["hold_ageing"]), ring=True) as moves:
            now, found = self._clock.now_ms(), self._subjects(ids)
            stored, ((last_seq,),) = self._db.ask(Question(SQL["ageing"]), Question(SQL["last_seq"]))
            ageing = read_ageing(stored[0][0] if stored else None)
            waiting = [job for job in found if job.state in WAITING]
            running = (job for job in found if job.state is State.PROCESSING)
            wishes = [{"seq": job.seq, "token": job.token, "now": now} for job in running]
            call_off(self._db, waiting, moves, now_ms=now, ageing=ageing, last_seq=last_seq, error="cancelled")
            self._db.executemany(SQL["cancel_running"], wishes)
            self._record(of_states("cancel", (job for job in found if not is_final(job.state))))
        self.try_to_settle_children()
        return {job.id: CancelAnswer(job.state, job.worker, job.token) for job in found}

    @run_again
    def revive(self, ids: Ids, *, states: frozenset[State]) -> Revived:
        able = states.intersection(states_that_take(Event.REVIVE))
        keys = Question(SQL["take_keys_of"], {"ids": list(ids)})
        with self._moving(Question(SQL["hold_ageing"]), keys, ring=True) as moves:
            ageing, now = read_ageing(self._db.value(SQL["ageing"])), self._clock.now_ms()
            found = self._subjects(ids)
            able_jobs = [job for job in found if job.state in able]
            chosen, taken = free_to_revive(able_jobs, holders_of(self._db, keys_of(able_jobs)))
            # What one of them had called off comes back with it, and waits for it again.
            called_off = self._db.all(SQL["called_off_by"], {"seqs": [job.seq for job in chosen]})
            chosen = [job for job in chosen if (job.seq,) not in called_off]
            for job in chosen:
                moves.add(job.queue, job.state, State.PENDING)
            seqs, ranks = [job.seq for job in chosen], [rank(ageing, job.standing) for job in chosen]
            self._db.execute(SQL["revive"], {"seqs": seqs, "ranks": ranks, "now": now})
            self._record(of_states("retry", chosen))
        self.try_to_settle_children()
        revived = Revived((job.id, job.state) for job in found)
        revived.taken = taken
        return revived

    @run_again
    def purge(self, ids: Ids) -> dict[str, tuple[State, str | None]]:
        while True:
            self._settle_children()
            try:
                return self._purge(ids)
            except _Awaited:
                continue  # somebody has just come to wait for one of them

    def _purge(self, ids: Ids) -> dict[str, tuple[State, str | None]]:
        with self._db.transaction():
            found = self._subjects(ids)
            dead = [job for job in found if job.state is State.DEAD]
            if self._db.value(SQL["is_awaited"], {"seqs": [job.seq for job in dead]}):
                raise _Awaited
            self._db.execute(SQL["prune"], {"ids": [job.id for job in dead], "before": EVER})
            self._record(of_states("dlq purge", dead))
        return {job.id: (job.state, job.log) for job in found}

    @run_again
    def reset(self) -> int:
        with self._db.transaction(*counting_out(None, before_ms=EVER), seconds=LONG_SECONDS, plan_freely=True):
            removed = int(self._db.value(SQL["reset_jobs"]))
            self._record(Act("reset", ["jobs"], before={"jobs": removed}))
            return removed

    def backup(self, path: str) -> None:
        """As in the protocol: a SQLite store, see backup.py."""
        backup(self._db, path, clock=self._clock)

    # ── workers ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @run_again
    def register(self, worker: NewWorker) -> NotifyBell:
        if not os.path.isdir(worker.home):
            raise errors.HomeUnusable(worker.home, "it does not exist")
        SQL.read_all()
        # One that lacks a right would run jobs whose ends it cannot write, as after an upgrade whose tables nobody has granted.
        (tables,) = self._db.ask(asking_rights())
        refuse_lack(tables, self._db.shown)
        self._db.name = name_of(worker.id)
        # The bell first: whoever sees the row may ring.
        bell = NotifyBell(self._db)
        queues = None if worker.queues is None else json.dumps(worker.queues)
        values = {**worker._asdict(), "queues": queues, "now": self._clock.now_ms()}
        try:
            self._db.transact([Question(SQL["take_worker"], {"worker": worker.id}), Question(SQL["register"], values)])
        except BaseException:
            bell.close()
            raise
        self._bell = bell
        return bell

    @run_again
    def heartbeat(self, worker: str, *, slots: int, stopping: bool) -> bool:
        """As in the protocol; also the moment to set our clock, to mend the bell and to fold what was counted."""
        state = "stopping" if stopping else "running"
        values = {"id": worker, "slots": slots, "state": state, "now": self._clock.now_ms()}
        fold = Question(SQL["fold"], {"many": FOLD_FROM, "limit": FOLD_AT_ONCE})
        found, _ = self._db.transact([Question(SQL["heartbeat"], values), fold])
        measure(self._db)
        if self._bell is not None:
            self._bell.mend()
        return found.touched == 1

    def orders(self, worker: str) -> Orders:
        found, cancels = self._db.ask(
            Question(SQL["stop_order"], {"id": worker}), Question(SQL["cancel_orders"], {"worker": worker})
        )
        stop = StopMode(found[0][0]) if found and found[0][0] is not None else None
        return Orders(known=bool(found), stop=stop, cancels=[token for (token,) in cancels])

    @run_again
    def request_stop(self, worker: str, mode: StopMode) -> bool:
        with self._db.transaction(after=self._ring()):
            found = self._db.execute(SQL["request_stop"], {"id": worker, "mode": mode.value})
            self._record(Act("worker stop", [worker] if found else [], after={"mode": mode.value}))
        return found == 1

    @run_again
    def retire(self, worker: str) -> None:
        self._db.transact([Question(SQL["take_worker"], {"worker": worker}), Question(SQL["retire"], {"id": worker})])

    # ── settings ────────────────────────────────────────────────────────────────────────────────────────────────────

    @run_again
    def set_config(self, changes: Mapping[str, str | None]) -> None:
        change = Question(SQL["change_ageing"])
        with self._db.transaction(change, after=self._ring(), seconds=LONG_SECONDS, plan_freely=True):
            act = configured(dict(self._db.all(SQL["config"])), changes)
            self._write_config(changes)
            self._record(act)
