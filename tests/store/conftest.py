from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from queuectl.store.store import Store
from tests import postgres
from tests.clock import FakeClock
from tests.store.backends import BACKENDS, Backend
from tests.store.hands import Hands
from tests.store.invariants import check_invariants
from tests.swift import swift_folder

Hire = Callable[..., Hands]


@pytest.fixture(scope="session", autouse=True)
def no_server_is_left() -> Iterator[None]:
    yield
    postgres.stop_server()


@pytest.fixture
def home() -> Iterator[Path]:
    """As everywhere, but where a commit takes no time."""
    with swift_folder() as folder:
        yield Path(folder) / "home"


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, home: Path) -> Iterator[Backend]:
    made = BACKENDS[request.param](home)
    yield made
    made.close()


@pytest.fixture
def store(backend: Backend, clock: FakeClock) -> Iterator[Store]:
    """An empty store. After each test all that must always hold is checked on what the test made of it."""
    opened = backend.open(clock)
    yield opened
    check_invariants(opened, backend)
    opened.close()


@pytest.fixture
def other(backend: Backend, clock: FakeClock, store: Store) -> Iterator[Store]:
    """The same store, as another process has it."""
    opened = backend.open(clock)
    yield opened
    opened.close()


@pytest.fixture
def hire(store: Store, backend: Backend) -> Iterator[Hire]:
    """`hire("w2", queues=("mail",))`: a worker of that name, registered."""
    hired: list[Hands] = []

    def hire(name: str = "w1", *, queues: tuple[str, ...] | None = None, slots: int = 4) -> Hands:
        hired.append(Hands(store, backend.home, name=name, queues=queues, slots=slots))
        return hired[-1]

    yield hire
    for hands in hired:
        hands.wakeup.close()


@pytest.fixture
def worker(hire: Hire) -> Hands:
    return hire()
