from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from queuectl.store.open import open_store
from queuectl.store.sqlite.store import SqliteStore
from tests.clock import FakeClock


@pytest.fixture
def path(home: Path) -> Path:
    """The file of the store."""
    return home / "queue.db"


@pytest.fixture
def store(home: Path, clock: FakeClock) -> Iterator[SqliteStore]:
    """The store by its own class: these tests look behind the interface, and may leave it in ruins."""
    opened = open_store(str(home), None, clock)
    assert isinstance(opened, SqliteStore)
    yield opened
    opened.close()
