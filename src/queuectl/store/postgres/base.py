"""What every part of the PostgreSQL store stands on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from queuectl.clock import SystemClock
from queuectl.job.ageing import format_ageing, parse_ageing
from queuectl.job.audit import NOTHING, Act, Actor, record_of
from queuectl.job.newjob import QueueDefaults
from queuectl.job.rank import Ageing, ByTime, Strict
from queuectl.store.counting import Moves
from queuectl.store.entry import Keys, defaults_of
from queuectl.store.postgres.connection import SQL, Connection, Question

RINGS_AT_ONCE: Final = 20
RINGS_A_SECOND: Final = 50.0


class PostgresBase:
    def __init__(self, db: Connection) -> None:
        self._db = db
        self._clock = db.clock
        self._rings = _Allowance()
        self.actor: Actor | None = None

    def close(self) -> None:
        self._db.close()

    def config(self) -> dict[str, str]:
        (rows,) = self._db.ask(Question(SQL["config"]))
        return dict(rows)

    def queue_defaults(self) -> QueueDefaults:
        (rows,) = self._db.ask(Question(SQL["queue_defaults"]))
        return defaults_of(rows)

    def _admit(self, keys: Keys) -> None:
        """Within a transaction that has made room for these keys, or may have."""
        if keys:
            self._db.ask(*admit(keys))

    def _ring(self) -> Sequence[Question]:
        """What wakes the workers, to be sent after a commit: a worker that wakes before would find nothing.

        A hint, and not more of it than workers can use: each ring wakes every worker of the store. One that is left out
        comes after many in a short time; whoever slept through those still looks every poll-interval.
        """
        return (Question(SQL["ring"]),) if self._rings.take() else ()

    @contextmanager
    def _moving(self, *first: Question, ring: bool = False, seconds: float | None = None) -> Iterator[Moves]:
        """A write that takes jobs from state to state. `first`: the locks that it needs."""
        moves = Moves()
        with self._db.transaction(*first, after=self._ring() if ring else (), seconds=seconds):
            yield moves
            self._count(moves)

    def _record(self, act: Act | None, by: Actor | None = None) -> None:
        """Within the transaction that does it, when all else has been done."""
        by = by or self.actor
        if by is not None and act is not None and act.subjects:
            self._db.later(*self._to_record(act, by))

    def _to_record(self, act: Act, by: Actor) -> Question:
        values = {"nothing": NOTHING, "at": self._clock.now_ms(), "record": record_of(by, act)}
        return Question(SQL["add_audit"], values)

    def _count(self, moves: Moves) -> None:
        """Within a transaction, when all has been done."""
        for row in moves.rows():
            self._db.later(SQL["moved"], row)


def admit(keys: Keys) -> list[Question]:
    """To be asked in this order, at the end of the transaction that has made room for these keys."""
    if not keys:
        return []
    queues = [queue for queue, _ in keys]
    lines = {"queues": sorted(set(queues))}
    hold = [Question(SQL["hold_lines"], lines), Question(SQL["hold_places"], lines)]
    return [*hold, Question(SQL["admit"], {"queues": queues, "keys": [key for _, key in keys]})]


def line_up_all(db: Connection) -> None:
    """All queues in which keys are limited."""
    per_key = dict.fromkeys((queue for (queue,) in db.all(SQL["placed_queues"])), None)
    per_key |= dict(db.all(SQL["per_key"]))
    for queue, limit in per_key.items():
        db.execute(SQL["line_up"], {"queue": queue, "per_key": limit})


def read_ageing(stored: str | None) -> Ageing:
    return Strict() if stored is None else parse_ageing(stored, subject="ageing")


def ageing_values(ageing: Ageing) -> dict[str, str | int]:
    """In the form that set_ageing.sql and rerank.sql compute with."""
    if isinstance(ageing, ByTime):
        return {"ageing": "time", "step_ms": ageing.step_ms}
    return {"ageing": format_ageing(ageing), "step_ms": 0}


class _Allowance:
    """So many at once, and so many a second in the long run."""

    def __init__(self) -> None:
        self._clock = SystemClock()  # of this machine, also where a test brings its own: this is no time of the store
        self._left = float(RINGS_AT_ONCE)
        self._seen = self._clock.monotonic()

    def take(self) -> bool:
        now = self._clock.monotonic()
        self._left = min(RINGS_AT_ONCE, self._left + (now - self._seen) * RINGS_A_SECOND)
        self._seen = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
