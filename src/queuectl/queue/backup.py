"""Safety copies: all of the store in a file, and the place where copies are kept that nobody asked for."""

from __future__ import annotations

import contextlib
import errno
import os

from queuectl import home as places
from queuectl.clock import Clock
from queuectl.errors import FileExists, FileUnwritable, HomeUnusable
from queuectl.job.model import from_ms
from queuectl.store.protocol import Reads

PARTIAL = ".partial"


def backup(store: Reads, path: str) -> int:
    """All of the store as it is at one moment, in a new file; its size. The name appears when the file is complete."""
    if os.path.lexists(path):
        raise FileExists(path)
    if not os.path.isdir(os.path.dirname(path)):
        raise FileUnwritable(path, "there is no such directory")
    partial = f"{path}{PARTIAL}"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(partial)  # of somebody who was killed over it
    store.backup(partial)
    try:
        size = os.path.getsize(partial)
        _publish(partial, path)
    except OSError as exc:
        raise FileUnwritable(path, exc.strerror or str(exc)) from exc
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial)
    return size


def _publish(partial: str, path: str) -> None:
    try:
        os.link(partial, path)  # unlike a rename, it replaces nothing
    except FileExistsError as exc:
        raise FileExists(path) from exc
    except OSError as exc:
        if exc.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK):
            raise
        os.rename(partial, path)  # this file system has no links
    folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def new_backup_path(home: str, clock: Clock, *, before: str) -> str:
    """Where to keep what there is before it is removed, by this word for why."""
    folder = places.backups(home)
    places.make_home(home)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError as exc:
        raise HomeUnusable(home, f"backups: {exc.strerror}") from exc
    # To the millisecond: a second one in the same second must not replace the copy that the first one kept.
    moment = from_ms(clock.now_ms()).strftime("%Y%m%dT%H%M%S.%f")[:-3]
    return os.path.join(folder, f"{before}-{moment}Z.db")
