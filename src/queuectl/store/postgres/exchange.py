"""Exchanges with workers in PostgreSQL: start, settle and claim in one round trip; fence, adopt and rescue. The token of the claim guards
every write about a run.

If the connection breaks between a commit and its answer, ends may be written, and jobs may be claimed that the worker does not know of.
Both are found by their tokens, which are generated here and not by the server, see `UnknownCommit`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Final

from queuectl import errors
from queuectl.jobs.model import Claim
from queuectl.jobs.outcome import Settlement, settle_abandoned
from queuectl.jobs.states import WAITING
from queuectl.store import rows
from queuectl.store.admission import claimed_keys, earliest, filled, frees_slots, without
from queuectl.store.audit import refused
from queuectl.store.claims import Claims
from queuectl.store.conflicts import TransactionConflict, retry_conflicts
from queuectl.store.enqueue import new_tokens
from queuectl.store.postgres.claim_cursor import ClaimCursor
from queuectl.store.postgres.claims import ClaimOrder, LimitedClaim, LimitedClaims, claims_of, in_order, positions_of
from queuectl.store.postgres.connection import SQL, Result
from queuectl.store.postgres.dependencies import PostgresResolver
from queuectl.store.postgres.errors import ConnectionLost
from queuectl.store.postgres.migrate import set_clock
from queuectl.store.postgres.notify import NotifyWakeup
from queuectl.store.postgres.privileges import check_privileges, privileges_query
from queuectl.store.postgres.transactions import PostgresTransactions, admission_queries
from queuectl.store.reads import Reads
from queuectl.store.transactions import Query
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

MAX_PROMOTED: Final = 1000  # jobs that one exchange promotes
MAX_NAME_BYTES: Final = 63  # of an application_name; the server keeps ASCII only
FOLD_FROM: Final = 500  # rows of `moves` that are worth folding
MAX_FOLDED: Final = 20_000  # in one heartbeat


class UnknownCommit:
    """The tokens of exchanges whose result is unknown, and claims that were found since."""

    def __init__(self) -> None:
        self._ends: set[str] = set()
        self._offers: set[str] = set()
        self._found: list[Claim] = []

    def add(self, *, ends: Iterable[str], offers: Iterable[str]) -> None:
        """The tokens of the runs that were to be settled, and those for new claims."""
        self._ends.update(ends)
        self._offers.update(offers)

    def is_about_end(self, token: str) -> bool:
        return token in self._ends

    def forget_end(self, token: str) -> None:
        self._ends.discard(token)

    @property
    def has_offers(self) -> bool:
        return bool(self._offers)

    def find_claims(self, running: Iterable[Claim]) -> None:
        """`running`: the claims of the worker. Those with an offered token have not been started."""
        self._found += [claim for claim in running if claim.token in self._offers]
        self._offers.clear()

    def take_claims(self, limit: int) -> list[Claim]:
        """Claims to start now."""
        taken, self._found = self._found[:limit], self._found[limit:]
        return taken

    def return_claims(self, claims: Sequence[Claim]) -> None:
        """The worker did not get these."""
        self._found = [*claims, *self._found]


class PostgresClaims(Claims):
    _tx: PostgresTransactions

    def __init__(self, tx: PostgresTransactions, reads: Reads, resolver: PostgresResolver) -> None:
        super().__init__(tx)
        self._db = tx.db
        self._clock = tx.clock
        self._reads = reads
        self._resolver = resolver
        self.limited = LimitedClaims(tx)
        self.cursor = ClaimCursor()
        self._unknown = UnknownCommit()
        self._is_limited = False  # whether some queue was paused or limited at the last exchange
        self._wakeup: NotifyWakeup | None = None

    @retry_conflicts
    def exchange(
        self,
        worker: str,
        *,
        starts: Sequence[Start] = (),
        outputs: Sequence[OutputPiece] = (),
        ends: Sequence[End] = (),
        claim: ClaimRequest | None = None,
    ) -> Exchange:
        """As in Claims, in one round trip; where queues are limited or have weights, the claim follows in a transaction of its
        own. If the connection is lost before the answer, the same may be sent again: ends that were written are returned as
        settled, and jobs that were claimed are returned."""
        claims = self._unknown_claims(worker, 0 if claim is None else claim.limit + claim.webhooks)
        requested = claim
        if claim is not None:
            claim = without(claim, claims)
        tokens = new_tokens(0 if claim is None else claim.limit + claim.webhooks)
        now = self._clock.now_ms()
        order = None if claim is None or not tokens else ClaimOrder(worker, claim, tokens, now)
        queries = {"hold": Query(SQL["hold_worker"], {"worker": worker})}
        if starts:
            began = json.dumps([rows.started(one, now=now) for one in starts])
            queries["start"] = Query(SQL["start"], {"starts": began, "worker": worker})
        # Before the ends: a settled run has no token any more.
        queries |= _output_queries(outputs, worker=worker)
        if ends:
            queries["settle"] = _settle_query(ends, worker=worker, now=now)
            queries |= _unrun_queries(ends)
            queries |= {
                f"admit {at}": one for at, one in enumerate(admission_queries(claimed_keys(end.claim for end in ends)))
            }
        queries["promote"] = Query(SQL["promote"], {"now": now, "limit": MAX_PROMOTED})
        is_measured = not self.cursor.is_needed
        if order and order.request.limit and not self._is_limited and order.request.shares is None:
            queries |= order.queries(self.cursor, session=self._db.session_number)
        queries["outlook"] = Query(SQL["outlook"])
        queries |= {f"audit {at}": self._tx.audit_query(*one) for at, one in enumerate(refused(ends))}
        # Other workers may have a free slot for jobs that wait again, now or when they come due.
        wait_again = any(end.settlement.state in WAITING for end in ends)
        was_done = False
        try:
            found_rows = self._db.write(list(queries.values()), after=self._tx.notification() if wait_again else ())
            was_done = True
            results: dict[str, Result] = dict(zip(queries, found_rows, strict=True))
            written = _written(ends, results["settle"].rows) if ends else {}
            self._settle_late([end for end in ends if end.claim.token not in written], worker, written)
            self._is_limited = results["hold"].rows[0][1]
            ((promoted, before_claim),) = results["promote"].rows
            ((due_at, is_undecided, has_webhooks, after_claim),) = results["outlook"].rows
            is_complete = promoted < MAX_PROMOTED
            found = in_order(results["claim"].rows) if "claim" in results else []
            limited = None
            if order and is_complete:
                by_limits = self._is_limited and not found
                if by_limits or ("claim" not in results and order.request.limit):
                    limited = self.limited.claim(order)
                elif order.request.webhooks and has_webhooks:
                    found += self._claim_webhooks(order._replace(tokens=tokens[len(found) :]))
        except errors.Unavailable as exc:
            self._unknown.return_claims(claims)
            if was_done or isinstance(exc, ConnectionLost):
                self._unknown.add(ends=[end.claim.token for end in ends], offers=tokens)
            raise
        if claim is not None and "claim" in results:
            self._learn(results, claim, claim_ms=after_claim - before_claim if is_measured else 0.0)
        claims += claims_of(found) if limited is None else limited.claims
        self._notify_of_slots(ends, limited)
        due = earliest(due_at, limited and limited.opens_at)
        children = self._resolver.resolve_some(is_undecided=is_undecided, with_ends=bool(ends))
        more, more_webhooks = filled(requested, claims)
        # Removed one by one: an end that is given twice is written once.
        settlements = [(end, written.pop(end.claim.token, None)) for end in ends]
        return Exchange(
            settled=[(end, settlement) for end, settlement in settlements if settlement is not None],
            lost=[end for end, settlement in settlements if settlement is None],
            claims=claims,
            next_due_ms=None if due is None else max(0, due - now),
            more=not is_complete or more or children.freed,
            more_webhooks=more_webhooks,
            undecided=children.more,
        )

    @retry_conflicts
    def rescue(
        self,
        worker: str,
        *,
        max_crashes: int,
        spans: Mapping[str, Span] = MappingProxyType({}),
        only: Collection[str] | None = None,
        unbegun: Collection[str] = (),
    ) -> list[Rescued]:
        rescued, ends = [], []
        take, hold = Query(SQL["take_worker"], {"worker": worker}), Query(SQL["hold_runs"], {"worker": worker})
        with self._db.transaction(take, hold, after=self._tx.notification()):
            now = self._clock.now_ms()
            for claim, is_cancelled in self._reads.running_claims(worker):
                if only is not None and claim.token not in only:
                    continue
                settlement = settle_abandoned(claim, max_crashes, unbegun, is_cancelled=is_cancelled)
                span = spans.get(claim.token, Span(None, None))
                result = rows.lost_result(claim, span, now=now)
                rescued.append(Rescued(claim, settlement))
                ends.append(_end_row(claim, settlement, result, now=now, is_cancel=is_cancelled))
            if ends:
                self._db.all(SQL["settle"], {"ends": json.dumps(ends), "worker": None, "now": now})
                keys = claimed_keys(one.claim for one in rescued)
                self._db.query(*_unrun_queries(rescued).values(), *admission_queries(keys))
            self._db.execute(SQL["retire" if only is None else "forget"], {"id": worker})
        self._resolver.try_to_resolve_all()
        return rescued

    @retry_conflicts
    def fence(self, worker: str, *, last_heartbeat: LastHeartbeat | None = None) -> list[Claim] | None:
        """As in Claims. A worker may have been stopped during a transaction: no timeout of the server ends it, and it would
        hold its locks until the worker continues. So the transaction is terminated first."""
        started_at, beats = last_heartbeat or (None, None)
        meant = {"id": worker, "started_at": started_at, "beats": beats}
        refusal = self._terminate_transactions(worker, meant)
        try:
            with self._db.transaction(Query(SQL["take_worker"], {"worker": worker})):
                found = self._db.execute(SQL["fence"], meant)
                return None if last_heartbeat and not found else self._reads.running(worker)
        except errors.StoreBusy as exc:
            if refusal is None or isinstance(exc, TransactionConflict):
                raise
            raise refusal from exc

    def _terminate_transactions(self, worker: str, meant: Mapping[str, Any]) -> errors.StoreRefused | None:
        """Terminate the transactions of this worker. Returns an error if that was refused: they may end by themselves."""
        try:
            self._db.write([Query(SQL["end_transactions"], {**meant, "name": application_name(worker)})])
        except errors.StoreRefused:
            problem = f"worker {worker} is gone or stopped, its session is still there, and this role may not end it"
            hint = "let all workers have one role, or grant pg_signal_backend to this one"
            return errors.StoreRefused(self._db.shown, problem, hint=hint)
        return None

    @retry_conflicts
    def adopt(self, worker: str, tokens: Collection[str], *, by: str) -> list[str]:
        take, hold = Query(SQL["take_worker"], {"worker": worker}), Query(SQL["hold_worker"], {"worker": by})
        with self._db.transaction(take, hold):
            taken = {"worker": worker, "by": by, "tokens": list(tokens)}
            return [token for (token,) in self._db.all(SQL["adopt"], taken)]

    # ── workers ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @retry_conflicts
    def register(self, worker: NewWorker) -> NotifyWakeup:
        if not os.path.isdir(worker.home):
            raise errors.HomeUnusable(worker.home, "it does not exist")
        # A worker without a privilege, as after an upgrade with new tables, would run jobs whose ends it cannot write.
        (tables,) = self._db.query(privileges_query())
        check_privileges(tables, self._db.shown)
        self._db.name = application_name(worker.id)
        # Listen first: other processes may notify as soon as they see the row.
        wakeup = NotifyWakeup(self._db)
        queues = None if worker.queues is None else json.dumps(worker.queues)
        values = {**worker._asdict(), "queues": queues, "now": self._clock.now_ms()}
        try:
            self._db.write([Query(SQL["take_worker"], {"worker": worker.id}), Query(SQL["register"], values)])
        except BaseException:
            wakeup.close()
            raise
        self._wakeup = wakeup
        return wakeup

    @retry_conflicts
    def heartbeat(self, worker: str, *, slots: int, stopping: bool) -> bool:
        """As in Claims. Also sets the clock, reconnects the wake-up and folds the counters."""
        state = "stopping" if stopping else "running"
        values = {"id": worker, "slots": slots, "state": state, "now": self._clock.now_ms()}
        fold = Query(SQL["fold"], {"many": FOLD_FROM, "limit": MAX_FOLDED})
        found, _ = self._db.write([Query(SQL["heartbeat"], values), fold])
        set_clock(self._db)
        if self._wakeup is not None:
            self._wakeup.reconnect()
        return found.rowcount == 1

    @retry_conflicts
    def retire(self, worker: str) -> None:
        self._db.write([Query(SQL["take_worker"], {"worker": worker}), Query(SQL["retire"], {"id": worker})])

    # ── steps of an exchange ────────────────────────────────────────────────────────────────────────────────────────

    def _claim_webhooks(self, order: ClaimOrder) -> list[Row]:
        """In a transaction of its own: it is needed only while deliveries wait."""
        hold = Query(SQL["hold_worker"], {"worker": order.worker})
        _, claimed = self._db.write([hold, order.query(SQL["candidates_webhooks"], limit=order.request.webhooks)])
        return in_order(claimed.rows)

    def _learn(self, results: Mapping[str, Result], claim: ClaimRequest, *, claim_ms: float) -> None:
        """`claim_ms`: what a claim without cursors took."""
        self.cursor.note_claim(claim_ms)
        if self.cursor.is_needed:
            self.cursor.learn(
                claim.queues,
                positions_of(in_order(results["claim"].rows)),
                seen=results["hold"].rows[0][0],
                heads=results["heads"].rows if "heads" in results else (),
                session=self._db.session_number,
            )

    def _notify_of_slots(self, ends: Sequence[End], claimed: LimitedClaim | None) -> None:
        """Wake the workers if these ends have freed slots of limited queues that this claim has not used."""
        if not ends or not self._is_limited:
            return
        if claimed is None or frees_slots(claimed.limits, [end.claim for end in ends], claimed.claims):
            with suppress(errors.Unavailable):  # a hint; the exchange is committed
                self._db.write(self._tx.notification())

    # ── unknown commits ───────────────────────────────────────────────────────────────────────────────

    def _unknown_claims(self, worker: str, limit: int) -> list[Claim]:
        if self._unknown.has_offers:
            self._unknown.find_claims(self._reads.running(worker))
        return self._unknown.take_claims(limit)

    def _settle_late(self, ends: list[End], worker: str, written: dict[str, Settlement]) -> None:
        """Settle again the ends that matched no row. One reason is a cancel that was committed while the statement waited for the row:
        the statement chose between the two forms of an end by the old row. Adds to `written`."""
        if not ends:
            return
        query = _settle_query(ends, worker=worker, now=self._clock.now_ms())
        hold = Query(SQL["hold_worker"], {"worker": worker})
        rest = [*_unrun_queries(ends).values(), *admission_queries(claimed_keys(end.claim for end in ends))]
        written.update(_written(ends, self._db.write([hold, query, *rest])[1].rows))
        for end in ends:
            token = end.claim.token
            if token not in written and self._unknown.is_about_end(token):
                found = self._tx.all("was_settled", {"seq": end.claim.seq, "token": token})
                # With another ending, another worker has rescued this run. A claim that was given back leaves none.
                for settlement in (end.settlement, rows.cancelled(end)):
                    if found == [(settlement.ending,)] or settlement.is_given_back:
                        written[token] = settlement
                        break
            self._unknown.forget_end(token)


# ── parameters ────────────────────────────────────────────────────────────────────────────────────────────────────


def _settle_query(ends: Sequence[End], *, worker: str, now: int) -> Query:
    both = []
    for end in ends:
        result = rows.run_result(end, now=now)
        both.append(_end_row(end.claim, end.settlement, result, now=now, is_cancel=False))
        both.append(_end_row(end.claim, rows.cancelled(end), result, now=now, is_cancel=True))
    return Query(SQL["settle"], {"ends": json.dumps(both), "worker": worker, "now": now})


def _end_row(
    claim: Claim, settlement: Settlement, result: rows.RunResult, *, now: int, is_cancel: bool
) -> dict[str, Any]:
    row = rows.settled(claim, settlement, last_output=result.last_output, now=now, is_cancel=is_cancel)
    webhooks = outbox_rows(claim, settlement, now_ms=now) if claim.hooks else None
    return {**row._asdict(), **result._asdict(), "webhooks": webhooks}


def _output_queries(pieces: Sequence[OutputPiece], *, worker: str) -> dict[str, Query]:
    queries = {}
    if short := [piece for piece in pieces if piece.keep_from > 0]:
        values = {"keep_from": [piece.keep_from for piece in short], **_holders(short), "worker": worker}
        queries["drop_output"] = Query(SQL["drop_output"], values)
    if pieces:
        at, data = [piece.at for piece in pieces], [piece.data for piece in pieces]
        values = {"ats": at, "data": data, **_holders(pieces), "worker": worker}
        queries["add_output"] = Query(SQL["add_output"], values)
    return queries


def _holders(pieces: Sequence[OutputPiece]) -> dict[str, Any]:
    return {"seqs": [piece.claim.seq for piece in pieces], "tokens": [piece.claim.token for piece in pieces]}


def _unrun_queries(settled: Iterable[End | Rescued]) -> dict[str, Query]:
    """After the settlement of claims that did not become runs: a policy refused the job, or the worker gave it back. A job that was
    cancelled meanwhile, or that another worker has, is not changed."""
    without_run = [one for one in settled if one.settlement.ending is None]
    queries = {}
    for name, is_given_back in (("unrun", False), ("unclaim", True)):
        if claims := [one.claim for one in without_run if one.settlement.is_given_back is is_given_back]:
            values = {"seqs": [claim.seq for claim in claims], "tokens": [claim.token for claim in claims]}
            queries[name] = Query(SQL[name], {**values, "runs": [claim.run for claim in claims]})
    return queries


# ── results ─────────────────────────────────────────────────────────────────────────────────────────────────


def _written(ends: Sequence[End], found: Sequence[Row]) -> dict[str, Settlement]:
    """By token, what was written of these ends."""
    cancelled: dict[str, bool] = dict(found)
    return {
        end.claim.token: rows.cancelled(end) if cancelled[end.claim.token] else end.settlement
        for end in ends
        if end.claim.token in cancelled
    }


def application_name(worker: str) -> str:
    """The name of the transactions of a worker, unique for each."""
    name = f"queuectl {worker}"
    if name.isascii() and len(name) <= MAX_NAME_BYTES:
        return name
    import hashlib

    return f"queuectl {hashlib.sha256(worker.encode()).hexdigest()[:40]}"
