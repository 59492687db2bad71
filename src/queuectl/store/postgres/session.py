"""A session with a PostgreSQL server: connecting with backoff, time limits, whether it is alive; and the clock of the server.

All hosts of a store use the clock of the server, so a worker whose own clock is wrong does no harm. It is read when connecting and at every
heartbeat; between two readings the local monotonic clock continues it.
"""

from __future__ import annotations

import logging
import math
import random
import select
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import ConnStatus, TransactionStatus

from queuectl import errors
from queuectl.clock import Clock, SystemClock
from queuectl.store.address import PostgresUrl
from queuectl.store.postgres.errors import translate_refusal
from queuectl.store.types import Row

T = TypeVar("T")

# Its messages arrive as exceptions. Without a handler, Python would also print them.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

STATEMENT_SECONDS: Final = 8.0  # time limit of a statement: a command fails within 10 s
WORKER_SECONDS: Final = 3.0  # the same for a worker, which has jobs to supervise
CONNECT_SECONDS: Final = 5.0
FIRST_DELAY: Final = 0.1  # seconds between attempts to connect
MAX_DELAY: Final = 5.0
MARGIN_SECONDS: Final = 1.0  # the server cancels a statement first, if it is alive

# Defaults for the address. The kernel notices a dead connection after some 10 s if data was sent, after some 20 s if not; `Session.wait`
# notices one whose peer still acknowledges.
_DEFAULTS: Final[Mapping[str, str | int]] = {
    "application_name": "queuectl",
    "keepalives_idle": 10,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 9000,
}


class Session(psycopg.Connection[Row]):
    """A session that waits for an answer for at most `patience` seconds: a proxy that drops everything looks alive."""

    patience: float = STATEMENT_SECONDS + MARGIN_SECONDS
    monotonic = staticmethod(SystemClock().monotonic)

    def wait(self, gen: Any, interval: float = 0.1, *args: Any) -> Any:
        return super().wait(self._bounded(gen), interval, *args)

    def _bounded(self, gen: Any) -> Any:
        deadline = self.monotonic() + self.patience
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready and self.monotonic() >= deadline:
                    self.pgconn.finish()
                    raise psycopg.OperationalError(f"no answer for {self.patience:.0f} s")
                wanted = gen.send(ready)
        except StopIteration as over:
            return over.value


def connect(address: PostgresUrl, *, prepare_after: int | None = None, seconds: float = STATEMENT_SECONDS) -> Session:
    """A new session, within `seconds`. `prepare_after`: how often a statement is used before the server keeps it; None:
    never."""
    try:
        given = conninfo_to_dict(address.url)
    except psycopg.Error:
        # Not `from` it: what the parser quotes may be the password.
        raise errors.StoreRefused(
            address.shown(),
            "it is not an address that PostgreSQL understands",
            hint="check its parameters; in a password % is written %25, @ %40, / %2F",
        ) from None
    defaults = {
        **_DEFAULTS,
        "connect_timeout": max(2, math.ceil(min(CONNECT_SECONDS, seconds))),
    }  # the minimum of libpq
    missing: dict[str, Any] = {name: value for name, value in defaults.items() if name not in given}
    # A role, a service file or PGCLIENTENCODING may set an encoding without all characters of a job.
    missing["client_encoding"] = "utf8"
    try:
        return Session.connect(address.url, autocommit=True, prepare_threshold=prepare_after, **missing)
    except psycopg.Error as exc:
        raise translate_refusal(exc, address.shown()) from exc


def is_idle(session: Session) -> bool:
    return session.info.transaction_status is TransactionStatus.IDLE


def is_disconnected(session: Session) -> bool:
    """Whether the server has closed an idle session. Checked before each use: a statement that is then sent in a new session was
    certainly not executed in the old one."""
    if session.closed:
        return True
    watch = select.poll()
    watch.register(session.pgconn.socket, select.POLLIN)
    while watch.poll(0):  # an idle session receives a disconnect, or a notification that is not needed here
        try:
            session.pgconn.consume_input()
        except psycopg.Error:
            return True
        if session.pgconn.status != ConnStatus.OK:
            return True
        while session.pgconn.notifies():
            pass
    return False


class Backoff:
    """Exponential backoff with jitter for reconnects."""

    monotonic = staticmethod(SystemClock().monotonic)

    def __init__(self) -> None:
        self._seconds = FIRST_DELAY
        self._until = 0.0
        self._failure: errors.Unavailable | None = None

    def attempt(self, act: Callable[[], T]) -> T:
        """Call `act`, or raise the error of the last attempt until its delay has passed."""
        if self._failure is not None and self.monotonic() < self._until:
            raise self._failure
        try:
            done = act()
        except errors.Unavailable as exc:
            self._failure = exc
            # Jitter: a thousand workers that lost their server must not reconnect at the same moment.
            self._until = self.monotonic() + self._seconds * random.uniform(0.5, 1.0)
            self._seconds = min(2 * self._seconds, MAX_DELAY)
            raise
        self._seconds, self._failure = FIRST_DELAY, None
        return done


class DatabaseClock:
    """A clock whose wall time is that of the server."""

    def __init__(self, own: Clock | None = None) -> None:
        self._own = own or SystemClock()
        self._offset_ms: float | None = None

    def now_ms(self) -> int:
        if self._offset_ms is None:
            # Before the first connection there is nothing to write.
            return self._own.now_ms()
        return int(self._own.monotonic() * 1000 + self._offset_ms)

    def monotonic(self) -> float:
        return self._own.monotonic()

    def sleep(self, seconds: float) -> None:
        self._own.sleep(seconds)

    def set_by(self, ask: Callable[[], int]) -> None:
        """Read the server's clock: `ask` returns its milliseconds."""
        before = self._own.monotonic()
        server_ms = ask()
        after = self._own.monotonic()
        # The server read its clock at some moment in between, so half of that time is the error. A smaller difference is ignored, so
        # that the time does not jitter at every heartbeat.
        error_ms = (after - before) * 1000 / 2
        offset_ms = server_ms - (before * 1000 + error_ms)
        if self._offset_ms is None or abs(offset_ms - self._offset_ms) > error_ms + 1:
            self._offset_ms = offset_ms
