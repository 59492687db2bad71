"""Transactions of the PostgreSQL store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any, Final

from queuectl.clock import SystemClock
from queuectl.jobs.priority import Ageing
from queuectl.store.postgres.connection import LONG_SECONDS, SNAPSHOT, SQL, Connection
from queuectl.store.queues import ageing_values
from queuectl.store.transactions import Keys, Parameters, Query, Transactions, Transitions
from queuectl.store.types import Row

NOTIFICATION_BURST: Final = 20
NOTIFICATIONS_PER_SECOND: Final = 50.0


class PostgresTransactions(Transactions):
    long_seconds = LONG_SECONDS
    locked_schedule = "hold_schedule"

    def __init__(self, db: Connection) -> None:
        super().__init__(db, SQL, db.clock)
        self.db = db
        self._notifications = _TokenBucket()

    @contextmanager
    def write(
        self,
        *locks: str | tuple[str, Parameters],
        notify: bool = False,
        seconds: float | None = None,
        plan_freely: bool = False,
    ) -> Iterator[Transitions]:
        transitions = Transitions()
        first = [Query(SQL[lock]) if isinstance(lock, str) else Query(SQL[lock[0]], lock[1]) for lock in locks]
        after = self.notification() if notify else ()
        with self.db.transaction(*first, after=after, seconds=seconds, plan_freely=plan_freely):
            yield transitions
            self.count(transitions)

    def count(self, transitions: Transitions) -> None:
        """At the end of a transaction."""
        self.defer_each("moved", transitions.rows())

    def notification(self) -> Sequence[Query]:
        """Wakes the workers, to be sent after a commit: a worker that wakes up before would find no jobs.

        Rate limited, since each one wakes every worker. A wake-up that is left out comes after many others, and workers also poll
        every poll-interval.
        """
        return (Query(SQL["notify"]),) if self._notifications.take() else ()

    @contextmanager
    def snapshot(self, seconds: float | None = None, *, plan_freely: bool = False) -> Iterator[None]:
        if self.db.is_inside:
            yield
        else:
            with self.db.transaction(begin=SNAPSHOT, seconds=seconds, plan_freely=plan_freely):
                yield

    def long_snapshot(self) -> Any:
        return self.snapshot(LONG_SECONDS, plan_freely=True)

    @contextmanager
    def read_pages(
        self, text: str, values: Parameters, *, size: int, plan_freely: bool = True
    ) -> Iterator[tuple[Transactions, Iterable[list[Row]]]]:
        with self.other_connection(plan_freely=plan_freely) as other:
            yield other, other.db.pages(text, values, size=size)

    @contextmanager
    def other_connection(self, *, plan_freely: bool = True) -> Iterator[PostgresTransactions]:
        """A second connection, for reads as of one moment."""
        with (
            closing(self.db.duplicate()) as db,
            db.transaction(begin=SNAPSHOT, seconds=LONG_SECONDS, plan_freely=plan_freely),
        ):
            yield PostgresTransactions(db)

    def write_each(self, name: str, rows: Sequence[Mapping[str, Any]], **shared: Any) -> None:
        """In one statement: each value that differs becomes an array."""
        if rows:
            self.execute(name, {**shared, **{column: [row[column] for row in rows] for column in rows[0]}})

    def array(self, values: Iterable[Any]) -> list[Any]:
        return list(values)

    def write_ageing(self, ageing: Ageing) -> None:
        self.execute("set_ageing", ageing_values(ageing))

    def admit(self, keys: Keys) -> None:
        if keys:
            self.db.query(*admission_queries(keys))

    def lock_keys(self, keys: Sequence[str]) -> None:
        if keys:
            self.all("take_keys", {"keys": list(keys)})


def admission_queries(keys: Keys) -> list[Query]:
    """In this order, at the end of the transaction that has freed slots of these concurrency keys."""
    if not keys:
        return []
    queues = [queue for queue, _ in keys]
    locks = {"queues": sorted(set(queues))}
    hold = [Query(SQL["lock_keyed_queues"], locks), Query(SQL["hold_key_limits"], locks)]
    return [*hold, Query(SQL["admit"], {"queues": queues, "keys": [key for _, key in keys]})]


class _TokenBucket:
    """A burst, and a rate in the long run."""

    def __init__(self) -> None:
        self._clock = SystemClock()  # of this host, also in tests: not a time of the store
        self._left = float(NOTIFICATION_BURST)
        self._seen = self._clock.monotonic()

    def take(self) -> bool:
        now = self._clock.monotonic()
        self._left = min(NOTIFICATION_BURST, self._left + (now - self._seen) * NOTIFICATIONS_PER_SECOND)
        self._seen = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
