"""Long requests: waits, event streams and followed logs get their results in time and do not block other clients."""

from __future__ import annotations

import asyncio
import contextlib
import select
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from queuectl import store_threads
from queuectl.jobs.stats import Span
from queuectl.store.open import open_store
from queuectl.store_threads import StorePools, WebSession
from queuectl.web.api.streams import Feed
from queuectl.web.app import make_app
from queuectl.web.auth import AuthConfig, Right, Token, Tokens
from tests.factories import NO_POLICY, new_job
from tests.program import Program, WorkerProcess
from tests.tui.view import play
from tests.wait import wait_until
from tests.web.server import API, FULL, READ, Server, events, is_closed, wait_for_state


@pytest.fixture(scope="module")
def busy(server: Server, worker: WorkerProcess) -> Server:
    return server


def until(path: Path) -> str:
    return f"until [ -e {path} ]; do sleep 0.02; done"


# ── events ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_event_stream_reports_changes_and_the_named_job(busy: Server) -> None:
    busy.post("/jobs", {"id": "watched", "command": "true", "delay": "1d"}, status=201)
    with busy.http.stream("GET", "/events?id=watched") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        told = events(answer)
        assert next(told)[0] == "status"
        name, said = next(told)
        assert (name, said["id"], said["held"]) == ("job", "watched", False)
        busy.post("/jobs/watched/hold")
        assert any(name == "job" and said["held"] for name, said in told)


def test_a_page_gets_events_without_data(busy: Server) -> None:
    with busy.http.stream("GET", "/events?brief=true") as answer:
        told = events(answer)
        assert next(told) == ("status", {})
        busy.post("/jobs", {"command": "true", "delay": "1d"}, status=201)
        assert next(told) == ("status", {})


def test_an_event_stream_reports_a_new_database(
    start_server: Callable[..., Server], queuectl: Program, home: Path
) -> None:
    server = start_server()
    with server.http.stream("GET", "/events") as answer:
        told = events(answer)
        assert next(told)[1]["total"] == 0
        assert not home.exists()
        server.post("/jobs", {"command": "true"}, status=201)
        assert any(said["total"] == 1 for _, said in told)


def test_too_many_ids_are_refused_with_an_error(busy: Server) -> None:
    answer = busy.http.get("/events?" + "&".join(f"id={number}" for number in range(101)))
    assert answer.status_code == 422


# ── logs ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_log_is_followed_as_it_grows_until_the_job_has_ended(busy: Server, tmp_path: Path) -> None:
    go = tmp_path / "go"
    job = busy.post("/jobs", {"command": f"echo one; {until(go)}; echo two"}, status=201)["id"]
    with busy.http.stream("GET", f"/jobs/{job}/logs?follow=true&markers=false") as answer:
        pieces = answer.iter_bytes()
        assert next(pieces) == b"one\n"
        go.touch()
        assert b"".join(pieces) == b"two\n"


def test_a_follower_that_was_cut_off_goes_on_where_it_was(busy: Server) -> None:
    job = busy.post("/jobs", {"command": "printf 'one\\ntwo\\n'"}, status=201)["id"]
    wait_for_state(busy, job, "completed")
    stream = {"Accept": "text/event-stream"}
    path = f"/jobs/{job}/logs?follow=true&markers=false"
    with busy.http.stream("GET", path, headers=stream) as answer:
        assert list(events(answer)) == [("output", "one\ntwo\n"), ("end", "")]
    with busy.http.stream("GET", path, headers={**stream, "Last-Event-ID": "4"}) as answer:
        assert list(events(answer)) == [("output", "two\n"), ("end", "")]
    with busy.http.stream("GET", f"{path}&tail=1", headers={**stream, "Last-Event-ID": "4"}) as answer:
        assert list(events(answer)) == [("output", "two\n"), ("end", "")]


@pytest.mark.parametrize(
    "wanted, part, span",
    [
        ("bytes=0-2", "012", "0-2/10"),
        ("bytes=7-", "789", "7-9/10"),
        ("bytes=-4", "6789", "6-9/10"),
        ("bytes=8-99", "89", "8-9/10"),
    ],
)
def test_a_range_of_a_log_is_given(busy: Server, ten: str, wanted: str, part: str, span: str) -> None:
    answer = busy.http.get(f"/jobs/{ten}/logs?markers=false", headers={"Range": wanted})
    assert (answer.status_code, answer.text, answer.headers["content-range"]) == (206, part, f"bytes {span}")


