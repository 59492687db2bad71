from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from queuectl.clock import Clock
from queuectl.store.open import open_store
from queuectl.store.postgres.store import PostgresStore
from tests import postgres
from tests.clock import FakeClock
from tests.store.postgres.proxy import Proxy

Open = Callable[..., PostgresStore]


@pytest.fixture
def server() -> postgres.Server:
    return postgres.server()


@pytest.fixture
def url(server: postgres.Server) -> Iterator[str]:
    """A database with an empty store."""
    with server.store() as made:
        yield made


@pytest.fixture
def empty(server: postgres.Server) -> Iterator[str]:
    """A database with nothing in it."""
    name = server.create()
    yield server.database(name)
    server.drop(name)


@pytest.fixture
def open_pg(home: Path, url: str) -> Iterator[Open]:
    """`open_pg()`: the store as one process has it. By the database's clock unless one is given."""
    opened: list[PostgresStore] = []
    home.mkdir(exist_ok=True)  # workers need it, the store does not

    def open_pg(clock: Clock | None = None, *, address: str | None = None) -> PostgresStore:
        store = open_store(str(home), address or url, clock)
        assert isinstance(store, PostgresStore)
        opened.append(store)
        return store

    yield open_pg
    for store in opened:
        store.close()


@pytest.fixture
def store(open_pg: Open, clock: FakeClock) -> PostgresStore:
    return open_pg(clock)


@pytest.fixture
def proxy(url: str, tmp_path: Path) -> Iterator[Proxy]:
    """Something between us and the server that can fail."""
    with Proxy(url) as made:
        yield made
