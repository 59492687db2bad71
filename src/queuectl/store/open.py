"""Open a store by its address: the only module that knows both dialects.

The address is from `--db`, `$QUEUECTL_DB` or `queuectl.toml` in the data directory: a path or `sqlite:///path` is SQLite,
`postgresql://…` PostgreSQL. Without one it is a SQLite file in the data directory. A driver is loaded only if it is needed.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, assert_never

from queuectl import errors
from queuectl.clock import Clock, SystemClock
from queuectl.paths import check_links, check_trusted, lock_file, make_folders, make_home, store_file
from queuectl.store.address import Address, PostgresUrl, SqliteFile, parse_address

if TYPE_CHECKING:
    from queuectl.store.enqueue import EnqueueStore
    from queuectl.store.sqlite.connection import OnWait
    from queuectl.store.store import Store

POINTER_FILE: Final = "queuectl.toml"
_POINTER_FORM: Final = 'write one line: db = "postgresql://…"'


def open_store(
    home: str,
    db: str | None = None,
    clock: Clock | None = None,
    *,
    patience: float = 30.0,
    on_wait: OnWait | None = None,
) -> Store:
    """The store for writing. A missing database is created; if it is a file, also the data directory.

    A server database needs no data directory, so users without write access to one can enqueue jobs.
    """
    match _address(home, db):
        case PostgresUrl() as url:
            store = _open_postgres(url, clock, create=True, patience=patience)
            assert store is not None
            return store
        case SqliteFile(path):
            _place(home, path)
            opened = _open_sqlite(path, clock, patience=patience, on_wait=on_wait)
            make_folders(home)
            return opened
        case unreachable:
            assert_never(unreachable)


def open_enqueuer(
    home: str,
    db: str | None = None,
    clock: Clock | None = None,
    *,
    patience: float = 30.0,
    on_wait: OnWait | None = None,
) -> EnqueueStore:
    """The same for `enqueue` only, in a fraction of the time."""
    address = _address(home, db)
    if isinstance(address, PostgresUrl):
        return open_store(home, db, clock)  # loading the driver takes longer than loading the rest
    from queuectl.store.enqueue import EnqueueStore
    from queuectl.store.sqlite.connection import SqliteTransactions, connect
    from queuectl.store.sqlite.enqueue import SqliteEnqueuer

    _place(home, address.path)
    clock = clock or SystemClock()
    tx = SqliteTransactions(connect(address.path, clock=clock, patience=patience, on_wait=on_wait), clock)
    make_folders(home)
    return EnqueueStore(tx, SqliteEnqueuer(tx))


def find_enqueuer(
    home: str, db: str | None = None, clock: Clock | None = None, *, on_wait: OnWait | None = None
) -> EnqueueStore | None:
    """As `open_enqueuer`, for a database that exists; None if there is none, and none is created."""
    address = _address(home, db)
    if isinstance(address, PostgresUrl):
        return _open_postgres(address, clock, create=False)
    return open_enqueuer(home, db, clock, on_wait=on_wait) if store_exists(home, db) else None


def find_store(
    home: str, db: str | None = None, clock: Clock | None = None, *, on_wait: OnWait | None = None
) -> Store | None:
    """As `open_store`, for a database that exists; None if there is none, and none is created."""
    address = _address(home, db)
    if isinstance(address, PostgresUrl):
        return _open_postgres(address, clock, create=False)
    return open_store(home, db, clock, on_wait=on_wait) if store_exists(home, db) else None


def open_reads(
    home: str,
    db: str | None = None,
    clock: Clock | None = None,
    *,
    patience: float = 30.0,
    on_wait: OnWait | None = None,
) -> Store:
    """The store for reading. Without a database, an empty one in memory: nothing is created."""
    from queuectl.store.sqlite.connection import MEMORY

    address, path = _address(home, db), MEMORY
    if isinstance(address, PostgresUrl):
        if (store := _open_postgres(address, clock, create=False)) is not None:
            return store
    elif store_exists(home, db):
        path = address.path
    return _open_sqlite(path, clock, patience=patience, on_wait=on_wait)


def open_at(address: str, clock: Clock | None = None, *, create: bool, on_wait: OnWait | None = None) -> Store | None:
    """The store at this address, whatever the data directory; None if there is no database and `create` is False."""
    match parse_address(address):
        case PostgresUrl() as url:
            return _open_postgres(url, clock, create=create)
        case SqliteFile(path):
            if not _is_there(path):
                if not create:
                    return None
                _place_beside(path)
            return _open_sqlite(path, clock, on_wait=on_wait)
        case unreachable:
            assert_never(unreachable)


def open_backup(path: str, scratch: Callable[[], str], clock: Clock | None = None) -> Store | None:
    """The content of a backup, in a private copy: the file itself is not changed, also if it is of an older version.

    None if there is no such file. Raises StoreForeign, StoreTooNew or StoreDamaged, all before `scratch` is called for the path of
    the copy.
    """
    if not _is_there(path):
        return None
    from queuectl.store.sqlite.migrate import copy_closed

    return _open_sqlite(copy_closed(path, scratch), clock)


def check_trust(home: str, db: str | None) -> None:
    """Raise NotTrusted if another user could have written to this database, or to the data directory if that names or holds it."""
    if not db:
        check_trusted(home)
        check_links(home)  # before `queuectl.toml` is read
    _check_trusted(_address(home, db), home)


def check_trusted_address(address: str) -> None:
    """The same for a database by its address."""
    _check_trusted(parse_address(address), None)


def _check_trusted(address: Address, home: str | None) -> None:
    if isinstance(address, SqliteFile):  # a server checks who may connect
        check_trusted(address.path)
        if (folder := os.path.dirname(address.path)) != home:
            check_trusted(folder, may_be_sticky=True)


def store_file_of(home: str, db: str | None) -> str | None:
    """The path of the database, None if it is not a file."""
    address = _address(home, db)
    return address.path if isinstance(address, SqliteFile) else None


def refuse_while_locked(home: str, verb: str) -> None:
    """Raise WorkersAlive if a worker of this data directory is alive, by its lock file: for a database that cannot be read."""
    if alive := live_worker(home):
        raise errors.WorkersAlive(verb, [alive])


def store_exists(home: str, db: str | None = None) -> bool:
    """Whether there is a database, so that `open_reads` does not return an empty one.

    Raises HomeUnusable if the data directory cannot be read, and StoreGone if the database was removed while a worker is alive.
    """
    address = _address(home, db)
    if isinstance(address, PostgresUrl):
        found = _open_postgres(address, None, create=False)
        if found is not None:
            found.close()
        return found is not None
    if os.path.exists(home) and not os.path.isdir(home):
        raise errors.HomeUnusable(home, "it is not a directory")
    try:
        os.stat(address.path)
    except FileNotFoundError:
        if address == _address(home, None) and (alive := live_worker(home)):
            raise errors.StoreGone(address.path, worker=alive) from None
        return False
    except OSError as exc:
        raise errors.HomeUnusable(home, exc.strerror or str(exc)) from exc
    _refuse_directory(address.path)
    return True


def store_shown(home: str, db: str | None) -> str | None:
    """The address without secrets; None for the default file of the data directory."""
    address = _address(home, db)
    return None if address == SqliteFile(store_file(home)) else address.shown()


def store_path(home: str, db: str | None) -> str:
    """The address that `db` names, valid in any directory: the absolute path of a file, or the URL.

    A URL may contain a password: use `address.shown` in messages.
    """
    match _address(home, db):
        case PostgresUrl(url):
            return url
        case SqliteFile(path):
            return path
        case unreachable:
            assert_never(unreachable)


def _address(home: str, db: str | None) -> Address:
    if db:
        return parse_address(db)
    check_links(home)
    if named := read_pointer(home):
        return parse_address(named, base=home)
    return SqliteFile(store_file(home))


def _open_sqlite(path: str, clock: Clock | None, *, patience: float = 30.0, on_wait: OnWait | None = None) -> Store:
    from queuectl.store.sqlite.store import SqliteStore

    return SqliteStore(path, clock=clock or SystemClock(), patience=patience, on_wait=on_wait)


def _open_postgres(url: PostgresUrl, clock: Clock | None, *, create: bool, patience: float = 30.0) -> Store | None:
    try:
        import psycopg as psycopg
    except ImportError as exc:
        from queuectl.installation import install_command

        raise errors.DriverMissing("PostgreSQL", install_command("postgres")) from exc
    from queuectl.store.postgres.migrate import connect
    from queuectl.store.postgres.session import STATEMENT_SECONDS, WORKER_SECONDS
    from queuectl.store.postgres.store import PostgresStore

    # The store uses the clock of the server. Any other clock than that of this host is from a test.
    clock = None if isinstance(clock, SystemClock) else clock
    seconds = min(STATEMENT_SECONDS, max(patience, WORKER_SECONDS))
    connection = connect(url, clock=clock, create=create, seconds=seconds)
    return None if connection is None else PostgresStore(connection)


def _place(home: str, path: str) -> None:
    """Create the data directory, but nothing in it before the database is known to be ours."""
    _refuse_directory(path)
    make_home(home)
    if not os.path.exists(path) and (alive := live_worker(home)):
        # The database was removed while a worker is alive: a new empty one would hide that.
        raise errors.StoreGone(path, worker=alive)


def _is_there(path: str) -> bool:
    try:
        os.stat(path)
    except FileNotFoundError:
        return False
    except OSError as exc:
        raise errors.StoreFailed(path, exc.strerror or str(exc), hint="check its path and who may enter it") from exc
    _refuse_directory(path)
    return True


def _refuse_directory(path: str) -> None:
    if os.path.isdir(path):
        raise errors.StoreFailed(path, "it is a directory", hint=f"name the file in it: {store_file(path)}")


def _place_beside(path: str) -> None:
    """Make sure that a new database can be created at this path."""
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise errors.StoreFailed(
            path, "its directory does not exist", hint=f"make it, for yourself only: mkdir -m 700 {folder}"
        )
    if alive := live_worker(folder):
        raise errors.StoreGone(path, worker=alive)


def live_worker(home: str) -> str | None:
    """The name of a worker of this data directory that is alive."""
    from queuectl.filelock import is_held

    folder = os.path.dirname(lock_file(home, ""))
    names = os.listdir(folder) if os.path.isdir(folder) else []
    held = (name for name in names if name.endswith(".lock") and is_held(os.path.join(folder, name)))
    return next((name.removesuffix(".lock") for name in held), None)


@contextmanager
def explain_read_only(path: Callable[[], str]) -> Iterator[None]:
    """Raise a better error if a database in a read-only directory cannot be opened for reading.

    With its -wal and -shm files, which exist while a process has it open, such a database can be read. Without them SQLite would have
    to create them. `path` returns the file, or raises if the database is none.
    """
    try:
        yield
    except errors.StoreFailed as error:
        if store := _in_read_only_directory(path):
            problem = "its directory is read-only, and SQLite has to create files there even to read"
            hint = "copy it to a directory of yours and look there: --db COPY"
            raise errors.StoreFailed(store, problem, hint=hint) from error
        raise


def _in_read_only_directory(path: Callable[[], str]) -> str | None:
    try:
        store = path()
    except errors.QueuectlError:  # it is not a file
        return None
    is_readable = os.path.isfile(store) and os.access(store, os.R_OK)
    return store if is_readable and not os.access(os.path.dirname(store), os.W_OK) else None


# ── queuectl.toml ───────────────────────────────────────────────────────────────────────────────────────────────────


def read_pointer(home: str) -> str | None:
    """The address in `queuectl.toml`; None if there is no such file.

    The file has one key, `db`. It is for a URL with a password, which must not be in a command line or in the environment of every
    job. Raises InvalidInput for other content, HomeUnusable if other users can read it.
    """
    path = os.path.join(home, POINTER_FILE)
    try:
        file = open(path, "rb")  # noqa: SIM115 # closed below, after its mode was checked
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as exc:
        raise errors.HomeUnusable(home, f"{POINTER_FILE}: {exc.strerror}") from exc
    with file:
        if os.fstat(file.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise errors.HomeUnusable(home, f"others can read its {POINTER_FILE}", hint=f"chmod 600 {path}")
        text = file.read()
    return parse_pointer(text, path)


def parse_pointer(text: bytes, path: str) -> str | None:
    import tomllib  # here, since most data directories have no such file

    try:
        found = tomllib.loads(text.decode())
    except ValueError as exc:
        # Not `from` it, and without its text: that may quote the password.
        line = re.search(r"at line \d+", str(exc)) if isinstance(exc, tomllib.TOMLDecodeError) else None
        where = f" {line[0]}" if line else ""
        raise errors.InvalidInput(path, f"is not TOML{where}", hint=_POINTER_FORM) from None
    for key in found:
        if key != "db":
            hint = f"{_POINTER_FORM}; settings are in the database: queuectl config set KEY VALUE"
            raise errors.InvalidInput(path, f"unknown key {key!r}", hint=hint)
    address = found.get("db")
    if address is None or (isinstance(address, str) and address):
        return address
    raise errors.InvalidInput(path, "db is not an address", hint=_POINTER_FORM)
