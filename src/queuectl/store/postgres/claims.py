"""Claims in PostgreSQL: the statements that assign jobs to a worker, and claims from limited queues in several steps."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from queuectl.jobs.model import Claim
from queuectl.jobs.queue_limits import UNSTARTED_RECHECK_MS
from queuectl.store import rows
from queuectl.store.admission import (
    MAX_KEY_BLOCKED,
    Admitted,
    LimitedQueues,
    Limits,
    earliest,
    queues_of,
    with_key_limits,
)
from queuectl.store.postgres.claim_cursor import ClaimCursor
from queuectl.store.postgres.connection import SQL
from queuectl.store.postgres.transactions import PostgresTransactions
from queuectl.store.transactions import Query
from queuectl.store.types import ClaimRequest, Row
from queuectl.text import WEBHOOK_QUEUE


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
    claims: list[Claim]
    limits: Limits
    opens_at: int | None  # when a rate limit lets the next job start


class LimitedClaims(LimitedQueues):
    """In steps, within a transaction that locks the limits."""

    key_at = 3

    def __init__(self, tx: PostgresTransactions) -> None:
        super().__init__(tx)
        self._db = tx.db

    def claim(self, order: ClaimOrder) -> LimitedClaim:
        request = order.request
        # Including webhook deliveries, whether or not they are requested.
        wanted = None if request.queues is None else list(dict.fromkeys((*request.queues, WEBHOOK_QUEUE)))
        now, queues = self._tx.clock.now_ms(), {"queues": wanted}
        # In one round trip; each statement sees what was committed while the earlier ones waited.
        locks = Query(SQL["hold_limits"], queues), Query(SQL["hold_key_limits"], queues)
        reads = Query(SQL["queues_with_key_limits"]), Query(SQL["limits"], {"now": now}), Query(SQL["ready_queues"])
        with self._db.transaction(Query(SQL["hold_worker"], {"worker": order.worker}), *locks, *reads) as results:
            _, limits_held, places_held, placed, limit_rows, found_ready = results
            held = {row[0] for row in (*limits_held, *places_held)}
            limits = with_key_limits(self.limits(now, limit_rows), [name for (name,) in placed])
            ready = [name for (name,) in found_ready]
            # Not locked: paused, or its first job came due after the locks were taken.
            recheck = Admitted(0, now + UNSTARTED_RECHECK_MS)
            decided = {
                name: recheck if name in ready and not limit.paused else Admitted(0)
                for name, limit in limits.items()
                if name not in held
            }
            found, opens_at = self.choose(request, queues_of(request, lambda: ready), limits, now=now, decided=decided)
            chosen = [row[1] for row in found]
            claim = order._replace(now=now).query(SQL["candidates_chosen"], chosen=chosen)
            claims = claims_of(in_order(self._db.all(*claim))) if chosen else []
            self.note_starts(claims, limits, now)
        if len(claims) < len(found):  # other transactions have locked some, and send no wake-up if they leave them
            opens_at = earliest(opens_at, now + UNSTARTED_RECHECK_MS)
        return LimitedClaim(claims, limits, opens_at)

    def read_heads(self, slots: Mapping[str, int]) -> dict[str, list[Row]]:
        heads: dict[str, list[Row]] = {name: [] for name in slots}
        for row in self._tx.all("heads", {"queues": list(slots), "places": list(slots.values())}):
            heads[row[2]].append(row)
        return heads

    def running(self, queue: str, keys: Sequence[str]) -> Mapping[str, int]:
        return dict(self._tx.all("running_of_keys", {"queue": queue, "keys": keys})) if keys else {}

    def page_size(self, missing: int, blocked: int) -> int:
        # Usually the first jobs have free slots. Otherwise read many at once: each read is a round trip.
        return MAX_KEY_BLOCKED if blocked else missing
