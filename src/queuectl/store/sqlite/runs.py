"""Runs: beginning them, ending them, and taking them from the dead. All of it guarded by the token of the claim."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from queuectl.job.lifecycle import WAITING, Event, State, is_final
from queuectl.job.model import Claim
from queuectl.job.names import WEBHOOKS
from queuectl.job.rank import ByEnqueues, Standing, effective_priority
from queuectl.job.settle import Settlement, abandoned, cancelled
from queuectl.store import rows
from queuectl.store.auditing import refused
from queuectl.store.calling import call_rows
from queuectl.store.counting import GIVEN_BACK, REFUSED, Moves
from queuectl.store.facts import Facts, facts_of, how, ms
from queuectl.store.ids import new_tokens
from queuectl.store.limits import Limits, Room, choose, earliest, filled, keys_of, leave_room, lines_of, with_places
from queuectl.store.protocol import ClaimRequest, End, Exchange, Lost, OutputPiece, Sign, Span, Start
from queuectl.store.sqlite.base import SQL, read_ageing
from queuectl.store.sqlite.connection import Row
from queuectl.store.sqlite.edges import SqliteEdges
from queuectl.store.sqlite.queues import SqliteLimits
from queuectl.store.sqlite.reads import SqliteReads
from queuectl.store.telling import AT_ONCE, BESIDE_ENDS, NOTHING_TOLD, Moment

PROMOTE_AT_ONCE: Final = 1000
LOST: Final = "lost"


def _by_position(statement: str, *names: str) -> str:
    """The statement with numbers for its named parameters: a tuple is bound in a third of the time of a dict."""
    return re.sub(r":([a-z_]+)", lambda found: f"?{names.index(found[1]) + 1}", statement)


# The order of these names is the order of the tuples in `_claim` and `_write_end`.
CLAIM: Final = _by_position(
    SQL["claim"], "seq", "token", "worker", "host", "last_seq", "effective_priority", "log", "now"
)
SETTLE: Final = _by_position(
    SQL["settle"],
    "seq", "token", "is_cancel",
    "state", "ending", "waits", "is_due", "retry_at",
    "attempts", "crashes", "exit_code", "signal", "error",
    "started_at", "finished_at", "duration_ms", "pid", "log_from", "log_to", "usage",
    "now", "last_seq", "by_enqueues",
)  # fmt: skip


class SqliteRuns(SqliteReads, SqliteLimits, SqliteEdges):
    def exchange(
        self,
        worker: str,
        *,
        starts: Sequence[Start] = (),
        outputs: Sequence[OutputPiece] = (),
        ends: Sequence[End] = (),
        claim: ClaimRequest | None = None,
    ) -> Exchange:
        settled: list[tuple[End, Settlement]] = []
        lost: list[End] = []
        claims: list[Claim] = []
        limited: Limits = {}
        opens_at: int | None = None
        with self._moving() as moves:
            now = self._clock.now_ms()
            ((ageing, last_seq, worker_state, due_at, is_limited, is_undecided, has_edges, has_places),) = self._db.all(
                SQL["outlook"], (worker,)
            )
            is_known = worker_state is not None and worker_state != LOST
            if worker_state == LOST:
                starts, outputs, lost, ends = (), (), list(ends), ()
            at = Moment(now, last_seq, read_ageing(ageing))
            for start in starts:
                self._record_start(start, now)
            for piece in outputs:
                self._keep(piece)
            for end in ends:
                written = self._settle(end, at, moves)
                if written is None:
                    lost.append(end)
                else:
                    settled.append((end, written))
            for act, by in refused(end for end, written in settled if written.ending is None):
                self._record(act, by)
            if keys := keys_of(end.claim for end in ends):
                self._admit(keys)
            states = [written.state for _, written in settled]
            if done := sum(map(is_final, states)):
                self._db.execute(SQL["worked"], {"id": worker, "jobs": done})
            some_wait_again = not WAITING.isdisjoint(states)
            # Before the claim: what waited only for these may be taken at once.
            told = NOTHING_TOLD
            if is_undecided or (done and has_edges):
                told = self._decide(at, moves, most=BESIDE_ENDS if ends else AT_ONCE)
            some_wait_again |= told.freed
            some_came_due = due_at is not None and due_at <= now
            is_complete = True
            if some_came_due:
                promoted = self._db.execute(SQL["promote"], {"now": now, "limit": PROMOTE_AT_ONCE}).rowcount
                is_complete = promoted < PROMOTE_AT_ONCE
            if is_limited:
                limited = self._limits_now(now, moves)
            if has_places:
                limited = with_places(limited, self._placed_queues())
            # Not before all whose time has come are in: the first of the line may be among those still outside.
            if claim is not None and claim.limit + claim.calls > 0 and is_complete and is_known:
                heads, opens_at = (
                    self._heads(claim, limited, now) if limited or claim.shares else (self._head_of(claim), None)
                )
                claims = self._claim(worker, claim, at, moves, heads)
                self._note_starts(claims, limited, now)
            if some_wait_again or some_came_due:
                due_at = self._db.value(SQL["next_due"])
            due_at = earliest(due_at, opens_at)
        if some_wait_again or leave_room(limited, [end.claim for end, _ in settled], claims):
            self._ring()  # somebody else may have a slot, now or when they come due
        more, more_calls = filled(claim, claims)
        return Exchange(
            settled=settled,
            lost=lost,
            claims=claims,
            next_due_ms=None if due_at is None else max(0, due_at - now),
            more=not is_complete or more,
            more_calls=more_calls,
            undecided=told.more,
        )

    def fence(self, worker: str, *, sign: Sign | None = None) -> list[Claim] | None:
        with self._db.transaction():
            started_at, beats = sign or (None, None)
            found = self._db.execute(SQL["fence"], {"id": worker, "started_at": started_at, "beats": beats}).rowcount
            return None if sign and not found else self.running(worker)

    def adopt(self, worker: str, tokens: Collection[str], *, by: str) -> list[str]:
        with self._db.transaction():
            if self._db.value(SQL["worker_state"], (by,)) in (None, LOST):
                return []
            taken = {"worker": worker, "by": by, "tokens": json.dumps(list(tokens))}
            return [token for (token,) in self._db.all(SQL["adopt"], taken)]

    def rescue(
        self,
        worker: str,
        *,
        max_crashes: int,
        spans: Mapping[str, Span] = MappingProxyType({}),
        only: Collection[str] | None = None,
        unbegun: Collection[str] = (),
    ) -> list[Lost]:
        taken = []
        with self._moving() as moves:
            now = self._clock.now_ms()
            at = Moment(now, self._last_seq(), self._ageing())
            for claim, is_cancelled in self._running(worker):
                if only is not None and claim.token not in only:
                    continue
                settlement = abandoned(claim, max_crashes, unbegun, is_cancelled=is_cancelled)
                span = spans.get(claim.token, Span(None, None))
                self._write_end(claim, settlement, Facts(None, now, None, None, *span), at, moves)
                taken.append(Lost(claim, settlement))
            self._admit(keys_of(lost.claim for lost in taken))
            self._db.execute(SQL["retire" if only is None else "forget"], {"id": worker})
        self.try_to_settle_children()
        self._ring()
        return taken

    # ── claim ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _claim(self, worker: str, request: ClaimRequest, at: Moment, moves: Moves, heads: Sequence[Row]) -> list[Claim]:
        claims, archived, claimed = [], [], []
        for row, token in zip(heads, new_tokens(len(heads)), strict=True):
            seq, id_, runs = row[1:4]
            queue, (state, priority, eligible_at, missed, key, _, *said) = row[6], row[15:]
            log = f"{request.logs}/{id_}.log"
            standing = Standing(priority, seq, eligible_at, missed)
            shown = effective_priority(at.ageing, standing, now_ms=at.now, last_seq=at.last_seq)
            claimed.append((seq, token, worker, request.host, at.last_seq, shown, log, at.now))
            of_job = dict(zip(rows.BESIDE[1:], said, strict=True))
            claims.append(rows.claim(row[1:], token=token, run=runs + 1, log=log, key=key, **of_job))
            moves.add(queue, state, "processing")
            if runs:
                archived.append((seq,))
        if archived:
            self._db.executemany(SQL["archive"], archived)
        self._db.executemany(CLAIM, claimed)
        return claims

    def _head_of(self, request: ClaimRequest) -> list[Row]:
        """The jobs to claim, best first."""
        if request.queues is not None:
            found: list[Row] = []
            for queue in dict.fromkeys(request.queues):
                found += self._head(queue, request.limit - len(found))
            return found + self._head(WEBHOOKS, request.calls)
        queues = {row[0] for row in self._db.all(SQL["ready_queues"])}
        calls = self._head(WEBHOOKS, request.calls) if WEBHOOKS in queues else []
        queues.discard(WEBHOOKS)
        # Rank and seq come first in a row, and no two rows share a seq: nothing behind them is ever compared.
        return sorted(row for queue in queues for row in self._head(queue, request.limit))[: request.limit] + calls

    def _heads(self, request: ClaimRequest, limited: Limits, now: int) -> tuple[list[Row], int | None]:
        """The same where queues are limited, or served by weight; and when a rate lets the next one start."""
        lines, opens_at = [], None
        asked = lines_of(request, lambda: [row[0] for row in self._db.all(SQL["ready_queues"])])
        for queue, limit in asked:
            rule = limited.get(queue)
            room = Room(limit) if rule is None else self._room(rule, most=limit, now=now)
            if rule is None or not rule.is_by_key:
                lines.append(self._head(queue, room.places))
            else:
                line, may_be_more = self._keyed_head(queue, room.places, rule.per_key)
                lines.append(line)
                if may_be_more:
                    opens_at = now
            # One that has no more than it may give does not wait for its rate.
            if room.opens_at is not None and (len(lines[-1]) == room.places):
                opens_at = earliest(opens_at, room.opens_at)
        calls = lines.pop() if request.calls else []
        chosen = choose(lines, limit=request.limit, shares=request.shares, in_one_order=request.queues is None)
        return chosen + calls, opens_at

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
                "started_at": now - ms(start.age),
            },
        )

    def _keep(self, piece: OutputPiece) -> None:
        of_run = {"seq": piece.claim.seq, "token": piece.claim.token}
        if piece.keep_from > 0:
            self._db.execute(SQL["drop_output"], {**of_run, "keep_from": piece.keep_from})
        self._db.execute(SQL["add_output"], {**of_run, "at": piece.at, "data": piece.data})

    def _settle(self, end: End, at: Moment, moves: Moves) -> Settlement | None:
        """Write an end; None if the job has passed to somebody else."""
        facts = facts_of(end, now=at.now)
        if self._write_end(end.claim, end.settlement, facts, at, moves):
            return end.settlement
        wish = self._db.value(SQL["is_cancelled"], {"seq": end.claim.seq, "token": end.claim.token})
        if not wish:
            return None
        called_off = cancelled(end.claim, how(end.settlement))
        self._write_end(end.claim, called_off, facts, at, moves)
        return called_off

    def _write_end(self, claim: Claim, settlement: Settlement, facts: Facts, at: Moment, moves: Moves) -> bool:
        # As plain text and numbers: sqlite3 looks for a way to adapt anything else, half a microsecond each.
        state, ending = str(settlement.state), None if settlement.ending is None else str(settlement.ending)
        waits, retry_in = settlement.state in WAITING, settlement.retry_in_ms
        retry_at = at.now + retry_in if settlement.state is State.FAILED else None
        parameters = (
            claim.seq, claim.token, int(settlement.event is Event.CANCEL),
            state, ending, int(waits), int(waits and retry_in == 0), retry_at,
            settlement.attempts, settlement.crashes, settlement.exit_code, settlement.signal, settlement.error,
            facts.started_at, facts.finished_at, facts.duration_ms, facts.pid, facts.log_from, facts.log_to, facts.usage,
            at.now, at.last_seq, int(isinstance(at.ageing, ByEnqueues)),
        )  # fmt: skip
        # Counted and not returned: for `returning` SQLite fills a temporary table, a quarter of the statement's time.
        if self._db.execute(SETTLE, parameters).rowcount == 0:
            return False
        if ending is None:
            ending = GIVEN_BACK if settlement.is_given_back else REFUSED
            for name in ("unclaim", "drop_earlier") if settlement.is_given_back else ("unrun",):
                self._db.execute(SQL[name], {"seq": claim.seq})
        moves.add(claim.queue, "processing", state, ending=ending)
        if claim.hooks:
            self._db.executemany(SQL["note_call"], call_rows(claim, settlement, now_ms=at.now))
        return True
