"""Several hosts on one PostgreSQL: each is a home of its own with an identity of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import postgres
from tests.e2e.scene import Scene
from tests.program import Leftovers, Program


class Hosts:
    """`a, b = hosts("a", "b")`: scenes whose programs take themselves for different machines.

    The disk is one, so a job that runs on one host can wait for a file that the scene of another makes.
    """

    def __init__(self, server: postgres.Server, url: str, directory: Path) -> None:
        self.server = server
        self.url = url
        self._directory = directory
        self._scenes: list[Scene] = []

    def __call__(self, *names: str) -> list[Scene]:
        return [self.add(name) for name in names]

    def add(self, name: str, *, url: str | None = None) -> Scene:
        """One more host. `url`: the way that it takes to the database, if it is another."""
        directory = self._directory / name
        directory.mkdir()
        env = {"QUEUECTL_HOST": name, "QUEUECTL_DB": url or self.url}
        self._scenes.append(Scene(Program(directory / "home", env), directory))
        return self._scenes[-1]

    def execute(self, statement: str) -> list[tuple[object, ...]]:
        """Past everybody, to the database itself."""
        return self.server.execute(statement, self.url)

    def end(self) -> list[str]:
        """Whatever outlived the test, and was killed now."""
        killed = []
        for scene in self._scenes:
            scene.end()
            killed += Leftovers(scene.home).end_the_late()
        return killed


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    server = postgres.server()
    with server.store() as url:
        made = Hosts(server, url, tmp_path)
        try:
            yield made
        finally:
            killed = made.end()
        if killed:
            pytest.fail("still running after the test:\n" + "\n".join(killed), pytrace=False)


@pytest.fixture
def fragile(tmp_path: Path) -> Iterator[Hosts]:
    """Hosts on a server that a test may stop."""
    with postgres.fragile_server() as server:
        name = server.create()
        made = Hosts(server, server.database(name), tmp_path)
        killed = []
        try:
            yield made
        finally:
            server.start()  # those who leave want to say so
            killed = made.end()
        if killed:
            pytest.fail("still running after the test:\n" + "\n".join(killed), pytrace=False)


def server_of(hosts: Hosts) -> postgres.FragileServer:
    assert isinstance(hosts.server, postgres.FragileServer)
    return hosts.server


@pytest.fixture(scope="session", autouse=True)
def no_server_is_left() -> Iterator[None]:
    yield
    postgres.stop_server()
