"""Claims in PostgreSQL: the statements that assign jobs to a worker, and claims from limited queues in several steps."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from queuectl.jobs.model import Claim
from queuectl.jobs.queue_limits import UNSTARTED_RECHECK_MS, PriorStart
from queuectl.store import rows
from queuectl.store.admission import (
    MAX_KEY_BLOCKED,
    Admitted,
    Limit,
    Limits,
    admitted,
    choose_rows,
    earliest,
    queues_of,
    read_limit,
    split_by_key,
    with_places,
)
from queuectl.store.postgres.claim_cursor import ClaimCursor
from queuectl.store.postgres.connection import SQL
from queuectl.store.postgres.transactions import PostgresTransactions
from queuectl.store.transactions import Query
from queuectl.store.types import ClaimRequest, Row
from queuectl.text import WEBHOOK_QUEUE

LOWEST_RANK: Final = -(2**63)


class ClaimOrder(NamedTuple):
    """The claim request of a worker, with a token for each job."""

    worker: str
    request: ClaimRequest
    tokens: Sequence[str]
    now: int

    def query(self, candidates: str, **values: Any) -> Query:
        """`candidates`: the text of one of the statements that `claim` names; `values`: its parameters."""
        known = {
            "worker": self.worker,
            "host": self.request.host,
            "logs": self.request.logs,
            "tokens": self.tokens,
            "now": self.now,
        }
        return Query(claim_text(candidates), {**known, **values})

    def queries(self, cursor: ClaimCursor, *, session: int) -> dict[str, Query]:
        """To be sent together: the claim, and what the cursor needs."""
        limit, queues = self.request.limit, self.request.queues
        if not cursor.is_needed:
            if queues is None:
                return {"claim": self.query(SQL["candidates_any_queue"], limit=limit)}
            return {
                "claim": self.query(SQL["candidates_named_queues"], limit=limit, queues=list(dict.fromkeys(queues)))
            }
        begin = cursor.parameters(queues, session=session)
        asked = {"claim": self.query(SQL["candidates_from_cursor"], limit=limit, **begin)}
        if cursor.wants_heads(queues):
            asked["heads"] = Query(heads_text(), begin)
        return asked


@functools.cache
def claim_text(candidates: str) -> str:
    return SQL["claim"].replace("{candidates}", candidates.replace("{valid_cursors}", SQL["valid_cursors"]))


@functools.cache
def heads_text() -> str:
    return SQL["queue_heads"].replace("{valid_cursors}", SQL["valid_cursors"])


def in_order(claimed: Sequence[Row]) -> list[Row]:
    """The rows of `claim` in order, which is the first column."""
    return sorted(claimed, key=lambda row: int(row[0]))


def claims_of(found: Sequence[Row]) -> list[Claim]:
    """From the rows of `claim`."""
    return [
        rows.claim(
            row[5:], token=row[2], run=row[3], log=row[4], **dict(zip(rows.CLAIM_FIELDS, row[19:24], strict=True))
        )
        for row in found
    ]


def positions_of(found: Sequence[Row]) -> list[tuple[str, int, int]]:
    """Queue, rank and seq, from the rows of `claim`."""
    return [(row[10], row[1], row[5]) for row in found]


class LimitedClaim(NamedTuple):
    rows: list[Row]  # as `claim` returns them
    limited: Limits
    opens_at: int | None  # when a rate limit lets the next job start


class LimitedClaims:
    """Claims where queues are limited or have weights: in steps, within a transaction that locks the limits."""

    def __init__(self, tx: PostgresTransactions) -> None:
        self._db = tx.db
        self._clock = tx.clock

    def claim(self, order: ClaimOrder) -> LimitedClaim:
        request = order.request
        # Including webhook deliveries, whether or not they are requested.
        wanted = None if request.queues is None else list(dict.fromkeys((*request.queues, WEBHOOK_QUEUE)))
        now, queues = self._clock.now_ms(), {"queues": wanted}
        # In one round trip; each statement sees what was committed while the earlier ones waited.
        locks = Query(SQL["hold_limits"], queues), Query(SQL["hold_places"], queues)
        reads = Query(SQL["placed_queues"]), Query(SQL["limits"], {"now": now}), Query(SQL["ready_queues"])
        with self._db.transaction(Query(SQL["hold_worker"], {"worker": order.worker}), *locks, *reads) as results:
            _, limits_held, places_held, placed, limit_rows, found_ready = results
            held = {row[0] for row in (*limits_held, *places_held)}
            limited = with_places(self.limits_now(limit_rows, now), [name for (name,) in placed])
            ready = [name for (name,) in found_ready]
            most = dict(queues_of(request, lambda: ready))
            names = list(most)
            slots = self._admitted(most, limited, held, now=now, ready=frozenset(ready))
            heads: dict[str, list[Row]] = {name: [] for name in names}
            by_key = {name: rule.per_key for name, rule in limited.items() if rule.is_by_key}
            places = [0 if name in by_key else one.jobs for name, one in zip(names, slots, strict=True)]
            for row in self._db.all(SQL["heads"], {"queues": names, "places": places}):
                heads[row[2]].append(row)
            may_be_more = False
            for name, one in zip(names, slots, strict=True):
                if name in by_key and one.jobs:
                    heads[name], more = self._keyed_head(name, one.jobs, by_key[name])
                    may_be_more |= more
            calls = heads[WEBHOOK_QUEUE] if request.calls else []
            of_jobs = [heads[name] for name in (names[:-1] if request.calls else names)]
            found = (
                choose_rows(of_jobs, limit=request.limit, shares=request.shares, in_one_order=wanted is None) + calls
            )
            # A queue with fewer jobs does not wait for its rate limit.
            opens_at = earliest(
                *(one.opens_at for one, name in zip(slots, names, strict=True) if len(heads[name]) == one.jobs)
            )
            chosen = [row[1] for row in found]
            claim = order._replace(now=now).query(SQL["candidates_chosen"], chosen=chosen)
            claimed = in_order(self._db.all(*claim)) if chosen else []
            self._note_starts(claimed, limited, now)
        if may_be_more:
            opens_at = now
        if len(claimed) < len(found):  # other transactions have locked some, and send no wake-up if they leave them
            opens_at = earliest(opens_at, now + UNSTARTED_RECHECK_MS)
        return LimitedClaim(claimed, limited, opens_at)

    def limits_now(self, found_rows: Sequence[Row], now: int) -> dict[str, Limit]:
        """From the rows of `limits`."""
        found = [read_limit(row) for row in found_rows]
        ahead = [one.queue for one in found if one.is_ahead(now)]
        if ahead:
            self._db.executemany(SQL["correct_starts"], [{"queue": queue, "now": now} for queue in ahead])
            found = [read_limit(row) for row in self._db.all(SQL["limits"], {"now": now})]
        return {one.queue: one for one in found}

    def _admitted(
        self, queues: Mapping[str, int], limited: Limits, held: set[str], *, now: int, ready: Collection[str]
    ) -> list[Admitted]:
        """`queues`: with the number of requested jobs."""
        queries = {}
        for queue, most in queues.items():
            if (limit := limited.get(queue)) is not None and limit.rate is not None and queue in held:
                first = limit.last + 1 - limit.rate.starts
                values = {"queue": queue, "first": first, "last": first + most - 1, "now": now}
                queries[queue] = Query(SQL["earlier_starts"], values)
        results = self._db.query(*queries.values()) if queries else []
        earlier = {
            queue: {number: PriorStart(at, is_sure) for number, at, is_sure in result}
            for queue, result in zip(queries, results, strict=True)
        }
        slots = []
        for queue, most in queues.items():
            if queue not in limited:
                slots.append(Admitted(most))
            elif queue not in held:  # paused, or its first job came due after the locks were taken
                slots.append(
                    Admitted(0, now + UNSTARTED_RECHECK_MS if queue in ready and not limited[queue].paused else None)
                )
            else:
                slots.append(admitted(limited[queue], earlier.get(queue, {}), most=most, now_ms=now))
        return slots

    def _keyed_head(self, queue: str, slots: int, per_key: int | None) -> tuple[list[Row], bool]:
        """The first jobs of a queue that limits keys, and whether there may be more after those that are blocked on their key."""
        found: list[Row] = []
        key_blocked: list[Row] = []
        taken: Counter[str] = Counter()
        rank, seq = LOWEST_RANK, 0
        while len(found) < slots and len(key_blocked) < MAX_KEY_BLOCKED:
            # Usually the first jobs have free slots. Otherwise read many at once: each read is a round trip.
            limit = slots - len(found) if not key_blocked else MAX_KEY_BLOCKED
            page = self._db.all(SQL["heads_behind"], {"queue": queue, "rank": rank, "seq": seq, "limit": limit})
            if not page:
                break
            keys = sorted({row[3] for row in page if row[3] is not None and row[3] not in taken})
            if keys:
                taken.update(dict(self._db.all(SQL["running_of_keys"], {"queue": queue, "keys": keys})))
            fit, full = split_by_key(page, taken.__getitem__, per_key, taken, key_at=3)
            found += fit
            key_blocked += full
            rank, seq = page[-1][:2]
        if key_blocked:
            self._db.execute(SQL["block_on_key"], {"seqs": [row[1] for row in key_blocked]})
        return [row[:3] for row in found[:slots]], len(found) < slots and len(key_blocked) >= MAX_KEY_BLOCKED

    def _note_starts(self, claimed: Sequence[Row], limited: Limits, now: int) -> None:
        """`claimed`: as `claim` returns them, in order."""
        begun: dict[str, list[Row]] = {}
        for row in claimed:
            if (limit := limited.get(row[10])) is not None and limit.rate is not None:
                begun.setdefault(limit.queue, []).append(row)
        for queue, started in begun.items():
            limit = limited[queue]
            assert limit.rate is not None
            values = [
                {"queue": queue, "number": number, "job": row[5], "run": row[3], "now": now}
                for number, row in enumerate(started, limit.last + 1)
            ]
            for one in values:
                self._db.defer(SQL["add_start"], one)
            old = limit.last + len(started) - limit.rate.starts
            self._db.defer(SQL["trim_starts"], {"queue": queue, "number": old})
