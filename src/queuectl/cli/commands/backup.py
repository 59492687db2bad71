"""queuectl backup, queuectl restore"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import closing
from typing import cast

import click

from queuectl.cli.app import App
from queuectl.cli.command import command
from queuectl.cli.confirm import confirm
from queuectl.cli.jobs import plural
from queuectl.cli.printable import printable
from queuectl.cli.progress import progress
from queuectl.cli.result import Result, Sheet
from queuectl.cli.style import room
from queuectl.cli.workers import is_alive, rescuer
from queuectl.errors import Conflict, QueuectlError, StoreDamaged, StoreForeign, StoreNotFound
from queuectl.home import make_home, store_file
from queuectl.queue.backup import backup as back_up
from queuectl.queue.backup import new_backup_path
from queuectl.queue.reset import refuse_while_alive
from queuectl.queue.restore import BESIDE, Place, Restored, Whole
from queuectl.queue.restore import restore as put_back
from queuectl.store.address import shown
from queuectl.store.copying import Movable
from queuectl.store.open import open_backup, refuse_while_locked, store_exists, store_file_of, store_path

NO_BACKUP = "name a file that queuectl backup made; what export wrote is read by: queuectl import FILE"


class FileInUse(Conflict):
    code = "file-in-use"

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is the store itself", hint="name a backup of it: queuectl backup FILE makes one")


@command(
    "backup",
    examples="""
        queuectl backup /backup/queue-$(date +%F).db
    """,
)
@click.argument("file", metavar="FILE")
def backup(app: App, file: str) -> Result:
    """Copy the store into a new file, all of it as it is at one moment, while workers run.

    The copy is a SQLite file, also of a store in PostgreSQL: queuectl restore puts it back, and --db FILE looks into it.
    Logs are files and are not in it. A file that is there is never replaced.
    """
    path = os.path.abspath(file)
    if not store_exists(app.home, app.db):
        raise StoreNotFound(shown(store_path(app.home, app.db)), hint="there is nothing to back up")
    size = back_up(app.open_reads(), path)
    app.done = f"backed up to {path}"
    value = {"file": path, "bytes": size}
    return Sheet(value, people=lambda: [f"backed up to {printable(path)}, {room(size)}"])


@command(
    "restore",
    examples="""
        queuectl restore /backup/queue-2026-11-16.db --yes
    """,
)
@click.argument("file", metavar="FILE")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
def restore(app: App, file: str, yes: bool) -> Result:
    """Put a backup in the place of the store: jobs, history, settings and counters, all of it or nothing.

    What there was is kept under backups/ in the home. Jobs that ran when the backup was made wait again, with nothing
    charged. Refused while a worker lives. Logs are files: they stay as they are.
    """
    path, own = os.path.abspath(file), store_file_of(app.home, app.db)
    if own is not None and os.path.exists(own) and os.path.exists(path) and os.path.samefile(own, path):
        raise FileInUse(path)
    _check_target(app)
    with _opened(app, path) as source:
        found = source.counts["jobs"]
        place = "the store" if own is None else printable(own)
        confirm(app, f"Replace {place} by a backup with {plural(found, 'job')}?", yes=yes)
        _rescue(app)
        with progress(app, "restoring") as advance:
            where = _place(app, own)
            done = put_back(source.store, path, where, clock=app.clock, is_alive=is_alive(app), advance=advance)
    app.done = f"restored {path}"
    counts = {count.what.replace(" ", "_"): count.target for count in done.copied.counts}
    value = {"file": path, "counts": counts, "given_back": done.copied.given_back, "kept": done.kept}
    return Sheet(value, people=lambda: _lines(done))


class _Source:
    def __init__(self, store: Movable) -> None:
        self.store = store
        with store.dump() as dump:
            self.counts = dump.counts()


@contextlib.contextmanager
def _opened(app: App, path: str) -> Iterator[_Source]:
    """The backup, by way of a copy that is gone afterwards."""
    scratch: list[str] = []

    def place_for_copy() -> str:
        make_home(app.home)
        scratch.append(new_backup_path(app.home, app.clock, before="restoring"))
        return scratch[0]

    try:
        try:
            store = open_backup(path, place_for_copy, app.clock)
        except StoreForeign as exc:
            raise StoreForeign(path, hint=NO_BACKUP) from exc
        if store is None:
            raise StoreNotFound(path, hint="check the name of the backup")
        with closing(store):
            yield _Source(store)
    finally:
        for made in scratch:
            for beside in BESIDE:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(made + beside)


def _check_target(app: App) -> None:
    with contextlib.suppress(*_hopeless(app)):  # it cannot be asked: by the locks of the home, when it comes to it
        refuse_while_alive(app.open_reads(), verb="restore", home=app.home, is_alive=is_alive(app))


def _rescue(app: App) -> None:
    """What dead workers left running would go on while its job, restored, runs again."""
    with contextlib.suppress(*_hopeless(app)):
        if store_exists(app.home, app.db):
            rescuer(app, spare=False)()


def _hopeless(app: App) -> tuple[type[QueuectlError], ...]:
    """What says that there is no use in the store as it is. At its own place in the home, also that it is none at all: a file
    whose beginning is destroyed looks like anybody's. Elsewhere it may well be somebody else's."""
    is_at_home = store_file_of(app.home, app.db) == store_file(app.home)
    return (StoreDamaged, StoreForeign) if is_at_home else (StoreDamaged,)


def _place(app: App, own: str | None) -> Place:
    def open_whole() -> Whole:
        app.close()  # it may be another file by now
        return cast(Whole, app.open_store())

    return Place(
        app.home,
        own,
        hopeless=_hopeless(app),
        is_there=lambda: store_exists(app.home, app.db),
        open=open_whole,
        refuse_while_locked=lambda: refuse_while_locked(app.home, "restore"),
    )


def _lines(done: Restored) -> Iterator[str]:
    counts = {count.what: count.target for count in done.copied.counts}
    yield f"restored {plural(counts['jobs'], 'job')} with {plural(counts['runs'], 'run')}"
    if done.copied.given_back:
        which = (
            "1 job that ran waits" if done.copied.given_back == 1 else f"{done.copied.given_back:,} jobs that ran wait"
        )
        yield f"{which} again, with nothing charged"
    if done.kept is not None:
        yield f"what there was is kept: {printable(done.kept)}"
