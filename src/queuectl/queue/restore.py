"""Putting a backup in the place of the store: all of it in one transaction, after what there was has been kept."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, Protocol

from queuectl.clock import Clock
from queuectl.errors import HomeUnusable, QueuectlError
from queuectl.job.model import Worker
from queuectl.queue.backup import new_backup_path
from queuectl.queue.copy import Advance, Copied, copy
from queuectl.queue.reset import refuse_while_alive
from queuectl.store.copying import Movable
from queuectl.store.protocol import Store

BESIDE = ("", "-wal", "-shm")  # the files of a SQLite database


class Whole(Store, Movable, Protocol):
    """A store that can be filled."""


class Restored(NamedTuple):
    copied: Copied
    kept: str | None  # what there was before, None if there was nothing


class Place(NamedTuple):
    """Where the backup is to go."""

    home: str
    file: str | None  # the store's, None if it is none
    hopeless: tuple[type[QueuectlError], ...]  # what says that there is no use in it as it is
    is_there: Callable[[], bool]
    open: Callable[[], Whole]
    refuse_while_locked: Callable[[], None]  # by the locks of the home, where the store cannot be asked who works


def restore(
    source: Movable, name: str, place: Place, *, clock: Clock, is_alive: Callable[[Worker], bool], advance: Advance
) -> Restored:
    """Everything there is by what `source` holds, a copy of the backup `name`; jobs that ran there wait again. Raises WorkersAlive
    while somebody works.

    A store that turns out to be damaged is set aside as it is.
    """
    kept = None
    try:
        if place.is_there():
            target = place.open()
            refuse_while_alive(target, verb="restore", home=place.home, is_alive=is_alive)
            kept = new_backup_path(place.home, clock, before="restore")
            target.backup(kept)
            return Restored(_fill(source, name, target, clock, advance), kept)
    except place.hopeless:
        if place.file is None:
            raise
        place.refuse_while_locked()
        if kept is not None:
            with suppress(FileNotFoundError):  # a copy of the damage, in which what can be repaired may be missing
                os.unlink(kept)
        kept = set_aside(place.file, home=place.home, clock=clock)
    return Restored(_fill(source, name, place.open(), clock, advance), kept)


def set_aside(path: str, *, home: str, clock: Clock) -> str:
    """Move a store that cannot be opened to the backups, as it is."""
    kept = new_backup_path(home, clock, before="damaged")
    for beside in reversed(BESIDE):
        try:
            os.rename(path + beside, kept + beside)
        except FileNotFoundError:
            continue
        except OSError as exc:
            raise HomeUnusable(home, f"backups: {exc.strerror}") from exc
    return kept


def _fill(source: Movable, name: str, target: Whole, clock: Clock, advance: Advance) -> Copied:
    return copy(
        source,
        lambda: target,
        clock=clock,
        is_alive=lambda _: False,
        force=True,
        replace=True,
        why="it ran when the backup was made",
        name=name,
        advance=advance,
    )
