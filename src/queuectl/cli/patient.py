"""Opening a store that may be in any state, to look what is wrong with it: what keeps it from being opened is a finding."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from queuectl.cli.app import App
from queuectl.config import here
from queuectl.errors import QueuectlError, StoreDamaged
from queuectl.queue.look import looking
from queuectl.store.address import PostgresUrl, parse_address
from queuectl.store.open import open_reads, store_exists, store_path
from queuectl.store.protocol import Store
from queuectl.upkeep.doctor.finding import Patient


@contextmanager
def patient(app: App) -> Iterator[Patient]:
    """The home and the store of this invocation. Makes nothing."""
    shown, file, store = "the store", None, None
    trouble: QueuectlError | None = None
    try:
        address = parse_address(store_path(app.home, app.db))
        shown = address.shown()
        file = None if isinstance(address, PostgresUrl) else address.path
        store = _open(app, file)
    except QueuectlError as error:
        trouble = error
    try:
        yield Patient(
            home=app.home,
            db=None if trouble is not None or app.db is None else store_path(app.home, app.db),
            address=shown,
            store_file=file,
            store=store,
            trouble=trouble,
            here=here(app.environ),
            environ=app.environ,
            clock=app.clock,
            user=os.geteuid(),
        )
    finally:
        if store is not None:
            store.close()


def _open(app: App, file: str | None) -> Store | None:
    if not store_exists(app.home, app.db):
        return None
    if file is not None and os.path.getsize(file) == 0:
        # SQLite takes it for a new store, and so would we: one that was cut to nothing must not pass for one.
        raise StoreDamaged(file, "it is empty, 0 bytes", hint=StoreDamaged.IF_EMPTY)
    with looking(lambda: store_path(app.home, app.db)):
        return open_reads(app.home, app.db, app.clock, on_wait=app.say_locked)
