"""One session with a server: how it begins, how long it waits, and whether it still lives."""

from __future__ import annotations

import logging
import math
import select
from collections.abc import Mapping
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import ConnStatus, TransactionStatus

from queuectl import errors
from queuectl.clock import SystemClock
from queuectl.store.address import PostgresUrl
from queuectl.store.postgres.trouble import translate_refusal

Row = tuple[Any, ...]

# What it has to say reaches us as exceptions. Without a handler Python would print it, in the middle of our own words.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

STATEMENT_SECONDS: Final = 8.0  # what a command may take before the server ends it: a command fails within 10 s
HASTY_SECONDS: Final = 3.0  # the same for a worker, which has jobs to look after meanwhile
CONNECT_SECONDS: Final = 5.0
MARGIN_SECONDS: Final = 1.0  # the server ends a statement first, if it still lives

# What the address does not say itself. A connection that is dead without a word is noticed by the kernel after some 10 s
# if something was sent, after some 20 s if not; one whose peer still acknowledges by `Wire.wait`.
_DEFAULTS: Final[Mapping[str, str | int]] = {
    "application_name": "queuectl",
    "keepalives_idle": 10,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 9000,
}


class Wire(psycopg.Connection[Row]):
    """A session that waits for no answer longer than `patience` seconds: a proxy that swallows everything looks alive."""

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


def connect(address: PostgresUrl, *, prepare_after: int | None = None, seconds: float = STATEMENT_SECONDS) -> Wire:
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
    }  # libpq knows no shorter
    missing: dict[str, Any] = {name: value for name, value in defaults.items() if name not in given}
    # A role, a service file or PGCLIENTENCODING may ask for an encoding that has not all characters of a job.
    missing["client_encoding"] = "utf8"
    try:
        return Wire.connect(address.url, autocommit=True, prepare_threshold=prepare_after, **missing)
    except psycopg.Error as exc:
        raise translate_refusal(exc, address.shown()) from exc


def is_idle(wire: Wire) -> bool:
    return wire.info.transaction_status is TransactionStatus.IDLE


def was_hung_up(wire: Wire) -> bool:
    """Whether the server has ended an idle session. Asked before each use: what is then sent into a new one has certainly
    not been done in the old one."""
    if wire.closed:
        return True
    watch = select.poll()
    watch.register(wire.pgconn.socket, select.POLLIN)
    while watch.poll(0):  # an idle session has nothing to say but a farewell, or a note that is of no interest here
        try:
            wire.pgconn.consume_input()
        except psycopg.Error:
            return True
        if wire.pgconn.status != ConnStatus.OK:
            return True
        while wire.pgconn.notifies():
            pass
    return False
