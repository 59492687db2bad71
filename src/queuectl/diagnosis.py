"""Open a data directory and its database for `doctor`, in any state: an error that keeps it from being opened becomes a finding."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from queuectl.clock import Clock
from queuectl.config import here
from queuectl.errors import QueuectlError, StoreDamaged
from queuectl.maintenance.doctor.checks import CheckReport, Repair, examine, fix
from queuectl.maintenance.doctor.finding import Target
from queuectl.store.address import PostgresUrl, parse_address
from queuectl.store.open import explain_read_only, open_reads, store_exists, store_path
from queuectl.store.protocol import Store

if TYPE_CHECKING:
    from queuectl.store.sqlite.connection import OnWait


def run_doctor(
    home: str,
    db: Callable[[], str | None],
    *,
    to_fix: bool,
    environ: Mapping[str, str],
    clock: Clock,
    on_wait: OnWait | None = None,
) -> tuple[Target, list[CheckReport], list[Repair]]:
    """Run all checks. With `to_fix`, fix what is safe to fix, and check again if something was fixed."""
    look = partial(_open_for_diagnosis, home, db, environ=environ, clock=clock, on_wait=on_wait)
    with look() as found:
        checked = examine(found)
        fixed = fix(checked) if to_fix else []
    if fixed:
        with look() as found:
            checked = examine(found)
    return found, checked, fixed


@contextmanager
def _open_for_diagnosis(
    home: str,
    db: Callable[[], str | None],
    *,
    environ: Mapping[str, str],
    clock: Clock,
    on_wait: OnWait | None = None,
) -> Iterator[Target]:
    """The input of the checks. Even the address may be invalid. Creates nothing."""
    shown, file, store, named = "the store", None, None, None
    trouble: QueuectlError | None = None
    try:
        named = db()
        address = parse_address(store_path(home, named))
        shown = address.shown()
        file = None if isinstance(address, PostgresUrl) else address.path
        store = _open(home, named, file, clock, on_wait)
    except QueuectlError as error:
        trouble = error
    try:
        yield Target(
            home=home,
            db=None if trouble is not None or named is None else store_path(home, named),
            address=shown,
            store_file=file,
            store=store,
            trouble=trouble,
            here=here(environ),
            environ=environ,
            clock=clock,
            user=os.geteuid(),
        )
    finally:
        if store is not None:
            store.close()


def _open(home: str, db: str | None, file: str | None, clock: Clock, on_wait: OnWait | None) -> Store | None:
    if not store_exists(home, db):
        return None
    if file is not None and os.path.getsize(file) == 0:
        # To SQLite an empty file is a new database; a truncated one must not pass for one.
        raise StoreDamaged(file, "it is empty, 0 bytes", hint=StoreDamaged.IF_EMPTY)
    with explain_read_only(lambda: store_path(home, db)):
        return open_reads(home, db, clock, on_wait=on_wait)
