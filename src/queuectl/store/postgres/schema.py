"""Bringing a database to the schema of this version, or refusing it: never damaging what is not ours or is newer."""

from __future__ import annotations

from typing import Final

from queuectl import errors
from queuectl.clock import Clock
from queuectl.store.address import PostgresUrl
from queuectl.store.migrate import Migration, migrations_of
from queuectl.store.postgres.clock import DatabaseClock
from queuectl.store.postgres.connection import LONG_SECONDS, SQL, Connection, Question
from queuectl.store.postgres.session import STATEMENT_SECONDS, Row
from queuectl.store.postgres.trouble import Taken

# The newest migration of this version of queuectl; a test compares it with the files.
LATEST: Final = 17
OLDEST_SERVER: Final = 14

_VERSION: Final = "select version, id from queuectl.meta"
LOOKS: Final = 3


def connect(
    address: PostgresUrl, *, clock: Clock | None = None, create: bool = True, seconds: float = STATEMENT_SECONDS
) -> Connection | None:
    """Open the database and migrate it if it is older or empty. Any number of processes may do this at once.

    None if it is empty and `create` is False. Without a clock, the database's clock rules.
    """
    threshold = _Threshold(create=create)
    db = Connection(address, clock=clock or DatabaseClock(), on_connect=threshold, seconds=seconds)
    try:
        db.open()
    except _NoStore:
        return None
    return db


def measure(db: Connection, *questions: Question) -> list[list[Row]]:
    """Set the store's clock by the server's, unless it is a clock of somebody's own. `questions`: what else to ask."""
    answers: list[list[Row]] = []

    def ask() -> int:
        answers[:] = db.ask(Question(SQL["measure"]), *questions)
        return int(answers[0][0][0])

    if isinstance(db.clock, DatabaseClock):
        db.clock.set_by(ask)
        return answers[1:]
    return db.ask(*questions) if questions else []


class _NoStore(Exception):  # not an error: an answer that has to pass through a connection
    """There is no store in this database."""


class _Threshold:
    """What each new session passes before it is used: the server, the schema, the clock."""

    def __init__(self, *, create: bool) -> None:
        self._create = create
        self._id: str | None = None  # of the store that the first session found

    def __call__(self, db: Connection) -> None:
        _check_server(db)
        version, found = _look(db)
        # Whoever was here before the schema became newer may finish what it has begun, see `Reads.changed`.
        if version > LATEST and self._id is None:
            raise errors.StoreTooNew(db.shown, version, LATEST)
        if self._id is not None and found != self._id:
            # Dropped, or another one in its place: an empty one would hide that.
            raise errors.StoreGone(db.shown)
        if version == 0 and not self._create:
            raise _NoStore
        if version < LATEST:
            _make(db, version)
            _, found = _look(db)
        self._id = found


def _check_server(db: Connection) -> None:
    version, encoding = db.server()
    if version < OLDEST_SERVER:
        problem = f"it is PostgreSQL {version}, {OLDEST_SERVER} or newer is needed"
        raise errors.StoreRefused(db.shown, problem, hint="upgrade the server")
    if encoding != "UTF8":
        problem = f"its encoding is {encoding}, UTF8 is needed"
        raise errors.StoreRefused(db.shown, problem, hint="create database … encoding 'UTF8' template template0")


def _look(db: Connection) -> tuple[int, str | None]:
    """The schema's version and the store's id; 0 where there is none. Sets the clock, too, in the same round trip."""
    for _ in range(LOOKS):
        try:
            (rows,) = measure(db, Question(_VERSION))
        except errors.StoreGone:
            return 0, None
        for version, found in rows:
            return version, found
        # Somebody has made the store just now: what both questions see is of one moment, but the names of tables are of the next.
    raise errors.StoreDamaged(db.shown, "queuectl.meta is empty", hint="restore a backup")


def _make(db: Connection, version: int) -> None:
    try:
        _migrate(db)
    except errors.StoreRefused as exc:
        what = "has no tables of queuectl yet" if version == 0 else "has tables of an older queuectl"
        problem = f"the database {what}, and this role may not {'make' if version == 0 else 'upgrade'} them"
        hint = "let their owner run once: queuectl worker start --drain; and then grant this role its rights"
        raise errors.StoreRefused(db.shown, problem, hint=hint) from exc


def _migrate(db: Connection) -> None:
    for migration in migrations_of(__file__):
        try:
            _apply(db, migration)
        except (Taken, errors.StoreForeign):
            # Until there is a table to lock, two processes may make the schema at the same time: the second one fails.
            if not _has(db, migration):
                raise


def _apply(db: Connection, migration: Migration) -> None:
    """Unless another process was first."""
    with db.transaction(seconds=LONG_SECONDS, plan_freely=True):
        if db.value("select to_regclass('queuectl.meta')") is not None:
            db.execute("lock table queuectl.meta in exclusive mode")
            if int(db.value("select version from queuectl.meta")) >= migration.version:
                return
        # Not "if not exists": that asks for the right to create schemas also where an administrator has made it for us.
        elif not db.value("select 1 from pg_namespace where nspname = 'queuectl'"):
            db.execute("create schema queuectl")
        db.script(migration.read())
        db.execute("update queuectl.meta set version = %s", (migration.version,))


def _has(db: Connection, migration: Migration) -> bool:
    with db.transaction():
        is_made = db.value("select to_regclass('queuectl.meta')") is not None
        return is_made and int(db.value("select version from queuectl.meta")) >= migration.version
