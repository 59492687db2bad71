"""Open a database and migrate it to the current schema. Databases of newer versions are refused unchanged."""

from __future__ import annotations

from typing import Final

from queuectl import errors
from queuectl.clock import Clock
from queuectl.store.address import PostgresUrl
from queuectl.store.postgres.connection import LONG_SECONDS, SQL, Connection
from queuectl.store.postgres.errors import UniqueViolation
from queuectl.store.postgres.session import STATEMENT_SECONDS, DatabaseClock
from queuectl.store.statements import LATEST, Migration, migrations_of
from queuectl.store.transactions import Query
from queuectl.store.types import Row

OLDEST_SERVER: Final = 14

_VERSION: Final = "select version, id from queuectl.meta"
READ_ATTEMPTS: Final = 3


def connect(
    address: PostgresUrl, *, clock: Clock | None = None, create: bool = True, seconds: float = STATEMENT_SECONDS
) -> Connection | None:
    """Open the database and migrate it if it is older or empty. Any number of processes may do this at once.

    None if it is empty and `create` is False. Without `clock`, times are those of the server.
    """
    check = _SessionCheck(create=create)
    db = Connection(address, clock=clock or DatabaseClock(), on_connect=check, seconds=seconds)
    try:
        db.open()
    except _NoSchema:
        return None
    return db


def set_clock(db: Connection, *queries: Query) -> list[list[Row]]:
    """Set the clock by that of the server, unless it is a clock for tests. `queries`: sent in the same round trip."""
    results: list[list[Row]] = []

    def ask() -> int:
        results[:] = db.query(Query(SQL["measure"]), *queries)
        return int(results[0][0][0])

    if isinstance(db.clock, DatabaseClock):
        db.clock.set_by(ask)
        return results[1:]
    return db.query(*queries) if queries else []


class _NoSchema(Exception):  # not an error: a result that has to pass through a connection
    """The database has no tables of queuectl."""


class _SessionCheck:
    """Checks the server and the schema in each new session, and sets the clock."""

    def __init__(self, *, create: bool) -> None:
        self._create = create
        self._id: str | None = None  # of the store that the first session found

    def __call__(self, db: Connection) -> None:
        _check_server(db)
        version, found = _read_version(db)
        # A process that connected before the schema was migrated may settle its runs, see `Reads.changed`.
        if version > LATEST and self._id is None:
            raise errors.StoreTooNew(db.shown, version, LATEST)
        if self._id is not None and found != self._id:
            # Dropped or replaced: an empty one would hide that.
            raise errors.StoreGone(db.shown)
        if version == 0 and not self._create:
            raise _NoSchema
        if version < LATEST:
            _create(db, version)
            _, found = _read_version(db)
        self._id = found


def _check_server(db: Connection) -> None:
    version, encoding = db.server()
    if version < OLDEST_SERVER:
        problem = f"it is PostgreSQL {version}, {OLDEST_SERVER} or newer is needed"
        raise errors.StoreRefused(db.shown, problem, hint="upgrade the server")
    if encoding != "UTF8":
        problem = f"its encoding is {encoding}, UTF8 is needed"
        raise errors.StoreRefused(db.shown, problem, hint="create database … encoding 'UTF8' template template0")


def _read_version(db: Connection) -> tuple[int, str | None]:
    """The version of the schema and the ID of the store; 0 if there is none. Also sets the clock, in the same round trip."""
    for _ in range(READ_ATTEMPTS):
        try:
            (rows,) = set_clock(db, Query(_VERSION))
        except errors.StoreGone:
            return 0, None
        for version, found in rows:
            return version, found
        # The schema is being created: a snapshot does not cover the names of tables.
    raise errors.StoreDamaged(db.shown, "queuectl.meta is empty", hint="restore a backup")


def _create(db: Connection, version: int) -> None:
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
        except (UniqueViolation, errors.StoreForeign):
            # Until there is a table to lock, two processes may create the schema at the same time: the second one fails.
            if not _has(db, migration):
                raise


def _apply(db: Connection, migration: Migration) -> None:
    """Unless another process was first."""
    with db.transaction(seconds=LONG_SECONDS, plan_freely=True):
        if db.value("select to_regclass('queuectl.meta')") is not None:
            db.execute("lock table queuectl.meta in exclusive mode")
            if int(db.value("select version from queuectl.meta")) >= migration.version:
                return
        # Not "if not exists", which requires the right to create schemas even if it exists.
        elif not db.value("select 1 from pg_namespace where nspname = 'queuectl'"):
            db.execute("create schema queuectl")
        db.script(migration.read())
        db.execute("update queuectl.meta set version = %s", (migration.version,))


def _has(db: Connection, migration: Migration) -> bool:
    with db.transaction():
        is_made = db.value("select to_regclass('queuectl.meta')") is not None
        return is_made and int(db.value("select version from queuectl.meta")) >= migration.version
