"""From an address to a store: the only module that knows every dialect."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from queuectl import errors
from queuectl.clock import Clock, SystemClock
from queuectl.home import make_home, store_file

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

    make_home(home)
    return SqliteStore(store_path(home, db), clock=clock or SystemClock(), patience=patience, on_wait=on_wait)


def open_inbox(
    home: str, db: str | None = None, clock: Clock | None = None, *, patience: float = 30.0, on_wait: OnWait = None
) -> Inbox:
    """The same store, to add jobs only, in a fraction of the time that it takes to load all of it."""
    from queuectl.store.sqlite.inbox import SqliteInbox
    from queuectl.store.sqlite.schema import connect

    make_home(home)
    clock = clock or SystemClock()
    return SqliteInbox(connect(store_path(home, db), clock=clock, patience=patience, on_wait=on_wait), clock)


def open_reads(
    home: str, db: str | None = None, clock: Clock | None = None, *, patience: float = 30.0, on_wait: OnWait = None
) -> Store:
    """The store for looking only. Where there is none, an empty one in memory: nothing is created."""
    from queuectl.store.sqlite.connection import MEMORY
    from queuectl.store.sqlite.store import SqliteStore

    path = store_path(home, db)
    if os.path.exists(home) and not os.path.isdir(home):
        raise errors.HomeUnusable(home, "it is not a directory")
    if not os.path.exists(path):
        path = MEMORY
    return SqliteStore(path, clock=clock or SystemClock(), patience=patience, on_wait=on_wait)


def store_exists(home: str, db: str | None = None) -> bool:
    """Whether `open_reads` would find a store, and not give an empty one in its place."""
    return os.path.exists(store_path(home, db))


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
