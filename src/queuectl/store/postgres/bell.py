"""Waking a worker from another machine: LISTEN on a connection of its own.

What is waited on is a set that holds the connection's socket (epoll), not the socket: the worker sleeps on one descriptor
for its whole life, while the connection behind it may be lost and made again. A bell without a connection never rings.
"""

from __future__ import annotations

import select
from contextlib import suppress
from typing import Final

import psycopg

from queuectl import errors
from queuectl.store.ids import new_tokens
from queuectl.store.postgres.connection import Connection, Question
from queuectl.store.postgres.session import Wire

PATIENCE: Final = 2.0  # how long to wait for a sign of life of the connection
POOLED: Final = "notifications do not come through (a pooler in transaction mode?): workers poll"
LOST: Final = "the connection for notifications is lost: workers poll until it is back"


class NotifyBell:
    """`silent_because`: why it never rings now, for whoever tells people; None if it does."""

    def __init__(self, db: Connection) -> None:
        self._db = db
        self._set = select.epoll()
        self._wire: Wire | None = None
        self._heard: set[str] = set()
        self.silent_because: str | None = None
        try:
            self._listen()
        except BaseException:
            self.close()
            raise

    @property
    def is_silent(self) -> bool:
        return self.silent_because is not None

    def fileno(self) -> int:
        return self._set.fileno()

    def hush(self) -> bool:
        # Nothing here: not worth a round trip. What the server is about to send will wake the worker then.
        return bool(self._wire is not None and self._set.poll(0) and self.catch_up())

    def catch_up(self) -> bool:
        """As `hush`, and nothing comes late: whatever was rung before this call is heard by it.

        A round trip: who rings has signalled this session's server process before its commit returns, and that one sends
        all notes before it is ready for more. Without it those of one burst, which arrive one by one, would each wake the
        worker again.
        """
        if self._wire is None:
            return False
        try:
            self._wire.execute("select 1")
        except psycopg.Error:
            self._lose(LOST)
            return True  # whatever came last may have been lost with the connection
        rang, self._heard = bool(self._heard), set()
        return rang

    def mend(self) -> None:
        """Listen again if the connection was lost. For whoever comes by now and then: a failure waits for the next time."""
        if self.silent_because == LOST:
            with suppress(errors.Unavailable):
                self._listen()

    def close(self) -> None:
        self._lose(None)
        if not self._set.closed:
            self._set.close()

    def _listen(self) -> None:
        """Raises an error of ours if there is no connection to be had."""
        wire = self._db.new_session()
        wire.patience = PATIENCE
        wire.add_notify_handler(lambda note: self._heard.add(note.payload))
        self._wire = wire
        self._set.register(wire.pgconn.socket, select.EPOLLIN)
        self.silent_because = None
        try:
            wire.execute("listen queuectl")
            if self._hears(wire):
                # This session is ours alone, and idle for as long as there is nothing to do.
                wire.execute("set idle_session_timeout = 0")
            else:
                # Whoever has that session next should not hear it either. As likely as not it is the one that answers now.
                wire.execute("unlisten queuectl")
                self._lose(POOLED)
        except psycopg.Error:
            self._lose(LOST)
        self._heard.clear()

    def _hears(self, wire: Wire) -> bool:
        """Whether what the store's own connection says arrives here. Behind a pooler in transaction mode it does not: the
        session that listens is not ours any more."""
        (word,) = new_tokens(1)
        self._db.transact([Question("select pg_notify('queuectl', %(word)s)", {"word": word})])
        wire.execute("select 1")  # as in catch_up
        return word in self._heard

    def _lose(self, why: str | None) -> None:
        wire, self._wire, self.silent_because = self._wire, None, why
        if wire is None:
            return
        with suppress(
            psycopg.Error, OSError, ValueError
        ):  # libpq may have closed the socket, which takes it out of the set
            self._set.unregister(wire.pgconn.socket)
        wire.close()
