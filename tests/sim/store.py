"""The real store on a wire that can break: every begin and every commit is an effect, and statements fail as SQLite's do."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from queuectl import errors
from queuectl.jobs.edit import JobEdit
from queuectl.jobs.model import Claim, NewJob
from queuectl.jobs.states import WAITING, State
from queuectl.store.claims import Wakeup
from queuectl.store.sqlite.claims import SqliteClaims
from queuectl.store.sqlite.store import SqliteStore
from queuectl.store.types import (
    CancelAnswer,
    ClaimRequest,
    Edited,
    End,
    Exchange,
    Ids,
    LastHeartbeat,
    NewWorker,
    OutputPiece,
    Rescued,
    Span,
    Start,
    StopMode,
)
from tests.sim.host import Host
from tests.sim.stage import AFTER_A_CLAIM, BEFORE_SETTLING, BEFORE_WRITING, Stage
from tests.sim.witness import Witness

TROUBLES = {
    "busy": (sqlite3.SQLITE_BUSY, "database is locked"),
    "full": (sqlite3.SQLITE_FULL, "database or disk is full"),
    "broken": (sqlite3.SQLITE_IOERR_WRITE, "disk I/O error"),
}


class Wire:
    """A sqlite3.Connection, as far as `Connection` uses it."""

    def __init__(self, raw: sqlite3.Connection, stage: Stage, witness: Witness, store: SimStore) -> None:
        self._raw = raw
        self.stage = stage
        self.witness = witness
        self._store = store
        self._changes = raw.total_changes

    @property
    def in_transaction(self) -> bool:
        return self._raw.in_transaction

    def execute(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
        self._before(sql)
        cursor = self._raw.execute(sql, parameters)
        self._after(sql)
        return cursor

    def executemany(self, sql: str, rows: Any) -> sqlite3.Cursor:
        self._before(sql)
        cursor = self._raw.executemany(sql, rows)
        self._after(sql)
        return cursor

    def rollback(self) -> None:
        self._raw.rollback()
        self._changes = self._raw.total_changes  # which counts what was taken back, too

    def close(self) -> None:
        self._raw.close()

    def _before(self, sql: str) -> None:
        stage = self.stage
        if sql == "commit":
            stage.effect("before a commit")
            self._strike(1.0)
        elif sql == "begin immediate":
            stage.effect(BEFORE_SETTLING if self._store.settles else BEFORE_WRITING)
            self._strike(1.0)
        else:
            stage.here()
            if stage.chances.of_the_store:
                self._strike(0.05)
            if self._raw.in_transaction and stage.random.random() < 0.02:
                stage.effect("in a transaction")

    def _after(self, sql: str) -> None:
        if self._raw.in_transaction or self._raw.total_changes == self._changes:
            return
        self._changes = self._raw.total_changes
        has_claimed = self.witness.committed(self._store)
        self.stage.effect(AFTER_A_CLAIM if has_claimed else "after a commit")

    def _strike(self, share: float) -> None:
        stage = self.stage
        for name, likely in stage.chances.of_the_store:
            if stage.random.random() < likely * share:
                stage.note(f"the database is {name}")
                code, text = TROUBLES[name]
                trouble = sqlite3.OperationalError(text)
                trouble.sqlite_errorcode = code
                raise trouble


class SimStore(SqliteStore):
    """Says which verb it is at, and what came of it."""

    def __init__(self, path: str, stage: Stage, host: Host, witness: Witness, *, patience: float) -> None:
        super().__init__(path, clock=host, patience=patience)
        self.host = host
        self.verb = ""
        self.settles = False
        self.worker = ""  # the worker it is about, or that claims
        self.asked: ClaimRequest | None = None
        self.named: frozenset[str] = frozenset()  # the jobs to be cancelled or retried
        self.since_ms = 0
        self.since_jumps = 0
        self.spares_nothing = (
            False  # its user terminates what dead workers have left running, and lets no worker adopt it
        )
        self.stage = stage
        self.witness = witness
        self.db._db = Wire(self.db._db, stage, witness, self)
        self.claims = SimClaims(self)
        tx = self.tx
        self._notify_workers = tx.notify_workers
        tx.notify_workers = self._notify

    def begin(self, verb: str, worker: str = "", asked: ClaimRequest | None = None, *, settles: bool = False) -> None:
        self.verb, self.worker, self.asked, self.named, self.settles = verb, worker, asked, frozenset(), settles
        self.since_ms, self.since_jumps = self.tx.clock.now_ms(), self.witness.jumps

    def _notify(self) -> None:
        stage = self.stage
        if stage.strikes(stage.chances.drop):
            stage.note("its wake-up is lost")
        elif stage.strikes(stage.chances.delay):
            stage.note("its wake-up is late")
            with contextlib.suppress(errors.Unavailable):  # as the real one: it is a hint
                pipes = self.db.all("select home, id from workers")
                stage.later(stage.random.random() * 3, lambda: self.witness.notify_late(pipes))
        else:
            self._notify_workers()

    def enqueue(self, jobs: Sequence[NewJob]) -> list[str]:
        self.begin("enqueue")
        ids = super().enqueue(jobs)
        self.stage.note(f"enqueued {' '.join(ids)}")
        return ids

    def cancel(self, ids: Ids) -> dict[str, CancelAnswer]:
        self.begin("cancel")
        self.named = frozenset(ids)
        return super().cancel(ids)

    def edit(
        self, ids: Ids, change: JobEdit, *, states: frozenset[State] = WAITING, as_of: int | None = None
    ) -> dict[str, Edited]:
        self.begin("edit")
        return super().edit(ids, change, states=states, as_of=as_of)

    def retry(self, ids: Ids, *, states: frozenset[State]) -> dict[str, State]:
        self.begin("retry")
        self.named = frozenset(ids)
        return super().retry(ids, states=states)

    def purge(self, ids: Ids) -> dict[str, tuple[State, str | None]]:
        self.begin("purge")
        return super().purge(ids)


class SimClaims(SqliteClaims):
    def __init__(self, store: SimStore) -> None:
        super().__init__(store.tx, store, store.dependencies)
        self._store = store

    def exchange(
        self,
        worker: str,
        *,
        starts: Sequence[Start] = (),
        outputs: Sequence[OutputPiece] = (),
        ends: Sequence[End] = (),
        claim: ClaimRequest | None = None,
    ) -> Exchange:
        self._store.begin("exchange", worker, claim, settles=bool(ends))
        done = super().exchange(worker, starts=starts, outputs=outputs, ends=ends, claim=claim)
        words = [f"settled {end.claim.id} {how.ending} ({end.claim.token})" for end, how in done.settled]
        words += [f"lost {end.claim.id} ({end.claim.token})" for end in done.lost]
        words += [f"claimed {one.id} run {one.run} ({one.token})" for one in done.claims]
        if words:
            self._store.stage.note("; ".join(words))
        return done

    def fence(self, worker: str, *, last_heartbeat: LastHeartbeat | None = None) -> list[Claim] | None:
        stage, victim = self._store.stage, self._store.witness.serving.get(worker)
        lives = victim is not None and not victim.is_gone
        if lives and victim.participant.frozen_until > stage.now and stage.random.random() < 0.3:
            # One bad moment for it to wake up: when it is known to be silent, and not fenced yet.
            stage.thaw(victim.participant, 0.0)
            stage.wait(stage.random.random())
        self._store.begin("fence", worker)
        held = super().fence(worker, last_heartbeat=last_heartbeat)
        if held is None:
            return None
        is_silent = last_heartbeat is not None and last_heartbeat.beats is not None
        self._store.witness.was_fenced(worker, [claim.token for claim in held], by=self._store, is_silent=is_silent)
        moment = stage.random.random()
        if lives and moment < 0.5:
            # The worst one: while others end what it runs.
            stage.thaw(victim.participant, stage.random.random() * stage.random.random() * 0.1)
            if moment < 0.3:  # also if there is nothing to end, which takes no time
                stage.wait(stage.random.random() * 0.1)
        elif lives and moment < 0.85:
            # And another: while others run that again.
            stage.thaw(victim.participant, 0.1 + stage.random.random() * 1.2)
        self._store.stage.note(f"fenced {worker}, which holds {' '.join(claim.id for claim in held) or 'nothing'}")
        return held

    def adopt(self, worker: str, tokens: Collection[str], *, by: str) -> list[str]:
        self._store.begin("adopt", by)
        taken = super().adopt(worker, tokens, by=by)
        self._store.stage.note(f"adopted from {worker}: {' '.join(taken) or 'nothing'}")
        return taken

    def rescue(
        self,
        worker: str,
        *,
        max_crashes: int,
        spans: Mapping[str, Span] = MappingProxyType({}),
        only: Collection[str] | None = None,
        unbegun: Collection[str] = (),
    ) -> list[Rescued]:
        self._store.begin("rescue", worker)
        taken = super().rescue(worker, max_crashes=max_crashes, spans=spans, only=only, unbegun=unbegun)
        told = " ".join(f"{lost.claim.id} ({lost.claim.token}) {lost.settlement.state}" for lost in taken)
        self._store.stage.note(f"rescued from {worker}: {told or 'nothing'}")
        return taken

    def register(self, worker: NewWorker) -> Wakeup:
        self._store.begin("register", worker.id)
        return super().register(worker)

    def heartbeat(self, worker: str, *, slots: int, stopping: bool) -> bool:
        self._store.begin("heartbeat", worker)
        return super().heartbeat(worker, slots=slots, stopping=stopping)

    def request_stop(self, worker: str, mode: StopMode) -> bool:
        self._store.begin("request_stop", worker)
        return super().request_stop(worker, mode)

    def retire(self, worker: str) -> None:
        self._store.begin("retire", worker)
        super().retire(worker)
