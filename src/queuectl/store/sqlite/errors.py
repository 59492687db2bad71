"""Errors of SQLite, translated into those of queuectl."""

from __future__ import annotations

import os
import sqlite3
from typing import Final

from queuectl import errors

NOT_YOURS: Final = (
    "use it as its owner, or choose another with --home; a job that runs as another user has no part in it"
)


def translate(exc: sqlite3.Error, path: str) -> errors.QueuectlError:
    match _primary_code(exc):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return errors.StoreBusy(path, 0)
        case sqlite3.SQLITE_FULL:
            return errors.StoreFull(path)
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return errors.StoreReadOnly(path)
        case sqlite3.SQLITE_CORRUPT:
            return errors.StoreDamaged(path, str(exc))
        case sqlite3.SQLITE_NOTADB:
            return errors.StoreForeign(path)
        case sqlite3.SQLITE_CANTOPEN:
            if _is_closed_to_us(path):
                return errors.StoreFailed(path, "you may not read it", hint=NOT_YOURS)
            return errors.StoreFailed(path, _why_not_openable(path))
        case _ if "decode to UTF-8" in str(exc):  # queuectl writes UTF-8 only, so the page is damaged
            return errors.StoreDamaged(path, "a text in it is not UTF-8")
        case _:
            return errors.StoreFailed(path, str(exc))


def _primary_code(exc: sqlite3.Error) -> int:
    # The low byte is the class of the error. ProgrammingError has none.
    return getattr(exc, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def is_busy(exc: sqlite3.Error) -> bool:
    return _primary_code(exc) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _is_closed_to_us(path: str) -> bool:
    return os.path.isfile(path) and not os.access(path, os.R_OK)


def _why_not_openable(path: str) -> str:
    if os.path.isdir(path):
        return "it is a directory"
    if not os.path.isdir(os.path.dirname(path)):
        return "its directory does not exist"
    if not os.access(os.path.dirname(path), os.W_OK | os.X_OK):
        return "its directory is not writable"
    try:
        os.close(
            os.open(os.path.dirname(path), os.O_RDONLY)
        )  # never the file itself: closing it would drop SQLite's locks
    except OSError as exc:
        return exc.strerror or str(exc)
    return "it cannot be opened"
