"""What every part of the SQLite store stands on."""

from __future__ import annotations

import contextlib
from typing import Final

from queuectl import errors
from queuectl.clock import Clock
from queuectl.job.ageing import parse_ageing
from queuectl.job.rank import Ageing, Strict
from queuectl.store.sqlite.bell import ring
from queuectl.store.sqlite.connection import MEMORY, Connection
from queuectl.store.statements import Statements

SQL: Final = Statements(__file__)


class SqliteBase:
    def __init__(self, db: Connection, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    def close(self) -> None:
        self._db.close()

    def config(self) -> dict[str, str]:
        return dict(self._db.all(SQL["config"]))

    def _ageing(self) -> Ageing:
        stored = self._db.value(SQL["ageing"])
        return Strict() if stored is None else parse_ageing(stored, subject="ageing")

    def _last_seq(self) -> int:
        return int(self._db.value(SQL["last_seq"]))

    def _ring(self) -> None:
        """Wake the workers. After the commit: a worker that wakes before would find nothing."""
        if self._db.path == MEMORY:
            return
        with contextlib.suppress(errors.Unavailable):  # a hint; what was to be written is written
            ring(self._db.all(SQL["bells"]))
