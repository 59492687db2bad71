"""From an address to a store: the only module that knows every dialect."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from queuectl import errors
from queuectl.clock import Clock, SystemClock
from queuectl.home import lock_file, make_folders, make_home, store_file

if TYPE_CHECKING:
    from queuectl.store.protocol import Inbox, Store

# Called once when a locked store has been waited for so long that people wonder; `patience` is how long in all.
OnWait = Callable[[], None] | None

_SQLITE_SCHEME = "sqlite:///"


def open_store(
    home: str, db: str | None = None, clock: Clock | None = None, *, patience: float = 30.0, on_wait: OnWait = None
) -> Store:
    """The store for writing: the home and the store are made if they are missing."""
    from queuectl.store.sqlite.store import SqliteStore

    path = _place(home, db)
    store = SqliteStore(path, clock=clock or SystemClock(), patience=patience, on_wait=on_wait)
    make_folders(home)
    return store


def open_inbox(
    home: str, db: str | None = None, clock: Clock | None = None, *, patience: float = 30.0, on_wait: OnWait = None
) -> Inbox:
    """The same store, to add jobs only, in a fraction of the time that it takes to load all of it."""
    from queuectl.store.sqlite.inbox import SqliteInbox
    from queuectl.store.sqlite.schema import connect

    path = _place(home, db)
    clock = clock or SystemClock()
    inbox = SqliteInbox(connect(path, clock=clock, patience=patience, on_wait=on_wait), clock)
    make_folders(home)
    return inbox


def open_reads(
    home: str, db: str | None = None, clock: Clock | None = None, *, patience: float = 30.0, on_wait: OnWait = None
) -> Store:
    """The store for looking only. Where there is none, an empty one in memory: nothing is created."""
    from queuectl.store.sqlite.connection import MEMORY
    from queuectl.store.sqlite.store import SqliteStore

    path = store_path(home, db) if store_exists(home, db) else MEMORY
    return SqliteStore(path, clock=clock or SystemClock(), patience=patience, on_wait=on_wait)


def store_exists(home: str, db: str | None = None) -> bool:
    """Whether `open_reads` would find a store, and not give an empty one in its place.

    Raises HomeUnusable where nobody can tell: a home that may not be entered is not an empty one.
    """
    if os.path.exists(home) and not os.path.isdir(home):
        raise errors.HomeUnusable(home, "it is not a directory")
    try:
        os.stat(store_path(home, db))
    except FileNotFoundError:
        return False
    except OSError as exc:
        raise errors.HomeUnusable(home, exc.strerror or str(exc)) from exc
    return True


def _place(home: str, db: str | None) -> str:
    """Where the store is or will be. The home is made, but nothing in it before the store is known to be ours."""
    make_home(home)
    path = store_path(home, db)
    if not os.path.exists(path) and (alive := _somebody_works_in(home)):
        # Its store was removed under it: an empty one in its place would hide that.
        raise errors.StoreGone(path, worker=alive)
    return path


def _somebody_works_in(home: str) -> str | None:
    """The name of a worker of this home that lives."""
    from queuectl.lock import is_held

    folder = os.path.dirname(lock_file(home, ""))
    names = os.listdir(folder) if os.path.isdir(folder) else []
    held = (name for name in names if name.endswith(".lock") and is_held(os.path.join(folder, name)))
    return next((name.removesuffix(".lock") for name in held), None)


def store_path(home: str, db: str | None) -> str:
    """The file that `db` names, or the one in the home."""
    if not db:
        return store_file(home)
    if db.startswith(_SQLITE_SCHEME):
        return os.path.abspath(db.removeprefix(_SQLITE_SCHEME))
    scheme, separator, _ = db.partition("://")
    if separator:
        raise errors.StoreUnsupported(scheme)
    return os.path.abspath(db)