def test_a_range_beyond_the_end_is_refused_with_the_size(busy: Server, ten: str) -> None:
    answer = busy.http.get(f"/jobs/{ten}/logs?markers=false", headers={"Range": "bytes=10-"})
    assert (answer.status_code, answer.headers["content-range"]) == (416, "bytes */10")


@pytest.mark.parametrize("wanted", ["bytes=0-1,3-4", "lines=1-2", "bytes=x-y", "bytes=-", "bytes=\u00b2-"])
def test_a_range_that_is_none_gives_all(busy: Server, ten: str, wanted: str) -> None:
    answer = busy.send(f"GET {API}/jobs/{ten}/logs?markers=false HTTP/1.1", {"Range": wanted})
    assert answer.status == 200


@pytest.fixture(scope="module")
def ten(busy: Server) -> str:
    """A job that has printed ten bytes."""
    job = str(busy.post("/jobs", {"command": "printf 0123456789"}, status=201)["id"])
    wait_for_state(busy, job, "completed")
    return job


# ── thread pools ──────────────────────────────────────────────────────────────────────────────────────────────


@contextlib.contextmanager
def asking(server: Server, method: str, path: str, count: int, *, token: str = FULL) -> Iterator[list[socket.socket]]:
    """Clients that ask, and then read nothing."""
    wires = [server.connect() for _ in range(count)]
    try:
        for wire in wires:
            head = f"{method} {API}{path} HTTP/1.1\r\nHost: {server.host}\r\nAuthorization: Bearer {token}\r\n\r\n"
            wire.sendall(head.encode())
        yield wires
    finally:
        for wire in wires:
            wire.close()


def refused(wires: list[socket.socket]) -> int:
    """How many of them were told that there is no run."""
    ready = select.select(wires, [], [], 0)[0]
    return sum(wire.recv(12, socket.MSG_PEEK) == b"HTTP/1.1 503" for wire in ready)


def test_followers_that_read_nothing_do_not_block_others_and_free_their_threads(busy: Server, tmp_path: Path) -> None:
    go = tmp_path / "go"
    job = busy.post("/jobs", {"command": f"head -c 2000000 /dev/zero; {until(go)}"}, status=201)["id"]
    wait_for_state(busy, job, "processing")
    other = busy.post("/jobs", {"command": "sleep 60"}, status=201)["id"]
    wait_for_state(busy, other, "processing")
    with asking(busy, "GET", f"/jobs/{job}/logs?follow=true", store_threads.STREAM_THREADS + 1) as wires:
        wait_until(lambda: refused(wires) == 1, what="all seats to be taken")
        answer = busy.http.get(f"/jobs/{job}/logs")
        assert (answer.json()["code"], answer.headers["retry-after"]) == ("too-many-waiting", "1")
        assert busy.get("/status")["total"]
        assert busy.post("/jobs", {"command": "true"}, status=201)
        assert busy.post(f"/jobs/{other}/cancel")["state"] == "cancelled"
    go.touch()
    wait_until(lambda: busy.http.get(f"/jobs/{job}/logs?tail=1").status_code == 200, what="a run to be free")


def test_waiting_clients_do_not_block_others_and_free_their_threads(busy: Server) -> None:
    job = busy.post("/jobs", {"command": "true", "delay": "1d"}, status=201)["id"]
    path = f"/jobs/{job}/wait?timeout=60s"
    with asking(busy, "GET", path, store_threads.SLOW_READ_THREADS + 1) as wires:
        wait_until(lambda: refused(wires) == 1, what="all seats to be taken")
        assert busy.http.get(path).json()["code"] == "too-many-waiting"
        assert busy.get("/status")["total"]
    late = f"/jobs/{job}/wait?timeout=1ms"
    wait_until(lambda: busy.http.get(late).status_code == 504, what="a run to be free")


