"""From an address to a store: the only module that knows every dialect.

`--db`, `$QUEUECTL_DB` or `queuectl.toml` in the home names it; a path or `sqlite:///path` is SQLite, `postgresql://…` PostgreSQL, and
without any of them it is a SQLite file in the home. A driver is loaded only for a store that needs it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, assert_never

from queuectl import errors
from queuectl.clock import Clock, SystemClock
from queuectl.home import check_links, check_trusted, lock_file, make_folders, make_home, store_file
from queuectl.store.address import Address, PostgresUrl, SqliteFile, parse_address
from queuectl.store.pointer import address_of

if TYPE_CHECKING:
    from queuectl.store.copying import Movable
    from queuectl.store.postgres.store import PostgresStore
    from queuectl.store.protocol import Inbox, Store
    from queuectl.store.sqlite.connection import OnWait


def open_store(
    home: str,
    db: str | None = None,
    clock: Clock | None = None,
    *,
    patience: float = 30.0,
    on_wait: OnWait | None = None,
) -> Store:
    """The store for writing: it is made if it is missing, and the home with it if the store is a file.

    Nothing of a server's store is in the home: whoever may not write there can add jobs all the same.
    """
    match _address(home, db):
        case PostgresUrl() as url:
            store = _open_postgres(url, clock, create=True, patience=patience)
            assert store is not None
            return store
        case SqliteFile(path):
            from queuectl.store.sqlite.store import SqliteStore

            _place(home, path)
            opened = SqliteStore(path, clock=clock or SystemClock(), patience=patience, on_wait=on_wait)
            make_folders(home)
            return opened
        case unreachable:
            assert_never(unreachable)


def open_inbox(
    home: str,
    db: str | None = None,
    clock: Clock | None = None,
    *,
    patience: float = 30.0,
    on_wait: OnWait | None = None,
) -> Inbox:
    """The same store, to add jobs only, in a fraction of the time that it takes to load all of it."""
    address = _address(home, db)
    if isinstance(address, PostgresUrl):
        return open_store(home, db, clock)  # the driver takes longer to load than all of ours
    from queuectl.store.sqlite.inbox import SqliteInbox
    from queuectl.store.sqlite.schema import connect

    _place(home, address.path)
    clock = clock or SystemClock()
    inbox = SqliteInbox(connect(address.path, clock=clock, patience=patience, on_wait=on_wait), clock)
    make_folders(home)
    return inbox


def open_reads(
    home: str,
    db: str | None = None,
    clock: Clock | None = None,
    *,
    patience: float = 30.0,
    on_wait: OnWait | None = None,
) -> Store:
    """The store for looking only. Where there is none, an empty one in memory: nothing is created."""
    from queuectl.store.sqlite.connection import MEMORY
    from queuectl.store.sqlite.store import SqliteStore

    address, path = _address(home, db), MEMORY
    if isinstance(address, PostgresUrl):
        if (store := _open_postgres(address, clock, create=False)) is not None:
            return store
    elif store_exists(home, db):
        path = address.path
    return SqliteStore(path, clock=clock or SystemClock(), patience=patience, on_wait=on_wait)


def open_at(address: str, clock: Clock | None = None, *, create: bool, on_wait: OnWait | None = None) -> Movable | None:
    """The store at this address, whatever the home; None if there is none and it is not to be made."""
    match parse_address(address):
        case PostgresUrl() as url:
            return _open_postgres(url, clock, create=create)
        case SqliteFile(path):
            from queuectl.store.sqlite.store import SqliteStore

            if not _is_there(path):
                if not create:
                    return None
                _place_beside(path)
            return SqliteStore(path, clock=clock or SystemClock(), on_wait=on_wait)
        case unreachable:
            assert_never(unreachable)


def open_backup(path: str, scratch: Callable[[], str], clock: Clock | None = None) -> Movable | None:
    """What a backup holds, by way of a private copy: the file itself is not changed, also if it is of an older version.

    None if there is no such file. Raises StoreForeign, StoreTooNew or StoreDamaged, all before `scratch` is asked where the
    copy may be.
    """
    if not _is_there(path):
        return None
    from queuectl.store.sqlite.schema import copy_closed
    from queuectl.store.sqlite.store import SqliteStore

    return SqliteStore(copy_closed(path, scratch), clock=clock or SystemClock())


def check_trust(home: str, db: str | None) -> None:
    """Raise NotTrusted if another user could have written to this database, or to the data directory if that names or holds it."""
    if not db:
        check_trusted(home)
        check_links(home)  # before `queuectl.toml` is read
    check_trusted_address(store_path(home, db), home=home)


def check_trusted_address(address: str, *, home: str | None = None) -> None:
    """The same for a database by its address; a server checks who may connect."""
    match parse_address(address):
        case SqliteFile(path):
            check_trusted(path)
            if (folder := os.path.dirname(path)) != home:
                check_trusted(folder, may_be_sticky=True)
        case PostgresUrl():
            pass


def store_file_of(home: str, db: str | None) -> str | None:
    """The file that the store is in, None if it is none."""
    address = _address(home, db)
    return address.path if isinstance(address, SqliteFile) else None


def refuse_while_locked(home: str, verb: str) -> None:
    """Raises WorkersAlive if a worker of this home lives, by its lock: for a store that cannot be asked."""
    if alive := _somebody_works_in(home):
        raise errors.WorkersAlive(verb, [alive])


def store_exists(home: str, db: str | None = None) -> bool:
    """Whether `open_reads` would find a store, and not give an empty one in its place.

    Raises HomeUnusable where nobody can tell: a home that may not be entered is not an empty one. Nor is one whose store was
    removed under a worker: StoreGone.
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
        if address == _address(home, None) and (alive := _somebody_works_in(home)):
            raise errors.StoreGone(address.path, worker=alive) from None
        return False
    except OSError as exc:
        raise errors.HomeUnusable(home, exc.strerror or str(exc)) from exc
    _refuse_directory(address.path)
    return True


