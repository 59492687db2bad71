"""Wake-ups for workers on any host: LISTEN and NOTIFY on a connection of its own.

The worker waits on an epoll descriptor that contains the socket of the connection, not on the socket: the descriptor stays the same while
the connection may be lost and opened again. Without a connection there are no wake-ups.
"""

from __future__ import annotations

import select
from contextlib import suppress
from typing import Final

import psycopg

from queuectl import errors
from queuectl.store.enqueue import new_tokens
from queuectl.store.postgres.connection import Connection
from queuectl.store.postgres.session import Session
from queuectl.store.transactions import Query

PATIENCE: Final = 2.0  # seconds to wait for an answer on this connection
POOLED: Final = "notifications do not come through (a pooler in transaction mode?): workers poll"
LOST: Final = "the connection for notifications is lost: workers poll until it is back"


class NotifyWakeup:
    """`polling_because`: why no notifications arrive now; None if they do."""

    def __init__(self, db: Connection) -> None:
        self._db = db
        self._set = select.epoll()
        self._session: Session | None = None
        self._received: set[str] = set()
        self.polling_because: str | None = None
        try:
            self._listen()
        except BaseException:
            self.close()
            raise

    def fileno(self) -> int:
        return self._set.fileno()

    def drain(self) -> bool:
        # Without data on the socket no round trip: a later notification wakes the worker then.
        return bool(self._session is not None and self._set.poll(0) and self.catch_up())

    def catch_up(self) -> bool:
        """As `drain`, and includes every notification that was sent before this call.

        Needs a round trip: the sender has signalled the server process of this session before its commit returns, and that process
        sends all notifications before it is ready for more. Without it, those of one burst arrive one by one, and each would
        wake the worker again.
        """
        if self._session is None:
            return False
        try:
            self._session.execute("select 1")
        except psycopg.Error:
            self._lose(LOST)
            return True  # notifications may have been lost with the connection
        has_any, self._received = bool(self._received), set()
        return has_any

    def reconnect(self) -> None:
        """Listen again if the connection was lost. Called at heartbeats: after a failure the next one tries again."""
        if self.polling_because == LOST:
            with suppress(errors.Unavailable):
                self._listen()

    def close(self) -> None:
        self._lose(None)
        if not self._set.closed:
            self._set.close()

    def _listen(self) -> None:
        """Raises Unavailable if it cannot connect."""
        session = self._db.new_session()
        session.patience = PATIENCE
        session.add_notify_handler(lambda note: self._received.add(note.payload))
        self._session = session
        self._set.register(session.pgconn.socket, select.EPOLLIN)
        self.polling_because = None
        try:
            # First of all: the session is idle already while the main connection sends its notification.
            session.execute("set idle_session_timeout = 0")
            session.execute("listen queuectl")
            if not self._receives(session):
                # Other users of that session should not receive notifications. Probably it is the one that answers now.
                session.execute("unlisten queuectl")
                session.execute("reset idle_session_timeout")
                self._lose(POOLED)
        except psycopg.Error:
            self._lose(LOST)
        self._received.clear()

    def _receives(self, session: Session) -> bool:
        """Whether a notification from the main connection arrives here. Behind a pooler in transaction mode it does not: another client
        has the session that listens."""
        (word,) = new_tokens(1)
        self._db.write([Query("select pg_notify('queuectl', %(word)s)", {"word": word})])
        session.execute("select 1")  # as in catch_up
        return word in self._received

    def _lose(self, why: str | None) -> None:
        session, self._session, self.polling_because = self._session, None, why
        if session is None:
            return
        with suppress(
            psycopg.Error, OSError, ValueError
        ):  # libpq may have closed the socket, which takes it out of the set
            self._set.unregister(session.pgconn.socket)
        session.close()
