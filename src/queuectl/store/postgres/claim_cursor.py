"""Where a claim begins to read a queue while another session holds a transaction open.

Normally a claim reads a queue from its beginning. But while a transaction is held open (a forgotten `begin`, a long report, a replica),
PostgreSQL cannot remove what was claimed since, and each claim steps over all of it. So once a claim has been slow, the store remembers for
a while up to where each queue is empty, and begins there. `valid_cursors` checks that this is still true.

A cursor is known in two ways. Jobs that a claim has taken are behind it; but so is a job that was skipped because another transaction had locked
it and then left it, so that holds for a second only. The head of a queue, locked or not, has nothing before it; that holds for longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from queuectl.clock import SystemClock

# What a claim takes on the server if it has to step over some thousand dead rows. Without them it takes about 1 ms.
SLOW_CLAIM_MS: Final = 5.0
# Then a claim from the beginning finds out whether cursors are still needed.
NEEDED_SECONDS: Final = 30.0
TAKEN_SECONDS: Final = 1.0
# Not forever: behind a pooler another server may have taken over, with other transaction numbers.
HEAD_SECONDS: Final = 30.0
END: Final = 2**63 - 1  # rank and seq behind every job

QueueName = str | None  # None: all queues in one order


class _Cursor(NamedTuple):
    rank: int
    seq: int
    number: int  # of the claim that set it: a later one had seen more
    seen: str  # the transactions that had ended before that claim


class _Cursors(dict[QueueName, _Cursor]):
    """Cursors that are forgotten together after some seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since = 0.0

    def drop_old(self, now: float) -> None:
        if now - self._since > self._seconds:
            self.clear()
            self._since = now


class ClaimCursor:
    def __init__(self) -> None:
        self._clock = SystemClock()  # of this host: these are not times of the store
        self._needed_until = 0.0
        self._claims = 0
        self._session = 0
        self._taken = _Cursors(TAKEN_SECONDS)
        self._heads = _Cursors(HEAD_SECONDS)

    @property
    def is_needed(self) -> bool:
        return self._clock.monotonic() < self._needed_until

    def note_claim(self, milliseconds: float) -> None:
        """What a claim from the beginning took on the server."""
        if milliseconds > SLOW_CLAIM_MS:
            self._needed_until = self._clock.monotonic() + NEEDED_SECONDS

    def parameters(self, queues: tuple[str, ...] | None, *, session: int = 0) -> dict[str, Any]:
        """The values of `valid_cursors`. `queues` as in ClaimRequest; `session`: the number of the session with the server."""
        self._forget(session)
        names = _names(queues)
        cursors = [self._taken.get(name, self._heads.get(name)) for name in names]
        # The oldest snapshot is right for all: a claim that found enough in the first queues has not read the others.
        oldest = min(
            (cursor for cursor in cursors if cursor is not None), key=lambda cursor: cursor.number, default=None
        )
        return {
            "queues": names,
            "cursor_ranks": [None if cursor is None else cursor.rank for cursor in cursors],
            "cursor_seqs": [None if cursor is None else cursor.seq for cursor in cursors],
            "seen": "1:1:" if oldest is None else oldest.seen,
        }

    def wants_heads(self, queues: tuple[str, ...] | None) -> bool:
        """Whether the head of some queue is not known well enough: to be asked with the same parameters."""
        return not all(name in self._taken for name in _names(queues))

    def learn(
        self,
        queues: tuple[str, ...] | None,
        claimed: Sequence[tuple[str, int, int]],
        *,
        seen: str,
        heads: Iterable[tuple[int, int | None, int | None]] = (),
        session: int = 0,
    ) -> None:
        """What a claim found: the queue, rank and seq of each job, in order. `seen`: the transactions that had ended before it; `heads`: the rows of
        `queue_heads`. A queue that gave nothing keeps its cursor: it may not have been read."""
        if self._session != session:
            return  # the claim was built on cursors of an earlier session
        self._claims += 1
        for queue, rank, seq in claimed:
            self._taken[None if queues is None else queue] = _Cursor(rank, seq, self._claims, seen)
        names = _names(queues)
        for turn, head_rank, head_seq in heads:
            before = (END, END) if head_rank is None or head_seq is None else (head_rank, head_seq - 1)
            self._heads[names[turn - 1]] = _Cursor(*before, self._claims, seen)

    def _forget(self, session: int) -> None:
        now = self._clock.monotonic()
        self._taken.drop_old(now)
        self._heads.drop_old(now)
        if session != self._session:
            # Another server may have taken over, and count its transactions from an earlier one.
            self._session = session
            self._taken.clear()
            self._heads.clear()


def _names(queues: tuple[str, ...] | None) -> list[QueueName]:
    return [None] if queues is None else list(dict.fromkeys(queues))
