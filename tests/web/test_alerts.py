"""The server evaluates alerts and sends notifications if no worker is alive."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.program import Program, WorkerProcess
from tests.wait import wait_until
from tests.web.server import FULL, Server
from tests.webhooks.receiver import Receiver, receiving, say

StartServer = Callable[..., Server]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


def states(receiver: Receiver) -> list[str]:
    return [json.loads(one.body)["alert"]["state"] for one in receiver.received]


def page(server: Server) -> str:
    return httpx.get(server.url + "/", headers={"Authorization": f"Bearer {FULL}"}, trust_env=False).text


def test_a_missing_worker_is_reported_by_the_server_and_shown_first(
    queuectl: Program, start_server: StartServer, receiver: Receiver, tmp_path: Path
) -> None:
    server = start_server()
    words = {"name": "no-worker", "no_worker": 0.001, "for": 0, "webhook": receiver.url}
    assert server.post("/alerts", words, status=201)["webhook"] == f"http://127.0.0.1:{receiver.port}/…"
    wait_until(lambda: states(receiver) == ["firing"], what="it to be told")
    wait_until(lambda: server.get("/alerts/no-worker")["untold"] == 0, what="it to be written that it was told")
    assert server.get("/alerts/no-worker")["state"] == "firing"
    assert "Alert no-worker is firing: no worker takes jobs, for" in page(server)
    worker = WorkerProcess(queuectl, tmp_path / "worker.log").wait_until_ready()
    wait_until(lambda: states(receiver) == ["firing", "over"], what="it to be over")
    assert "Alert no-worker" not in page(server)
    worker.end()


def test_a_receiver_that_fails_does_not_disturb_the_server(start_server: StartServer, receiver: Receiver) -> None:
    receiver.answers = [say(500)]
    server = start_server()
    server.post("/alerts", {"name": "a", "no_worker": "1ms", "for": 0, "webhook": receiver.url}, status=201)
    wait_until(
        lambda: "the notification of the alert a failed: 127.0.0.1: it answered 500" in server.log, what="a warning"
    )
    assert server.get("/alerts/a")["untold"] == 1
    assert server.get("/status")["total"] == 0


@pytest.mark.parametrize(
    "fields, subject",
    [
        ({"name": "a b", "dead": 1, "webhook": "https://example.org/x"}, "name"),
        ({"dead": 1, "webhook": "https://example.org/x"}, "name"),
        ({"name": "a", "dead": "many", "webhook": "https://example.org/x"}, "dead"),
        ({"name": "a", "dead": True, "webhook": "https://example.org/x"}, "dead"),
        ({"name": "a", "oldest": "soon", "webhook": "https://example.org/x"}, "oldest"),
        ({"name": "a", "dead": 1, "webhook": "ftp://x"}, "webhook"),
        ({"name": "a", "webhook": "https://example.org/x"}, "no condition"),
        ({"name": "a", "dead": 1}, "neither a webhook nor a command"),
        ({"name": "a", "dead": 1, "webhook": "https://example.org/x", "colour": 1}, "body: unknown field 'colour'"),
    ],
)
def test_an_invalid_field_is_refused_with_its_name(server: Server, fields: dict[str, object], subject: str) -> None:
    answer = server.http.post("/alerts", json=fields)
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(subject)
    assert server.get("/alerts")["items"] == []
