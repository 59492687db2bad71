from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.program import Leftovers, Program, WorkerProcess
from tests.web.server import Server


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for all tests of a file, with one home in it."""
    return tmp_path_factory.mktemp("web")


@pytest.fixture(scope="module")
def house(place: Path) -> Iterator[Program]:
    """The program on the home that the tests of a file share."""
    left = Leftovers(place / "home")
    yield Program(place / "home")
    if killed := left.end():
        pytest.fail("still running after the tests:\n" + "\n".join(killed), pytrace=False)


@pytest.fixture(scope="module")
def server(house: Program, place: Path) -> Iterator[Server]:
    """One server for all tests of a file."""
    with Server(house, place) as one:
        yield one


@pytest.fixture(scope="module")
def worker(house: Program, place: Path) -> Iterator[WorkerProcess]:
    """One worker for all tests of a file."""
    one = WorkerProcess(house, place / "worker.log", "--count", "4").wait_until_ready()
    yield one
    one.end()


@pytest.fixture
def start_server(queuectl: Program, tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """A server of this test's own."""
    servers: list[Server] = []

    def start(*words: str, db: str | None = None) -> Server:
        servers.append(Server(queuectl, tmp_path, *words, db=db))
        return servers[-1]

    yield start
    for one in servers:
        one.end()
