"""Runs: beginning them, ending them, and taking them from the dead. All of it guarded by the token of the claim."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Final

from queuectl import errors
from queuectl.job.lifecycle import WAITING
from queuectl.job.model import Claim
from queuectl.job.outcome import Ending
from queuectl.job.settle import Settlement, abandoned, cancelled
from queuectl.store.auditing import refused
from queuectl.store.calling import call_rows
from queuectl.store.facts import Facts, facts_of, how, ms
from queuectl.store.ids import new_tokens
from queuectl.store.limits import earliest, filled, keys_of, leave_room, without
from queuectl.store.postgres.base import admit
from queuectl.store.postgres.claim_cursor import ClaimCursor
from queuectl.store.postgres.claims import ClaimOrder, claims_of, in_order, positions_of
from queuectl.store.postgres.connection import SQL, Answer, Connection, Question
from queuectl.store.postgres.doubt import Doubt
from queuectl.store.postgres.edges import PostgresEdges
from queuectl.store.postgres.fencing import PostgresFencing
from queuectl.store.postgres.queues import Chosen, PostgresLimits
from queuectl.store.postgres.refusing import unrun
from queuectl.store.postgres.session import Row
from queuectl.store.postgres.trouble import ConnectionLost, run_again
from queuectl.store.protocol import ClaimRequest, End, Exchange, Lost, OutputPiece, Span, Start

PROMOTE_AT_ONCE: Final = 1000


class PostgresRuns(PostgresFencing, PostgresLimits, PostgresEdges):
    def __init__(self, db: Connection) -> None:
        super().__init__(db)
        self._doubt = Doubt()
        self._cursor = ClaimCursor()
        self._is_limited = False  # whether some queue was paused or limited when we last looked

    @run_again
    def exchange(
        self,
        worker: str,
        *,
        starts: Sequence[Start] = (),
        outputs: Sequence[OutputPiece] = (),
        ends: Sequence[End] = (),
        claim: ClaimRequest | None = None,
    ) -> Exchange:
        """As in the protocol, in one round trip; where queues are limited, or served by weight, the claim follows in a
        transaction of its own. If the connection is lost before the answer, the same may be sent again:
        ends that were written come back as settled, jobs that were claimed are given out."""
        claims = self._claims_in_doubt(worker, 0 if claim is None else claim.limit + claim.calls)
        asked = claim
        if claim is not None:
            claim = without(claim, claims)
        tokens = new_tokens(0 if claim is None else claim.limit + claim.calls)
        now = self._clock.now_ms()
        order = None if claim is None or not tokens else ClaimOrder(worker, claim, tokens, now)
        questions = {"hold": Question(SQL["hold_worker"], {"worker": worker})}
        if starts:
            began = json.dumps([_began(one, now) for one in starts])
            questions["start"] = Question(SQL["start"], {"starts": began, "worker": worker})
        # Before the ends: with its token a run loses its say.
        questions |= _printed(outputs, worker=worker)
        if ends:
            questions["settle"] = _settle(ends, worker=worker, now=now)
            questions |= unrun(ends)
            questions |= {f"admit {at}": one for at, one in enumerate(admit(keys_of(end.claim for end in ends)))}
        questions["promote"] = Question(SQL["promote"], {"now": now, "limit": PROMOTE_AT_ONCE})
        is_measured = not self._cursor.is_needed
        if order and order.request.limit and not self._is_limited and order.request.shares is None:
            questions |= order.questions(self._cursor, session=self._db.session)
        questions["outlook"] = Question(SQL["outlook"])
        questions |= {f"audit {at}": self._to_record(*one) for at, one in enumerate(refused(ends))}
        # Somebody else may have a slot for those that wait again, now or when they come due.
        wait_again = any(end.settlement.state in WAITING for end in ends)
        was_done = False
        try:
            answers = self._db.transact(list(questions.values()), after=self._ring() if wait_again else ())
            was_done = True
            told: dict[str, Answer] = dict(zip(questions, answers, strict=True))
            written = _written(ends, told["settle"].rows) if ends else {}
            self._settle_late([end for end in ends if end.claim.token not in written], worker, written)
            self._is_limited = told["hold"].rows[0][1]
            ((promoted, before_claim),) = told["promote"].rows
            ((due_at, is_undecided, has_webhooks, after_claim),) = told["outlook"].rows
            is_complete = promoted < PROMOTE_AT_ONCE
            found = in_order(told["claim"].rows) if "claim" in told else []
            chosen = None
            if order and is_complete:
                by_limits = self._is_limited and not found
                if by_limits or ("claim" not in told and order.request.limit):
                    chosen = self._claim_chosen(order)
                elif order.request.calls and has_webhooks:
                    found += self._claim_webhooks(order._replace(tokens=tokens[len(found) :]))
        except errors.Unavailable as exc:
            self._doubt.take_back(claims)
            if was_done or isinstance(exc, ConnectionLost):
                self._doubt.add(ends=[end.claim.token for end in ends], offers=tokens)
            raise
        if claim is not None and "claim" in told:
            self._learn(told, claim, claim_ms=after_claim - before_claim if is_measured else 0.0)
        claims += claims_of(found if chosen is None else chosen.rows)
        self._tell_of_room(ends, chosen)
        due = earliest(due_at, chosen and chosen.opens_at)
        children = self._tell_some(is_undecided=is_undecided, beside_ends=bool(ends))
        more, more_calls = filled(asked, claims)
        # Taken out as they are told: the same end told twice is written once.
        settlements = [(end, written.pop(end.claim.token, None)) for end in ends]
        return Exchange(
            settled=[(end, settlement) for end, settlement in settlements if settlement is not None],
            lost=[end for end, settlement in settlements if settlement is None],
            claims=claims,
            next_due_ms=None if due is None else max(0, due - now),
            more=not is_complete or more or children.freed,
            more_calls=more_calls,
            undecided=children.more,
        )

    @run_again
    def rescue(
        self,
        worker: str,
        *,
        max_crashes: int,
        spans: Mapping[str, Span] = MappingProxyType({}),
        only: Collection[str] | None = None,
        unbegun: Collection[str] = (),
    ) -> list[Lost]:
        taken, ends = [], []
        take, hold = Question(SQL["take_worker"], {"worker": worker}), Question(SQL["hold_runs"], {"worker": worker})
        with self._db.transaction(take, hold, after=self._ring()):
            now = self._clock.now_ms()
            for claim, is_cancelled in self._running(worker):
                if only is not None and claim.token not in only:
                    continue
                settlement = abandoned(claim, max_crashes, unbegun, is_cancelled=is_cancelled)
                facts = Facts(None, now, None, None, *spans.get(claim.token, Span(None, None)))
                taken.append(Lost(claim, settlement))
                ends.append(_told(claim, settlement, facts, now=now, called_off=is_cancelled))
            if ends:
                self._db.all(SQL["settle"], {"ends": json.dumps(ends), "worker": None, "now": now})
                self._db.ask(*unrun(taken).values(), *admit(keys_of(lost.claim for lost in taken)))
            self._db.execute(SQL["retire" if only is None else "forget"], {"id": worker})
        self.try_to_settle_children()
        return taken

    def _claim_webhooks(self, order: ClaimOrder) -> list[Row]:
        """In a transaction of its own: it is needed only while deliveries wait."""
        hold = Question(SQL["hold_worker"], {"worker": order.worker})
        _, claimed = self._db.transact([hold, order.question(SQL["candidates_webhooks"], limit=order.request.calls)])
        return in_order(claimed.rows)

    def _learn(self, told: Mapping[str, Answer], claim: ClaimRequest, *, claim_ms: float) -> None:
        """`claim_ms`: what a claim without cursors took."""
        self._cursor.note_claim(claim_ms)
        if self._cursor.is_needed:
            self._cursor.learn(
                claim.queues,
                positions_of(in_order(told["claim"].rows)),
                seen=told["hold"].rows[0][0],
                heads=told["heads"].rows if "heads" in told else (),
                session=self._db.session,
            )

    def _tell_of_room(self, ends: Sequence[End], chosen: Chosen | None) -> None:
        """Wake who may use the places in limited queues that these ends have left free, and that we have not taken."""
        if not ends or not self._is_limited:
            return
        if chosen is None or leave_room(chosen.limited, [end.claim for end in ends], claims_of(chosen.rows)):
            with suppress(errors.Unavailable):  # a hint; what was to be written is written
                self._db.transact(self._ring())

    # ── what the answer does not tell ───────────────────────────────────────────────────────────────────────────────

    def _claims_in_doubt(self, worker: str, limit: int) -> list[Claim]:
        if self._doubt.has_offers:
            self._doubt.look(self.running(worker))
        return self._doubt.hand_out(limit)

    def _settle_late(self, ends: list[End], worker: str, written: dict[str, Settlement]) -> None:
        """Once more, for those that found no row of theirs. A cancel that was committed while the statement waited for the
        row is one reason: it chose between the two forms of an end by what the row was before. Adds to `written`."""
        if not ends:
            return
        question = _settle(ends, worker=worker, now=self._clock.now_ms())
        hold = Question(SQL["hold_worker"], {"worker": worker})
        let_back = [*unrun(ends).values(), *admit(keys_of(end.claim for end in ends))]
        written.update(_written(ends, self._db.transact([hold, question, *let_back])[1].rows))
        for end in ends:
            token = end.claim.token
            if token not in written and self._doubt.is_about_end(token):
                found = self._all(SQL["was_settled"], {"seq": end.claim.seq, "token": token})
                # Another ending: another worker took us for dead, and wrote the end of this run. A claim that was given back left none.
                for settlement in (end.settlement, _called_off(end)):
                    if found == [(settlement.ending,)] or settlement.is_given_back:
                        written[token] = settlement
                        break
            self._doubt.forget_end(token)


# ── what is sent ────────────────────────────────────────────────────────────────────────────────────────────────────


def _settle(ends: Sequence[End], *, worker: str, now: int) -> Question:
    told = []
    for end in ends:
        facts = facts_of(end, now=now)
        told.append(_told(end.claim, end.settlement, facts, now=now, called_off=False))
        told.append(_told(end.claim, _called_off(end), facts, now=now, called_off=True))
    return Question(SQL["settle"], {"ends": json.dumps(told), "worker": worker, "now": now})


def _told(claim: Claim, settlement: Settlement, facts: Facts, *, now: int, called_off: bool) -> dict[str, Any]:
    waits = settlement.state in WAITING
    return {
        **facts._asdict(),
        "called_off": called_off,
        "seq": claim.seq,
        "token": claim.token,
        "state": settlement.state,
        "ending": settlement.ending,
        "waits": waits,
        "is_due": waits and settlement.retry_in_ms == 0,
        "retry_at": now + settlement.retry_in_ms if settlement.state == "failed" else None,
        "attempts": settlement.attempts,
        "crashes": settlement.crashes,
        "exit_code": settlement.exit_code,
        "signal": settlement.signal,
        "error": settlement.error,
        "calls": call_rows(claim, settlement, now_ms=now) if claim.hooks else None,
    }


def _began(start: Start, now: int) -> dict[str, Any]:
    return {
        "seq": start.claim.seq,
        "token": start.claim.token,
        "pid": start.pid,
        "log_from": start.log_from,
        "started_at": now - ms(start.age),
    }


def _printed(pieces: Sequence[OutputPiece], *, worker: str) -> dict[str, Question]:
    questions = {}
    if short := [piece for piece in pieces if piece.keep_from > 0]:
        values = {"keep_from": [piece.keep_from for piece in short], **_holders(short), "worker": worker}
        questions["drop_output"] = Question(SQL["drop_output"], values)
    if pieces:
        at, data = [piece.at for piece in pieces], [piece.data for piece in pieces]
        values = {"ats": at, "data": data, **_holders(pieces), "worker": worker}
        questions["add_output"] = Question(SQL["add_output"], values)
    return questions


def _holders(pieces: Sequence[OutputPiece]) -> dict[str, Any]:
    return {"seqs": [piece.claim.seq for piece in pieces], "tokens": [piece.claim.token for piece in pieces]}


# ── what comes back ─────────────────────────────────────────────────────────────────────────────────────────────────


def _written(ends: Sequence[End], found: Sequence[Row]) -> dict[str, Settlement]:
    """By token, what was written of these ends."""
    called_off: dict[str, bool] = dict(found)
    return {
        end.claim.token: _called_off(end) if called_off[end.claim.token] else end.settlement
        for end in ends
        if end.claim.token in called_off
    }


def _called_off(end: End) -> Settlement:
    """This end, if somebody called the job off before it."""
    settlement = end.settlement
    if settlement.ending is Ending.CANCELLED:
        return settlement
    return cancelled(end.claim, how(settlement))