def test_clients_that_may_only_read_cannot_fill_the_pool_of_changes(busy: Server) -> None:
    job = busy.post("/jobs", {"command": "true", "delay": "1d"}, status=201)["id"]
    with asking(busy, "GET", f"/jobs/{job}/wait?timeout=60s", store_threads.SLOW_READ_THREADS + 1, token=READ) as wires:
        wait_until(lambda: refused(wires) == 1, what="the pool of slow reads to be full")
        assert busy.post("/jobs/actions", {"action": "hold", "ids": [job]})["done"] == [job]
        assert busy.post("/dlq/retry", {"where": {}})["done"] == []
        assert busy.http.post("/prune", json={"older_than": "1d"}).status_code == 200
        assert busy.post(f"/jobs/{job}/cancel")["state"] == "cancelled"


def test_a_change_is_answered_while_all_threads_for_reads_are_busy(home: Path) -> None:
    async def scene() -> None:
        with StorePools(lambda clock: WebSession(home, gate=NO_POLICY, clock=clock)) as pools:
            auth = AuthConfig(Tokens([Token("tests", Right.FULL, FULL)]), 80, loopback=True, secure=False)
            app = make_app(pools, auth, Feed(pools.watching))
            go = threading.Event()
            blocked = [
                asyncio.ensure_future(pools.reads.ask(lambda _: go.wait(60))) for _ in range(store_threads.READ_THREADS)
            ]
            transport = httpx.ASGITransport(app)  # type: ignore[arg-type]
            headers = {"Authorization": f"Bearer {FULL}"}
            try:
                async with httpx.AsyncClient(
                    transport=transport, base_url=f"http://127.0.0.1{API}", headers=headers
                ) as http:
                    read = asyncio.ensure_future(http.get("/status"))
                    answer = await asyncio.wait_for(http.post("/jobs", json={"command": "true"}), 20)
                    assert (answer.status_code, read.done()) == (201, False)
                    go.set()
                    assert (await read).status_code == 200
            finally:
                go.set()
                await asyncio.gather(*blocked)

    play(scene)


def test_a_hundred_ask_at_once_and_each_is_answered(busy: Server) -> None:
    before = busy.get("/jobs?tag=crowd&limit=1000")["items"]
    answers: list[Any] = []

    def ask() -> None:
        with busy.client() as http:
            answers.append(http.post("/jobs", json={"command": "true", "delay": "1d", "tags": ["crowd"]}).json()["id"])

    crowd = [threading.Thread(target=ask) for _ in range(100)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join()
    stored = {job["id"] for job in busy.get("/jobs?tag=crowd&limit=1000")["items"]}
    assert not before
    assert stored == set(answers)
    assert len(answers) == 100


# ── minutes ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_without_a_worker_the_server_records_samples(start_server: Callable[..., Server], home: Path) -> None:
    with contextlib.closing(open_store(str(home))) as store:
        store.enqueue([new_job()])
        server = start_server()
        wait_until(lambda: store.samples.points(Span.MINUTE, since_ms=0), what="a point")
        for query in ("", "?span=hour", "?since=10m", "?queue=default"):
            point, *_ = server.get(f"/history{query}")
            assert (point["enqueued"], point["waiting"], point["wait_ms"]["p95"]) == (1, 1, None)
        for query in ("?queue=other", "?queue=*"):
            assert not any(point["enqueued"] or point["waiting"] for point in server.get(f"/history{query}"))
        assert server.http.get("/history?queue=a%2Fb").status_code == 422


# ── the end ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_long_requests_do_not_delay_the_shutdown(start_server: Callable[..., Server]) -> None:
    server = start_server()
    job = server.post("/jobs", {"command": "true", "delay": "1d"}, status=201)["id"]
    with (
        asking(server, "GET", f"/jobs/{job}/wait?timeout=60s", 2) as waiting,
        asking(server, "GET", f"/jobs/{job}/logs?follow=true", 2),
        asking(server, "GET", "/events", 2) as watching,
    ):
        wait_until(lambda: watching[0].recv(12) == b"HTTP/1.1 200", what="the watchers to be answered")
        assert server.end() == 0
        wait_until(lambda: is_closed(waiting[0]), what="the waiting ones to be let go")
    assert "Traceback" not in server_log(server)


def server_log(server: Server) -> str:
    return Path(server._log.name).read_text()
