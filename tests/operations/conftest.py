from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from queuectl.store.open import open_store
from queuectl.store.store import Store
from tests.clock import FakeClock
from tests.store.blank import put_blank_store


@pytest.fixture
def store(home: Path, clock: FakeClock) -> Iterator[Store]:
    put_blank_store(home)
    opened = open_store(str(home), None, clock)
    yield opened
    opened.close()


@pytest.fixture
def other(home: Path, clock: FakeClock, store: Store) -> Iterator[Store]:
    """The same database, opened as by another process."""
    opened = open_store(str(home), None, clock)
    yield opened
    opened.close()
