"""What every part of the SQLite store stands on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from queuectl import errors
from queuectl.clock import Clock
from queuectl.job.ageing import parse_ageing
from queuectl.job.audit import NOTHING, Act, Actor, Entry, ends_of, link_hash, record_of
from queuectl.job.newjob import QueueDefaults
from queuectl.job.rank import Ageing, Strict
from queuectl.store.counting import Moves
from queuectl.store.entry import Keys, defaults_of
from queuectl.store.sqlite.bell import ring
from queuectl.store.sqlite.connection import MEMORY, Connection
from queuectl.store.sqlite.connection import SQL as SQL


def read_ageing(stored: str | None) -> Ageing:
    return Strict() if stored is None else parse_ageing(stored, subject="ageing")


class SqliteBase:
    def __init__(self, db: Connection, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self.actor: Actor | None = None

    def close(self) -> None:
        self._db.close()

    def config(self) -> dict[str, str]:
        return dict(self._db.all(SQL["config"]))

    def queue_defaults(self) -> QueueDefaults:
        found = self._db.all(SQL["queue_defaults"])
        return defaults_of(found)

    @contextlib.contextmanager
    def _moving(self) -> Iterator[Moves]:
        """A transaction that changes states. It has to count each change; the counts are written with it."""
        with self._db.transaction():
            moves = Moves()
            yield moves
            self._db.executemany(SQL["moved"], moves.rows())

    def _record(self, act: Act | None, by: Actor | None = None) -> None:
        """Within the transaction that does it."""
        by = by or self.actor
        if by is None or act is None or not act.subjects:
            return
        record, at = record_of(by, act), self._clock.now_ms()
        head = ends_of(self._db.one(SQL["audit_ends"])).head
        entry = Entry(head.seq + 1, at, record, link_hash(head.hash, head.seq + 1, at, record))
        self._db.execute(SQL["add_audit"], entry._asdict())
        self._db.execute(SQL["move_audit_head"], {"nothing": NOTHING, "seq": entry.seq, "hash": entry.hash})

    def _ageing(self) -> Ageing:
        return read_ageing(self._db.value(SQL["ageing"]))

    def _last_seq(self) -> int:
        return int(self._db.value(SQL["last_seq"]))

    def _admit(self, keys: Keys) -> None:
        """Within a transaction that has made room for these keys, or may have."""
        self._db.executemany(SQL["admit"], [{"queue": queue, "key": key} for queue, key in keys])

    def _ring(self) -> None:
        """Wake the workers. After the commit: a worker that wakes before would find nothing."""
        if self._db.path == MEMORY:
            return
        with contextlib.suppress(errors.Unavailable):  # a hint; what was to be written is written
            ring(self._db.all(SQL["bells"]))