def store_shown(home: str, db: str | None) -> str | None:
    """The address without a password, for people; None for the file that every home has unless told otherwise."""
    address = _address(home, db)
    return None if address == SqliteFile(store_file(home)) else address.shown()


def store_path(home: str, db: str | None) -> str:
    """What `db` names in a form that holds in any directory: the absolute path of a file, or a URL as it is.

    For programs only: a URL may hold a password. `address.shown` is for people.
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
    if named := address_of(home):
        return parse_address(named, base=home)
    return SqliteFile(store_file(home))


def _open_postgres(
    url: PostgresUrl, clock: Clock | None, *, create: bool, patience: float = 30.0
) -> PostgresStore | None:
    try:
        import psycopg as psycopg
    except ImportError as exc:
        raise errors.DriverMissing("PostgreSQL", "postgres") from exc
    from queuectl.store.postgres.schema import connect
    from queuectl.store.postgres.session import HASTY_SECONDS, STATEMENT_SECONDS
    from queuectl.store.postgres.store import PostgresStore

    # The clock of this machine is none of the store's: there the database's rules. Another one is a test's.
    clock = None if isinstance(clock, SystemClock) else clock
    seconds = min(STATEMENT_SECONDS, max(patience, HASTY_SECONDS))
    connection = connect(url, clock=clock, create=create, seconds=seconds)
    return None if connection is None else PostgresStore(connection)


def _place(home: str, path: str) -> None:
    """Make the home, but nothing in it before the store is known to be ours."""
    _refuse_directory(path)
    make_home(home)
    if not os.path.exists(path) and (alive := _somebody_works_in(home)):
        # Its store was removed under it: an empty one in its place would hide that.
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
    """Make sure that a new store may be at this path."""
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise errors.StoreFailed(
            path, "its directory does not exist", hint=f"make it, for yourself only: mkdir -m 700 {folder}"
        )
    if alive := _somebody_works_in(folder):
        raise errors.StoreGone(path, worker=alive)


def _somebody_works_in(home: str) -> str | None:
    """The name of a worker of this home that lives."""
    from queuectl.lock import is_held

    folder = os.path.dirname(lock_file(home, ""))
    names = os.listdir(folder) if os.path.isdir(folder) else []
    held = (name for name in names if name.endswith(".lock") and is_held(os.path.join(folder, name)))
    return next((name.removesuffix(".lock") for name in held), None)
