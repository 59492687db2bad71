"""A connection to a PostgreSQL server: transactions in one round trip, and reconnecting after it was lost.

Nothing here relies on a session: behind a pooler each transaction may run in another one. So settings are made per transaction
(`enter`), no transaction is open between two calls, and prepared statements are disabled if they get lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import sql

from queuectl.clock import Clock
from queuectl.store.address import PostgresUrl
from queuectl.store.conflicts import TransactionConflict
from queuectl.store.postgres.errors import ConnectionLost, translate
from queuectl.store.postgres.session import (
    MARGIN_SECONDS,
    STATEMENT_SECONDS,
    Backoff,
    Session,
    connect,
    is_disconnected,
    is_idle,
)
from queuectl.store.statements import Statements, with_pyformat
from queuectl.store.transactions import Parameters, Query
from queuectl.store.types import Row

# Without comments: psycopg caches the parsed form of short statements only.
SQL: Final = Statements(__file__, adapt=with_pyformat)

# The isolation level is set, but not the access mode: providers set default_transaction_read_only when a disk is full.
READ: Final = "begin isolation level read committed read only"
WRITE: Final = "begin isolation level read committed"
SNAPSHOT: Final = "begin isolation level repeatable read read only"
# Before `enter`, which a server with jit_above_cost = 0 would compile itself. SET is not planned, so it is never compiled.
NO_JIT: Final = "set local jit = off"
LOCK_SECONDS: Final = 5.0
TRANSACTION_STATEMENTS: Final = 4  # the time limit of a transaction, in time limits of a statement
LONG_SECONDS: Final = 600.0  # for statements on a whole table: a migration, a reset, a change of ageing, a backup


class Result(NamedTuple):
    rows: list[Row]
    rowcount: int


class Connection:
    """A connection with our settings, opened when it is first used and again when it was lost, with exponential backoff.

    `on_connect` is called with each new session, before anything else uses it. `seconds`: the time limit of a statement.
    """

    def __init__(
        self,
        address: PostgresUrl,
        *,
        clock: Clock,
        on_connect: Callable[[Connection], None] | None = None,
        seconds: float = STATEMENT_SECONDS,
    ) -> None:
        self.address = address
        self.seconds = seconds
        self.shown = address.shown()
        self.clock = clock
        self._on_connect = on_connect
        self.session_number = 0  # the number of the current or last session
        self.name: str | None = None  # application_name of each transaction; None: that of the session
        self._session: Session | None = None
        self.is_inside = False  # of a transaction
        self._deferred: list[Query] = []  # of the transaction
        self._prepare_after: int | None = 3
        self._backoff = Backoff()

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def duplicate(self) -> Connection:
        """Another connection to the same database, for a long read while this one is used."""
        return Connection(self.address, clock=self.clock, seconds=self.seconds)

    def query(self, *queries: Query, plan_freely: bool = False) -> list[list[Row]]:
        """The rows of some reads, all as of one moment. Sent once more if the connection turns out to be lost. `plan_freely`: for
        reads of whole tables, see `enter`."""
        if self.is_inside and len(queries) == 1:
            return [self.all(*queries[0])]
        if self.is_inside:
            with self._inside().pipeline():
                cursors = [self._inside().execute(_own(text), values or None) for text, values in queries]
            return [_rows(cursor) for cursor in cursors]
        begin = SNAPSHOT if len(queries) > 1 else READ
        began = Session.monotonic()
        try:
            results = self._send(queries, begin=begin, plan_freely=plan_freely)
        except (ConnectionLost, TransactionConflict):
            if Session.monotonic() - began > MARGIN_SECONDS:
                raise  # a second wait would be too long for a command
            results = self._send(queries, begin=begin, plan_freely=plan_freely)
        return [result.rows for result in results]

    def write(self, queries: Sequence[Query], *, after: Sequence[Query] = ()) -> list[Result]:
        """A transaction in one round trip: its statements do not depend on each other's results. `after`: sent along, in a transaction
        of their own after the commit."""
        return self._send(queries, begin=WRITE, after=after)

    def _send(
        self, queries: Sequence[Query], *, begin: str, after: Sequence[Query] = (), plan_freely: bool = False
    ) -> list[Result]:
        with self._use_session() as session:
            with _finish(session, after) as finish, session.pipeline():
                session.execute(_own(begin))
                session.execute(NO_JIT)
                session.execute(*self._enter(self.seconds, plan_freely=plan_freely))
                cursors = [session.execute(_own(text), values or None) for text, values in queries]
                finish()
            return [Result(_rows(cursor), cursor.rowcount) for cursor in cursors]

    @contextmanager
    def transaction(
        self,
        *first: Query,
        after: Sequence[Query] = (),
        begin: str = WRITE,
        seconds: float | None = None,
        plan_freely: bool = False,
    ) -> Iterator[list[list[Row]]]:
        """Commits at the end, rolls back on any exception. `first`: sent with its beginning; yields their rows. `after`: as in `write`."""
        seconds = self.seconds if seconds is None else seconds
        with self._use_session(patience=seconds + MARGIN_SECONDS) as session:
            with session.pipeline():
                session.execute(_own(begin))
                session.execute(NO_JIT)
                session.execute(*self._enter(seconds, plan_freely=plan_freely))
                cursors = [session.execute(_own(text), values or None) for text, values in first]
            self.is_inside, self._deferred = True, []
            try:
                yield [_rows(cursor) for cursor in cursors]
            finally:
                self.is_inside = False
            with _finish(session, after) as finish, session.pipeline():
                self._send_deferred(session)
                finish()

    def defer(self, text: str, values: Parameters = ()) -> None:
        """Within a transaction: sent with the commit, or before the next statement with a result."""
        self._deferred.append(Query(text, values))

    def all(self, text: str, values: Parameters = ()) -> list[Row]:
        """Within a transaction."""
        return _rows(self._inside().execute(_own(text), values or None))

    def one(self, text: str, values: Parameters = ()) -> Row | None:
        return next(iter(self.all(text, values)), None)

    def value(self, text: str, values: Parameters = ()) -> Any:
        """The first column of the first row, None if there is none."""
        return next((row[0] for row in self.all(text, values)), None)

    def execute(self, text: str, values: Parameters = ()) -> int:
        """Within a transaction: the number of changed rows."""
        return self._inside().execute(_own(text), values or None).rowcount

    def executemany(self, text: str, rows: Iterable[Parameters]) -> None:
        """Within a transaction, in one round trip."""
        with self._inside().cursor() as cursor:
            cursor.executemany(_own(text), rows)

    def script(self, text: str) -> None:
        """Within a transaction: several statements without values."""
        self._inside().execute(text.encode())

    def copy(self, text: str, rows: Iterable[Row]) -> None:
        """Within a transaction: a stream of rows into a table."""
        with self._inside().cursor() as cursor, cursor.copy(_own(text)) as stream:
            for row in rows:
                stream.write_row(row)

    def pages(self, text: str, values: Parameters = (), *, size: int) -> Iterator[list[Row]]:
        """Within a transaction: all rows, `size` at a time, as they were when the first was read."""
        with self._inside().cursor("pages") as cursor:
            cursor.execute(_own(text), values or None)
            while page := cursor.fetchmany(size):
                yield page

    def server(self) -> tuple[int, str]:
        """The version of the server (16) and the encoding of the database."""
        info = self._inside().info
        return info.server_version // 10000, info.parameter_status("server_encoding") or ""

    # ── the session ─────────────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def _use_session(self, *, patience: float | None = None) -> Iterator[Session]:
        """The session. Its errors are translated, and leave no transaction open."""
        assert not self.is_inside, "one transaction at a time"
        session = self.open()
        session.patience = self.seconds + MARGIN_SECONDS if patience is None else patience
        try:
            yield session
        except psycopg.Error as exc:
            if exc.sqlstate in {"26000", "42P05"}:
                self._prepare_after = None  # there is a pooler: the prepared statement is in another session
                session.close()
            self._clear(session, was_blocked=exc.sqlstate in {"55P03", "57014"})
            raise translate(exc, self.shown) from exc
        except BaseException:
            self._clear(session)
            raise

    def _clear(self, session: Session, *, was_blocked: bool = False) -> None:
        """Leave no transaction open, or no session. `was_blocked`: perhaps by a process that was stopped during a transaction."""
        if not session.closed and not is_idle(session):
            session.patience = MARGIN_SECONDS
            with suppress(psycopg.Error):  # nothing is committed either way; the first error matters
                session.execute("rollback")
            if not is_idle(session):
                session.close()
        if was_blocked and not session.closed:
            session.patience = MARGIN_SECONDS
            with suppress(psycopg.Error):
                session.execute(_own(SQL["end_stalled"]), {"stalled_ms": TRANSACTION_STATEMENTS * self.seconds * 1000})
        if session.closed:
            self._session = None

    def _inside(self) -> Session:
        assert self._session is not None, "only within a transaction"
        if self._deferred:
            with self._session.pipeline():
                self._send_deferred(self._session)  # their errors are raised here
        return self._session

    def _enter(self, seconds: float, *, plan_freely: bool) -> tuple[sql.SQL, dict[str, str | None]]:
        return _own(SQL["enter"]), {
            "name": self.name,
            "statement_ms": f"{seconds * 1000:.0f}",
            "lock_ms": f"{LOCK_SECONDS * 1000:.0f}",
            "transaction_ms": "0" if seconds >= LONG_SECONDS else f"{TRANSACTION_STATEMENTS * seconds * 1000:.0f}",
            "plan_freely": "on" if plan_freely else "off",
        }

    def _send_deferred(self, session: Session) -> None:
        waiting, self._deferred = self._deferred, []
        for text, values in waiting:
            session.execute(_own(text), values or None)

    def open(self) -> Session:
        """The session, opened if there is none."""
        if self._session is not None and is_disconnected(self._session):
            self.close()
        if self._session is None:
            self._session = self._backoff.attempt(self.new_session)
            self.session_number += 1
            if self._on_connect is not None:
                try:
                    self._on_connect(self)
                except BaseException:
                    self.close()
                    raise
        return self._session

    def new_session(self) -> Session:
        return connect(self.address, prepare_after=self._prepare_after, seconds=self.seconds)


@contextmanager
def _finish(session: Session, after: Sequence[Query]) -> Iterator[Callable[[], None]]:
    """Commit, then run `after`, whose errors do not matter. There is no wait in between: if the commit fails, the server skips the
    rest of the pipeline."""
    commits: list[psycopg.Cursor[Row]] = []

    def finish() -> None:
        commits.append(session.execute("commit"))
        if after:
            session.execute(WRITE)
            session.execute(NO_JIT)
            for text, values in after:
                session.execute(_own(text), values or None)
            session.execute("commit")

    try:
        yield finish
    except psycopg.Error:
        if not commits or commits[0].statusmessage != "COMMIT":
            raise


def _own(text: str) -> sql.SQL:
    """psycopg wants literals, so that no value gets into a statement. Ours are files and constants of this package."""
    return sql.SQL(text)


def _rows(cursor: psycopg.Cursor[Row]) -> list[Row]:
    return cursor.fetchall() if cursor.description is not None else []
