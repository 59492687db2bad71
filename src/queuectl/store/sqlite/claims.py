"""Claims and runs in SQLite: claim, start, settle, fence, adopt and rescue. The token of the claim guards every write about a run."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from queuectl import errors
from queuectl.jobs.model import Claim
from queuectl.jobs.outcome import Settlement, settle_abandoned
from queuectl.jobs.priority import ByEnqueues, Standing, effective_priority
from queuectl.jobs.states import WAITING, Event, is_final
from queuectl.paths import wakeup_file
from queuectl.store import rows
from queuectl.store.admission import (
    LimitedQueues,
    Limits,
    claimed_keys,
    earliest,
    filled,
    frees_slots,
    queues_of,
    with_key_limits,
)
from queuectl.store.audit import refused
from queuectl.store.claims import Claims, Wakeup
from queuectl.store.dependencies import MAX_CHILDREN_PER_STEP, MAX_CHILDREN_WITH_ENDS, NOTHING_RESOLVED, Moment
from queuectl.store.enqueue import new_tokens
from queuectl.store.reads import Reads
from queuectl.store.sqlite.connection import MEMORY, SQL, SqliteTransactions
from queuectl.store.sqlite.dependencies import SqliteResolver
from queuectl.store.sqlite.wakeup import NoWakeup, PipeWakeup
from queuectl.store.transactions import GIVEN_BACK, REFUSED, Transitions, read_ageing
from queuectl.store.types import (
    ClaimRequest,
    End,
    Exchange,
    LastHeartbeat,
    NewWorker,
    OutputPiece,
    Rescued,
    Row,
    Span,
    Start,
)
from queuectl.store.webhook_outbox import outbox_rows
from queuectl.text import WEBHOOK_QUEUE

MAX_PROMOTED: Final = 1000  # jobs that one exchange promotes
LOST: Final = "lost"


def _by_position(statement: str, *names: str) -> str:
    """The statement with numbered parameters: binding a tuple takes a third of the time of a dict."""
    return re.sub(r":([a-z_]+)", lambda found: f"?{names.index(found[1]) + 1}", statement)


# The order of these names is the order of the tuples in `_claim` and `_write_end`.
CLAIM: Final = _by_position(SQL["claim"], "seq", "token", "worker", "host", "last_seq", "effective_priority", "now")
SETTLE: Final = _by_position(
    SQL["settle"], *rows.Settled._fields, *rows.RunResult._fields, "now", "last_seq", "by_enqueues"
)


class SqliteLimitedQueues(LimitedQueues):
    """The write lock excludes other claims."""

    key_at = 19

    def read_heads(self, slots: Mapping[str, int]) -> dict[str, list[Row]]:
        return {
            queue: self._tx.all("ready", {"queue": queue, "limit": limit}) if limit > 0 else []
            for queue, limit in slots.items()
        }

    def running(self, queue: str, keys: Sequence[str]) -> Mapping[str, int]:
        return {key: self._tx.value("running_of_key", {"queue": queue, "key": key}) for key in keys}

    def page_size(self, missing: int, blocked: int) -> int:
        return missing + min(blocked, 100)  # rows contain whole jobs


class SqliteClaims(Claims):
    _tx: SqliteTransactions

    def __init__(self, tx: SqliteTransactions, reads: Reads, resolver: SqliteResolver) -> None:
        super().__init__(tx)
        self._db = tx.db
        self._reads = reads
        self._resolver = resolver
        self._limited = SqliteLimitedQueues(tx)

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
        with self._tx.write() as transitions:
            now = self._tx.clock.now_ms()
            ((ageing, last_seq, worker_state, due_at, is_limited, is_undecided, has_edges, has_key_limits),) = (
                self._db.all(SQL["outlook"], (worker,))
            )
            is_known = worker_state is not None and worker_state != LOST
            if worker_state == LOST:
                starts, outputs, lost, ends = (), (), list(ends), ()
            at = Moment(now, last_seq, read_ageing(ageing))
            for start in starts:
                self._db.execute(SQL["start"], rows.started(start, now=now))
            for piece in outputs:
                self._store_output(piece)
            for end in ends:
                written = self._settle(end, at, transitions)
                if written is None:
                    lost.append(end)
                else:
                    settled.append((end, written))
            for act, by in refused(end for end, written in settled if written.ending is None):
                self._tx.record(act, by)
            if keys := claimed_keys(end.claim for end in ends):
                self._tx.admit(keys)
            states = [written.state for _, written in settled]
            if done := sum(map(is_final, states)):
                self._db.execute(SQL["worked"], {"id": worker, "jobs": done})
            some_wait_again = not WAITING.isdisjoint(states)
            # Before the claim: jobs that waited only for these may be claimed at once.
            resolved = NOTHING_RESOLVED
            if is_undecided or (done and has_edges):
                most = MAX_CHILDREN_WITH_ENDS if ends else MAX_CHILDREN_PER_STEP
                resolved = self._resolver.resolve_some(at, transitions, most=most)
            some_wait_again |= resolved.freed
            some_came_due = due_at is not None and due_at <= now
            is_complete = True
            if some_came_due:
                promoted = self._db.execute(SQL["promote"], {"now": now, "limit": MAX_PROMOTED})
                is_complete = promoted < MAX_PROMOTED
            if is_limited:
                # Including what this transaction has done.
                limited = {
                    queue: one._replace(running=one.running + transitions.net(queue, "processing"))
                    for queue, one in self._limited.limits(now).items()
                }
            if has_key_limits:
                limited = with_key_limits(limited, [queue for (queue,) in self._db.all(SQL["queues_with_key_limits"])])
            # Only after all due jobs are promoted: the first in order may be among the rest.
            if claim is not None and claim.limit + claim.webhooks > 0 and is_complete and is_known:
                if limited or claim.shares:
                    queues = queues_of(claim, lambda: [row[0] for row in self._db.all(SQL["ready_queues"])])
                    heads, opens_at = self._limited.choose(claim, queues, limited, now=now)
                else:
                    heads = self._head_of(claim)
                claims = self._claim(worker, claim, at, transitions, heads)
                self._limited.note_starts(claims, limited, now)
            if some_wait_again or some_came_due:
                due_at = self._db.value(SQL["next_due"])
            due_at = earliest(due_at, opens_at)
        if some_wait_again or frees_slots(limited, [end.claim for end, _ in settled], claims):
            self._tx.notify_workers()  # other workers may have a free slot, now or when the jobs come due
        more, more_webhooks = filled(claim, claims)
        return Exchange(
            settled=settled,
            lost=lost,
            claims=claims,
            next_due_ms=None if due_at is None else max(0, due_at - now),
            more=not is_complete or more,
            more_webhooks=more_webhooks,
            undecided=resolved.more,
        )

    def fence(self, worker: str, *, last_heartbeat: LastHeartbeat | None = None) -> list[Claim] | None:
        with self._db.transaction():
            started_at, beats = last_heartbeat or (None, None)
            found = self._db.execute(SQL["fence"], {"id": worker, "started_at": started_at, "beats": beats})
            return None if last_heartbeat and not found else self._reads.running(worker)

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
    ) -> list[Rescued]:
        rescued = []
        with self._tx.write() as transitions:
            now = self._tx.clock.now_ms()
            at = Moment(now, self._tx.last_seq(), self._tx.ageing())
            for claim, is_cancelled in self._reads.running_claims(worker):
                if only is not None and claim.token not in only:
                    continue
                settlement = settle_abandoned(claim, max_crashes, unbegun, is_cancelled=is_cancelled)
                span = spans.get(claim.token, Span(None, None))
                self._write_end(claim, settlement, rows.lost_result(claim, span, now=now), at, transitions)
                rescued.append(Rescued(claim, settlement))
            self._tx.admit(claimed_keys(one.claim for one in rescued))
            self._db.execute(SQL["retire" if only is None else "forget"], {"id": worker})
        self._resolver.try_to_resolve_all()
        self._tx.notify_workers()
        return rescued

    # ── claim ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _claim(
        self, worker: str, request: ClaimRequest, at: Moment, transitions: Transitions, heads: Sequence[Row]
    ) -> list[Claim]:
        claims, archived, claimed = [], [], []
        for row, token in zip(heads, new_tokens(len(heads)), strict=True):
            seq, id_, runs = row[1:4]
            queue, (state, priority, eligible_at, missed, key, _, *rest) = row[6], row[15:]
            log = f"{request.logs}/{id_}.log"
            standing = Standing(priority, seq, eligible_at, missed)
            shown = effective_priority(at.ageing, standing, now_ms=at.now, last_seq=at.last_seq)
            claimed.append((seq, token, worker, request.host, at.last_seq, shown, at.now))
            of_job = dict(zip(rows.CLAIM_FIELDS[1:], rest, strict=True))
            claims.append(rows.claim(row[1:], token=token, run=runs + 1, log=log, key=key, **of_job))
            transitions.add(queue, state, "processing")
            if runs:
                archived.append({"seq": seq})
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
            return found + self._head(WEBHOOK_QUEUE, request.webhooks)
        queues = {row[0] for row in self._db.all(SQL["ready_queues"])}
        webhooks = self._head(WEBHOOK_QUEUE, request.webhooks) if WEBHOOK_QUEUE in queues else []
        queues.discard(WEBHOOK_QUEUE)
        # Rows begin with rank and seq, and no two share a seq, so no later column is ever compared.
        return sorted(row for queue in queues for row in self._head(queue, request.limit))[: request.limit] + webhooks

    def _head(self, queue: str, limit: int) -> list[Row]:
        return self._limited.read_heads({queue: limit})[queue]

    # ── start and settle ────────────────────────────────────────────────────────────────────────────────────────────

    def _store_output(self, piece: OutputPiece) -> None:
        of_run = {"seq": piece.claim.seq, "token": piece.claim.token}
        if piece.keep_from > 0:
            self._db.execute(SQL["drop_output"], {**of_run, "keep_from": piece.keep_from})
        self._db.execute(SQL["add_output"], {**of_run, "at": piece.at, "data": piece.data})

    def _settle(self, end: End, at: Moment, transitions: Transitions) -> Settlement | None:
        """Write an end; None if the job has another token by now."""
        result = rows.run_result(end, now=at.now)
        if self._write_end(end.claim, end.settlement, result, at, transitions):
            return end.settlement
        if not self._db.value(SQL["is_cancelled"], {"seq": end.claim.seq, "token": end.claim.token}):
            return None
        settlement = rows.cancelled(end)
        self._write_end(end.claim, settlement, result, at, transitions)
        return settlement

    def _write_end(
        self, claim: Claim, settlement: Settlement, result: rows.RunResult, at: Moment, transitions: Transitions
    ) -> bool:
        is_cancel = settlement.event is Event.CANCEL
        row = rows.settled(claim, settlement, last_output=result.last_output, now=at.now, is_cancel=is_cancel)
        parameters = (*row, *result, at.now, at.last_seq, int(isinstance(at.ageing, ByEnqueues)))
        # Not `returning`: SQLite would fill a temporary table, a quarter of the time of the statement.
        if self._db.execute(SETTLE, parameters) == 0:
            return False
        ending = row.ending
        if ending is None:
            ending = GIVEN_BACK if settlement.is_given_back else REFUSED
            for name in ("unclaim", "drop_earlier") if settlement.is_given_back else ("unrun",):
                self._db.execute(SQL[name], {"seq": claim.seq})
        transitions.add(claim.queue, "processing", row.state, ending=ending)
        if claim.hooks:
            self._db.executemany(SQL["add_delivery"], outbox_rows(claim, settlement, now_ms=at.now))
        return True

    # ── workers ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def register(self, worker: NewWorker) -> Wakeup:
        # The pipe first: other processes may use it as soon as they see the row.
        try:
            wakeup = NoWakeup() if self._db.path == MEMORY else PipeWakeup(wakeup_file(worker.home, worker.id))
        except OSError as exc:
            raise errors.HomeUnusable(worker.home, exc.strerror or str(exc)) from exc
        queues = None if worker.queues is None else json.dumps(worker.queues)
        try:
            with self._db.transaction():
                values = {**worker._asdict(), "queues": queues, "now": self._tx.clock.now_ms()}
                self._db.execute(SQL["register"], values)
        except BaseException:
            wakeup.close()
            raise
        return wakeup

    def heartbeat(self, worker: str, *, slots: int, stopping: bool) -> bool:
        state = "stopping" if stopping else "running"
        with self._db.transaction():
            values = {"id": worker, "slots": slots, "state": state, "now": self._tx.clock.now_ms()}
            return self._db.execute(SQL["heartbeat"], values) == 1

    def retire(self, worker: str) -> None:
        with self._db.transaction():
            self._db.execute(SQL["retire"], {"id": worker})
