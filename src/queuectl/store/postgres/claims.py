"""Claims: the statements that give jobs to a worker, and what they return. See claim.sql."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from queuectl.job.model import Claim
from queuectl.store import rows
from queuectl.store.postgres.claim_cursor import ClaimCursor
from queuectl.store.postgres.connection import SQL, Question
from queuectl.store.postgres.session import Row
from queuectl.store.protocol import ClaimRequest


class ClaimOrder(NamedTuple):
    """What a worker asks for, with a token for each job, at this moment."""

    worker: str
    request: ClaimRequest
    tokens: Sequence[str]
    now: int

    def question(self, candidates: str, **values: Any) -> Question:
        """`candidates`: the text of one of the files that claim.sql names; `values`: its parameters."""
        known = {
            "worker": self.worker,
            "host": self.request.host,
            "logs": self.request.logs,
            "tokens": self.tokens,
            "now": self.now,
        }
        return Question(claim_text(candidates), {**known, **values})

    def questions(self, cursor: ClaimCursor, *, session: int) -> dict[str, Question]:
        """To be sent together: the claim of jobs, and what the cursor has to know."""
        limit, queues = self.request.limit, self.request.queues
        if not cursor.is_needed:
            if queues is None:
                return {"claim": self.question(SQL["candidates_any_queue"], limit=limit)}
            return {
                "claim": self.question(SQL["candidates_named_queues"], limit=limit, queues=list(dict.fromkeys(queues)))
            }
        begin = cursor.parameters(queues, session=session)
        asked = {"claim": self.question(SQL["candidates_from_cursor"], limit=limit, **begin)}
        if cursor.wants_heads(queues):
            asked["heads"] = Question(heads_text(), begin)
        return asked


@functools.cache
def claim_text(candidates: str) -> str:
    return SQL["claim"].replace("{candidates}", candidates.replace("{valid_cursors}", SQL["valid_cursors"]))


@functools.cache
def heads_text() -> str:
    return SQL["queue_heads"].replace("{valid_cursors}", SQL["valid_cursors"])


def in_order(claimed: Sequence[Row]) -> list[Row]:
    """The rows of claim.sql by their place, which is the first column."""
    return sorted(claimed, key=lambda row: int(row[0]))


def claims_of(found: Sequence[Row]) -> list[Claim]:
    """From the rows of claim.sql."""
    return [
        rows.claim(row[5:], token=row[2], run=row[3], log=row[4], **dict(zip(rows.BESIDE, row[19:24], strict=True)))
        for row in found
    ]


def positions_of(found: Sequence[Row]) -> list[tuple[str, int, int]]:
    """Queue, rank and seq, from the rows of claim.sql."""
    return [(row[10], row[1], row[5]) for row in found]
