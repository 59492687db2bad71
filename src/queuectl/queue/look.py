"""Looking at a store that may not be written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from queuectl.errors import QueuectlError, StoreFailed


@contextmanager
def looking(path: Callable[[], str]) -> Iterator[None]:
    """Say what is the matter if a store in a directory that is read-only cannot be opened, not even to look.

    With its -wal and -shm beside it, as they are while somebody has it open, such a store can be read. Without them SQLite
    would have to make them. `path` gives the file, or raises if the store is none.
    """
    try:
        yield
    except StoreFailed as error:
        if store := _in_read_only_directory(path):
            problem = "its directory is read-only, and SQLite has to write beside it even to read"
            hint = "copy it to a directory of yours and look there: --db COPY"
            raise StoreFailed(store, problem, hint=hint) from error
        raise


def _in_read_only_directory(path: Callable[[], str]) -> str | None:
    try:
        store = path()
    except QueuectlError:  # it is no file: what failed has said so
        return None
    is_readable = os.path.isfile(store) and os.access(store, os.R_OK)
    return store if is_readable and not os.access(os.path.dirname(store), os.W_OK) else None
