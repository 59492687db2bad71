"""One connection to a server: opening it, transactions in one round trip, and coming back after it was lost.

Nothing here relies on a session: behind a pooler each transaction may run in another one. So settings are made for one
transaction (enter.sql), nothing is left open between two calls, and prepared statements are given up if they get lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import sql

from queuectl.clock import Clock
from queuectl.store.address import PostgresUrl
from queuectl.store.postgres.pause import Pause
from queuectl.store.postgres.session import MARGIN_SECONDS, STATEMENT_SECONDS, Row, Wire, connect, is_idle, was_hung_up
from queuectl.store.postgres.trouble import Clash, ConnectionLost, translate
from queuectl.store.statements import BareStatements

Parameters = Mapping[str, Any] | Sequence[Any]

# psycopg keeps what it has made of a statement only if it is short.
SQL: Final = BareStatements(__file__)

# The level is ours. Whether it may be written is not: providers set default_transaction_read_only when a disk is full.
READ: Final = "begin isolation level read committed read only"
WRITE: Final = "begin isolation level read committed"
SNAPSHOT: Final = "begin isolation level repeatable read read only"
LOCK_SECONDS: Final = 5.0
STALLED_TIMES: Final = 4  # the time limit of a transaction, in time limits of a statement
LONG_SECONDS: Final = 600.0  # for what goes through a whole table: a migration, a reset, a change of ageing, a backup


class Question(NamedTuple):
    """A statement of ours and its values."""

    text: str
    values: Parameters = ()


class Answer(NamedTuple):
    rows: list[Row]
    touched: int  # how many rows


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
        self.session = 0  # the number of the one that is open, or was last
        self.name: str | None = None  # of each transaction, for others to see; None: that of the session
        self._wire: Wire | None = None
        self._is_inside = False  # of a transaction
        self._later: list[Question] = []  # what is still to be sent of it
        self._prepare_after: int | None = 3
        self._pause = Pause()

    def open(self) -> None:
        """Connect now and not at the first use."""
        self._open()

    def close(self) -> None:
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    def beside(self) -> Connection:
        """Another connection to the same store, for a read that goes on while this one is used."""
        return Connection(self.address, clock=self.clock, seconds=self.seconds)

    # ── one round trip ──────────────────────────────────────────────────────────────────────────────────────────────

    def ask(self, *questions: Question, plan_freely: bool = False) -> list[list[Row]]:
        """The answers to some questions, all of one moment. Asked once more if the connection turns out to be lost.
        `plan_freely`: for what goes through a whole table, see enter.sql."""
        if self._is_inside:
            with self._inside().pipeline():
                cursors = [self._inside().execute(_own(text), values or None) for text, values in questions]
            return [_rows(cursor) for cursor in cursors]
        begin = SNAPSHOT if len(questions) > 1 else READ
        began = Wire.monotonic()
        try:
            answers = self._send(questions, begin=begin, plan_freely=plan_freely)
        except (ConnectionLost, Clash):
            if Wire.monotonic() - began > MARGIN_SECONDS:
                raise  # a second wait as long as the first would be too long for a command
            answers = self._send(questions, begin=begin, plan_freely=plan_freely)
        return [answer.rows for answer in answers]

    def transact(self, questions: Sequence[Question], *, after: Sequence[Question] = ()) -> list[Answer]:
        """A transaction whose statements need nothing of each other's answers. `after`: sent along, in a transaction of
        their own when this one is committed."""
        return self._send(questions, begin=WRITE, after=after)

    def _send(
        self, questions: Sequence[Question], *, begin: str, after: Sequence[Question] = (), plan_freely: bool = False
    ) -> list[Answer]:
        with self._session() as wire:
            with _finish(wire, after) as finish, wire.pipeline():
                wire.execute(_own(begin))
                wire.execute(*self._enter(self.seconds, plan_freely=plan_freely))
                cursors = [wire.execute(_own(text), values or None) for text, values in questions]
                finish()
            return [Answer(_rows(cursor), cursor.rowcount) for cursor in cursors]

    # ── several round trips ─────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def transaction(
        self,
        *first: Question,
        after: Sequence[Question] = (),
        begin: str = WRITE,
        seconds: float | None = None,
        plan_freely: bool = False,
    ) -> Iterator[list[list[Row]]]:
        """Commits at the end, rolls back on any exception. `first`: what to send along with its beginning, and whose answers
        are given; `after`: as in `transact`."""
        seconds = self.seconds if seconds is None else seconds
        with self._session(patience=seconds + MARGIN_SECONDS) as wire:
            with wire.pipeline():
                wire.execute(_own(begin))
                wire.execute(*self._enter(seconds, plan_freely=plan_freely))
                cursors = [wire.execute(_own(text), values or None) for text, values in first]
            self._is_inside, self._later = True, []
            try:
                yield [_rows(cursor) for cursor in cursors]
            finally:
                self._is_inside = False
            with _finish(wire, after) as finish, wire.pipeline():
                self._send_later(wire)
                finish()

    def later(self, text: str, values: Parameters = ()) -> None:
        """Within a transaction: sent along with the commit, or before the next statement that cannot wait."""
        self._later.append(Question(text, values))

    def all(self, text: str, values: Parameters = ()) -> list[Row]:
        """Within a transaction."""
        return _rows(self._inside().execute(_own(text), values or None))

    def one(self, text: str, values: Parameters = ()) -> Row | None:
        return next(iter(self.all(text, values)), None)

    def value(self, text: str, values: Parameters = ()) -> Any:
        """The first column of the first row, None if there is none."""
        row = self.one(text, values)
        return None if row is None else row[0]

    def execute(self, text: str, values: Parameters = ()) -> int:
        """Within a transaction. How many rows were touched."""
        return self._inside().execute(_own(text), values or None).rowcount

    def executemany(self, text: str, rows: Iterable[Parameters]) -> None:
        """Within a transaction, in one round trip."""
        with self._inside().cursor() as cursor:
            cursor.executemany(_own(text), rows)

    def script(self, text: str) -> None:
        """Within a transaction: several statements of ours, without values."""
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
    def _session(self, *, patience: float | None = None) -> Iterator[Wire]:
        """The session; whatever goes wrong with it comes out as an error of ours, and leaves no transaction open."""
        assert not self._is_inside, "one transaction at a time"
        wire = self._open()
        wire.patience = self.seconds + MARGIN_SECONDS if patience is None else patience
        try:
            yield wire
        except psycopg.Error as exc:
            if exc.sqlstate in {"26000", "42P05"}:
                self._prepare_after = None  # a pooler between us: what was prepared is in another session
                wire.close()
            self._clear(wire, was_hindered=exc.sqlstate in {"55P03", "57014"})
            raise translate(exc, self.shown) from exc
        except BaseException:
            self._clear(wire)
            raise

    def _clear(self, wire: Wire, *, was_hindered: bool = False) -> None:
        """Leave no transaction open, or no session. `was_hindered`: perhaps by one that was stopped while it sent a transaction."""
        if not wire.closed and not is_idle(wire):
            wire.patience = MARGIN_SECONDS
            with suppress(psycopg.Error):  # nothing is committed either way, and what went wrong first is the news
                wire.execute("rollback")
            if not is_idle(wire):
                wire.close()
        if was_hindered and not wire.closed:
            wire.patience = MARGIN_SECONDS
            with suppress(psycopg.Error):
                wire.execute(_own(SQL["end_stalled"]), {"stalled_ms": STALLED_TIMES * self.seconds * 1000})
        if wire.closed:
            self._wire = None

    def _inside(self) -> Wire:
        assert self._wire is not None, "only within a transaction"
        if self._later:
            with self._wire.pipeline():
                self._send_later(self._wire)  # what goes wrong with them shows here
        return self._wire

    def _enter(self, seconds: float, *, plan_freely: bool) -> tuple[sql.SQL, dict[str, str | None]]:
        return _own(SQL["enter"]), {
            "name": self.name,
            "statement_ms": f"{seconds * 1000:.0f}",
            "lock_ms": f"{LOCK_SECONDS * 1000:.0f}",
            "transaction_ms": "0" if seconds >= LONG_SECONDS else f"{STALLED_TIMES * seconds * 1000:.0f}",
            "plan_freely": "on" if plan_freely else "off",
        }

    def _send_later(self, wire: Wire) -> None:
        waiting, self._later = self._later, []
        for text, values in waiting:
            wire.execute(_own(text), values or None)

    def _open(self) -> Wire:
        if self._wire is not None and was_hung_up(self._wire):
            self.close()
        if self._wire is None:
            self._wire = self._pause.attempt(self.new_session)
            self.session += 1
            if self._on_connect is not None:
                try:
                    self._on_connect(self)
                except BaseException:
                    self.close()
                    raise
        return self._wire

    def new_session(self) -> Wire:
        return connect(self.address, prepare_after=self._prepare_after, seconds=self.seconds)


@contextmanager
def _finish(wire: Wire, after: Sequence[Question]) -> Iterator[Callable[[], None]]:
    """Commit, then do what is to be done after: what goes wrong with that is no reason to doubt the commit. Nobody waits in
    between: if the commit fails, the server passes over what follows in the same pipeline."""
    commits: list[psycopg.Cursor[Row]] = []

    def finish() -> None:
        commits.append(wire.execute("commit"))
        if after:
            wire.execute(WRITE)
            for text, values in after:
                wire.execute(_own(text), values or None)
            wire.execute("commit")

    try:
        yield finish
    except psycopg.Error:
        if not commits or commits[0].statusmessage != "COMMIT":
            raise


def _own(text: str) -> sql.SQL:
    """psycopg asks for literals, so that no value gets into a statement. Ours are files and constants of this package."""
    return sql.SQL(text)


def _rows(cursor: psycopg.Cursor[Row]) -> list[Row]:
    return cursor.fetchall() if cursor.description is not None else []
