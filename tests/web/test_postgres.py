"""The server on PostgreSQL, also through a restart of the database."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgres import FragileServer, fragile_server
from tests.program import Leftovers, Program
from tests.wait import wait_until
from tests.web.server import Server


@pytest.fixture(scope="module")
def postgres() -> Iterator[FragileServer]:
    with fragile_server() as one:
        yield one


@pytest.fixture
def server(postgres: FragileServer, tmp_path: Path) -> Iterator[Server]:
    home = tmp_path / "home"
    name = postgres.create()
    with Server(Program(home), tmp_path, db=postgres.database(name)) as one:
        yield one
    assert not Leftovers(home).end()


def test_a_database_that_comes_back_is_noticed_without_a_restart(postgres: FragileServer, server: Server) -> None:
    assert server.get("/status")["total"] == 0
    server.post("/jobs", {"id": "before", "command": "true"}, status=201)
    postgres.halt()
    for _ in range(10):  # at every session
        answer = server.http.get("/status")
        assert (answer.status_code, answer.json()["code"]) == (503, "store-unreachable")
    answer = server.http.post("/jobs", json={"command": "true"})
    assert answer.status_code == 503
    health = server.http.get(server.url + "/healthz")
    assert (health.status_code, health.text) == (
        503,
        "the database is unavailable\n",
    )  # without a token, so without its address
    postgres.start()
    wait_until(lambda: server.http.get("/status").status_code == 200, what="the server to be well again")
    for _ in range(20):
        assert server.get("/status")["total"] == 1
    server.post("/jobs", {"id": "after", "command": "true"}, status=201)
    assert {job["id"] for job in server.get("/jobs")["items"]} == {"before", "after"}
    assert "Traceback" not in server.log


def test_a_crowd_uses_no_more_connections_than_there_are_desks(postgres: FragileServer, server: Server) -> None:
    answered = [server.post("/jobs", {"command": "true", "id": "first"}, status=201)["id"]]  # makes the store
    refused: list[str] = []

    def ask(number: int) -> None:
        with server.client() as http:
            answer = http.post("/jobs", json={"command": "true", "id": f"n{number}"})
            (answered.append(answer.json()["id"]) if answer.status_code == 201 else refused.append(answer.text))
            http.get("/status").raise_for_status()

    crowd = [threading.Thread(target=ask, args=(number,)) for number in range(60)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join()
    assert not refused
    assert sorted(answered) == sorted(job["id"] for job in server.get("/jobs?limit=100")["items"])
    used = "select count(*) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()"
    ((connections,),) = postgres.execute(used)
    assert connections <= 20


@pytest.mark.parametrize(
    "path",
    [
        "/jobs/a%00b",
        "/jobs/a%00b/logs",
        "/jobs?queue=%00",
        "/jobs?match=%00",
        "/cron/%00",
        "/jobs/%ff",
        "/dlq/%00",
        "/history?queue=%00",
        "/export?queue=%00",
    ],
)
def test_a_query_that_postgresql_cannot_run_is_refused_with_an_error(server: Server, path: str) -> None:
    assert server.http.get(path).status_code in {404, 422}


def test_a_text_that_postgresql_cannot_store_is_refused_with_an_error(server: Server) -> None:
    for body in ({"command": "a\0b"}, {"command": "true", "tags": ["\0"]}, {"command": "true", "id": "\0"}):
        assert server.http.post("/jobs", json=body).status_code == 422
    where = {"action": "cancel", "where": {"queue": "\0"}}
    assert server.http.post("/jobs/actions", json=where).status_code == 422
