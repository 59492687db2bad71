"""An empty SQLite store, copied from one that was made once: to make one takes 52 statements, more than most tests."""

from __future__ import annotations

import functools
import os
from pathlib import Path

from queuectl.paths import make_home
from queuectl.store.open import open_store
from tests.swift import swift_folder


def put_blank_store(home: Path) -> None:
    """As `open_store` would make it, in a home that has none; those who test how it is made leave that to `open_store`."""
    make_home(str(home))
    with open(os.open(home / "queue.db", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        file.write(_blank())


@functools.cache
def _blank() -> bytes:
    with swift_folder() as folder:
        home = Path(folder) / "home"
        open_store(str(home)).close()
        return (home / "queue.db").read_bytes()
