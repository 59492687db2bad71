"""The store in PostgreSQL: what people and workers ask for, each one transaction."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Final

from queuectl import errors
from queuectl.job.ageing import format_ageing
from queuectl.job.lifecycle import WAITING, Event, State, states_that_take
from queuectl.job.rank import Standing, effective_priority, rank
from queuectl.store.counting import OUTSIDE
from queuectl.store.postgres.backup import backup
from queuectl.store.postgres.base import ageing_values, read_ageing
from queuectl.store.postgres.bell import NotifyBell
from queuectl.store.postgres.connection import LONG_SECONDS, SQL, Question
from queuectl.store.postgres.copying import PostgresMovable
from queuectl.store.postgres.inbox import PostgresInbox
from queuectl.store.postgres.runs import PostgresRuns
from queuectl.store.postgres.schema import measure
from queuectl.store.postgres.trouble import run_again
from queuectl.store.protocol import CancelAnswer, NewWorker, Orders, StopMode

FOLD_FROM: Final = 500  # rows of `moves` that are worth folding
FOLD_AT_ONCE: Final = 20_000


class PostgresStore(PostgresInbox, PostgresRuns, PostgresMovable):
    _bell: NotifyBell | None = None

    # ── jobs ────────────────────────────────────────────────────────────────────────────────────────────────────────

    @run_again
    def cancel(self, job_id: str) -> CancelAnswer:
        with self._moving(Question(SQL["hold_ageing"]), ring=True) as moves:
            now = self._clock.now_ms()
            seq, state, queue, worker, token, standing, _ = self._standing(job_id)
            if state in WAITING:
                ageing, last_seq = self._db.ask(Question(SQL["ageing"]), Question(SQL["last_seq"]))
                rule = read_ageing(ageing[0][0] if ageing else None)
                shown = effective_priority(rule, standing, now_ms=now, last_seq=last_seq[0][0])
                self._db.execute(SQL["archive"], {"seq": seq})
                self._db.execute(SQL["cancel_waiting"], {"seq": seq, "now": now, "effective_priority": shown})
                moves.add(queue, state, State.CANCELLED)
            elif state is State.PROCESSING:
                self._db.execute(SQL["cancel_running"], {"seq": seq, "token": token, "now": now})
        return CancelAnswer(state, worker, token)

    @run_again
    def revive(self, job_id: str, *, states: frozenset[State]) -> State:
        with self._moving(Question(SQL["hold_ageing"]), ring=True) as moves:
            seq, state, queue, _, _, standing, _ = self._standing(job_id)
            if state in states and state in states_that_take(Event.REVIVE):
                place = rank(read_ageing(self._db.value(SQL["ageing"])), standing)
                self._db.execute(SQL["revive"], {"seq": seq, "now": self._clock.now_ms(), "rank": place})
                moves.add(queue, state, State.PENDING)
        return state

    @run_again
    def purge(self, job_id: str) -> tuple[State, str | None]:
        with self._moving() as moves:
            seq, state, queue, _, _, _, log = self._standing(job_id)
            if state is State.DEAD:
                self._db.execute(SQL["purge"], {"seq": seq})
                moves.add(queue, state, OUTSIDE)
        return state, log

    @run_again
    def reset(self) -> int:
        with self._db.transaction(seconds=LONG_SECONDS, plan_freely=True):
            return int(self._db.value(SQL["reset_jobs"]))

    def backup(self, path: str) -> None:
        """As in the protocol: a SQLite store, see backup.py."""
        backup(self._db, path, clock=self._clock)

    # ── workers ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @run_again
    def register(self, worker: NewWorker) -> NotifyBell:
        if not os.path.isdir(worker.home):
            raise errors.HomeUnusable(worker.home, "it does not exist")
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
        question = Question(SQL["request_stop"], {"id": worker, "mode": mode.value})
        (found,) = self._db.transact([question], after=self._ring())
        return found.touched == 1

    @run_again
    def retire(self, worker: str) -> None:
        self._db.transact([Question(SQL["take_worker"], {"worker": worker}), Question(SQL["retire"], {"id": worker})])

    # ── settings ────────────────────────────────────────────────────────────────────────────────────────────────────

    @run_again
    def set_config(self, changes: Mapping[str, str | None]) -> None:
        change = Question(SQL["change_ageing"])
        with self._db.transaction(change, after=self._ring(), seconds=LONG_SECONDS, plan_freely=True):
            before = read_ageing(self._db.value(SQL["ageing"]))
            for key, value in sorted(changes.items()):
                if value is None:
                    self._db.execute(SQL["unset_config"], {"key": key})
                else:
                    self._db.execute(SQL["set_config"], {"key": key, "value": value})
            ageing = read_ageing(self._db.value(SQL["ageing"]))
            if format_ageing(ageing) != format_ageing(before):
                values = ageing_values(ageing)
                self._db.execute(SQL["set_ageing"], values)
                self._db.execute(SQL["rerank"], values)

    # ── within a transaction ────────────────────────────────────────────────────────────────────────────────────────

    def _standing(self, job_id: str) -> tuple[int, State, str, str | None, str | None, Standing, str | None]:
        row = self._db.one(SQL["standing"], {"id": job_id})
        if row is None:
            raise errors.JobNotFound(job_id)
        seq, state, queue, worker, token, priority, eligible_at, missed, log = row
        return seq, State(state), queue, worker, token, Standing(priority, seq, eligible_at, missed), log
