"""Runs: beginning them, ending them, and taking them from the dead. All of it guarded by the token of the claim."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from queuectl.job.lifecycle import WAITING, Event, is_final
from queuectl.job.model import Claim
from queuectl.job.outcome import Exited, Signalled
from queuectl.job.rank import Ageing, ByEnqueues, Standing, effective_priority
from queuectl.job.settle import Settlement, cancelled, lose
from queuectl.store import rows
from queuectl.store.ids import new_token
from queuectl.store.protocol import ClaimRequest, End, Exchange, Lost, Span, Start
from queuectl.store.sqlite.base import SQL
from queuectl.store.sqlite.connection import Row
from queuectl.store.sqlite.reads import SqliteReads

PROMOTE_AT_ONCE: Final = 1000


class SqliteRuns(SqliteReads):
    def exchange(
        self, worker: str, *, starts: Sequence[Start] = (), ends: Sequence[End] = (), claim: ClaimRequest | None = None
    ) -> Exchange:
        settled: list[tuple[End, Settlement]] = []
        lost: list[End] = []
        claims: list[Claim] = []
        with self._db.transaction():
            now = self._clock.now_ms()
            ageing, last_seq = self._ageing(), self._last_seq()
            for start in starts:
                self._record_start(start, now)
            for end in ends:
                written = self._settle(end, now=now, last_seq=last_seq, ageing=ageing)
                if written is None:
                    lost.append(end)
                else:
                    settled.append((end, written))
            if done := sum(is_final(written.state) for _, written in settled):
                self._db.execute(SQL["worked"], {"id": worker, "jobs": done})
            promoted = self._db.execute(SQL["promote"], {"now": now, "limit": PROMOTE_AT_ONCE}).rowcount
            # Not before all whose time has come are in: the first of the line may be among those still outside.
            is_complete = promoted < PROMOTE_AT_ONCE
            if claim is not None and claim.limit > 0 and is_complete and self._is_known(worker):
                claims = self._claim(worker, claim, now=now, last_seq=last_seq, ageing=ageing)
            due_at = self._db.value(SQL["next_due"])
        if any(written.state in WAITING for _, written in settled):
            self._ring()  # they wait again: somebody else may have a slot, now or when they come due
        return Exchange(
            settled=settled,
            lost=lost,
            claims=claims,
            next_due_ms=None if due_at is None else max(0, due_at - now),
            more=not is_complete or (claim is not None and 0 < claim.limit == len(claims)),
        )

    def rescue(self, worker: str, *, max_crashes: int, spans: Mapping[str, Span] = MappingProxyType({})) -> list[Lost]:
        taken = []
        with self._db.transaction():
            now = self._clock.now_ms()
            ageing, last_seq = self._ageing(), self._last_seq()
            for claim, is_cancelled in self._running(worker):
                settlement = cancelled(claim, None) if is_cancelled else lose(claim, max_crashes)
                span = spans.get(claim.token, Span(None, None))
                facts = {"started_at": None, "finished_at": now, "duration_ms": None, "pid": None, **span._asdict()}
                self._write_end(claim, settlement, facts, now=now, last_seq=last_seq, ageing=ageing)
                taken.append(Lost(claim, settlement))
            self._db.execute(SQL["retire"], {"id": worker})
        self._ring()
        return taken

    # ── claim ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _claim(self, worker: str, request: ClaimRequest, *, now: int, last_seq: int, ageing: Ageing) -> list[Claim]:
        claims = []
        for row in self._heads(request):
            seq, id_, runs = row[1:4]
            priority, eligible_at, missed = row[15:]
            token = new_token()
            log = f"{request.logs}/{id_}.log"
            standing = Standing(priority, seq, eligible_at, missed)
            self._db.execute(
                SQL["claim"],
                {
                    "seq": seq,
                    "token": token,
                    "worker": worker,
                    "host": request.host,
                    "last_seq": last_seq,
                    "effective_priority": effective_priority(ageing, standing, now_ms=now, last_seq=last_seq),
                    "log": log,
                    "now": now,
                },
            )
            claims.append(rows.claim(row[1:], token=token, run=runs + 1, log=log))
        return claims

    def _is_known(self, worker: str) -> bool:
        return self._db.one(SQL["stop_order"], {"id": worker}) is not None

    def _heads(self, request: ClaimRequest) -> list[Row]:
        """The jobs to claim, best first."""
        if request.queues is not None:
            found: list[Row] = []
            for queue in dict.fromkeys(request.queues):
                found += self._head(queue, request.limit - len(found))
            return found
        queues = [row[0] for row in self._db.all(SQL["ready_queues"])]
        heads = (self._head(queue, request.limit) for queue in queues)
        # Rank and seq come first in a row, and no two rows share a seq: nothing behind them is ever compared.
        return _first(heapq.merge(*heads), request.limit)

    def _head(self, queue: str, limit: int) -> list[Row]:
        return self._db.all(SQL["ready"], {"queue": queue, "limit": limit}) if limit > 0 else []

    # ── start and settle ────────────────────────────────────────────────────────────────────────────────────────────

    def _record_start(self, start: Start, now: int) -> None:
        self._db.execute(
            SQL["start"],
            {
                "seq": start.claim.seq,
                "token": start.claim.token,
                "pid": start.pid,
                "log_from": start.log_from,
                "started_at": now - _ms(start.age),
            },
        )

    def _settle(self, end: End, *, now: int, last_seq: int, ageing: Ageing) -> Settlement | None:
        """Write an end; None if the job has passed to somebody else."""
        started_at = now - _ms(end.age)
        facts = {
            "started_at": started_at,
            "finished_at": started_at + _ms(end.duration),
            "duration_ms": _ms(end.duration),
            "pid": end.pid,
            "log_from": end.log_from,
            "log_to": end.log_to,
        }
        context: dict[str, Any] = {"now": now, "last_seq": last_seq, "ageing": ageing}
        if self._write_end(end.claim, end.settlement, facts, **context):
            return end.settlement
        wish = self._db.value(SQL["is_cancelled"], {"seq": end.claim.seq, "token": end.claim.token})
        if not wish:
            return None
        called_off = cancelled(end.claim, _how(end.settlement))
        self._write_end(end.claim, called_off, facts, **context)
        return called_off

    def _write_end(
        self,
        claim: Claim,
        settlement: Settlement,
        facts: Mapping[str, int | None],
        *,
        now: int,
        last_seq: int,
        ageing: Ageing,
    ) -> bool:
        # Of both statements: each takes what it names.
        parameters = {
            **facts,
            "seq": claim.seq,
            "token": claim.token,
            "cancelled": settlement.event is Event.CANCEL,
            "state": settlement.state,
            "ending": settlement.ending,
            "attempts": settlement.attempts,
            "crashes": settlement.crashes,
            "retry_in": settlement.retry_in_ms,
            "exit_code": settlement.exit_code,
            "signal": settlement.signal,
            "error": settlement.error,
            "by_enqueues": isinstance(ageing, ByEnqueues),
            "last_seq": last_seq,
            "now": now,
        }
        # Counted and not returned: for `returning` SQLite fills a temporary table, a quarter of the statement's time.
        if self._db.execute(SQL["settle"], parameters).rowcount == 0:
            return False
        self._db.execute(SQL["add_run"], parameters)
        return True


def _first(found: Iterable[Row], limit: int) -> list[Row]:
    return [row for _, row in zip(range(limit), found, strict=False)]


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _how(settlement: Settlement) -> Exited | Signalled | None:
    if settlement.signal is not None:
        return Signalled(settlement.signal)
    return None if settlement.exit_code is None else Exited(settlement.exit_code)
