"""What goes over the wire: compressed responses, and live updates without the regions that the browser has."""

from __future__ import annotations

import re

import httpx
import pytest

from tests.wait import wait_until
from tests.web.server import Server

VERSION = re.compile(r'<\w+ data-version="(\w+)"[^>]* id="([^"]+)"')


@pytest.fixture(scope="module", autouse=True)
def filled(server: Server) -> None:
    lines = [{"command": f"echo {number}", "queue": "mail", "delay": "1h"} for number in range(60)]
    server.post("/jobs/many", {"jobs": lines}, status=201)


def get(server: Server, path: str, **headers: str) -> httpx.Response:
    url = server.url + path
    return server.http.get(url, headers={"Accept": "text/html", **headers})


@pytest.mark.parametrize("path", ["/jobs", "/static/queuectl.css", "/api/v1/jobs?limit=50", "/api/v1/openapi.json"])
def test_pages_and_answers_are_compressed_if_the_client_accepts_it(server: Server, path: str) -> None:
    packed, plain = get(server, path), get(server, path, **{"Accept-Encoding": "identity"})
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert packed.headers["vary"] == plain.headers.get("vary", "Accept-Encoding")
    assert int(packed.headers["content-length"]) * 3 < len(plain.content)
    assert packed.text[:1] == plain.text[:1]
    refused = get(server, path, **{"Accept-Encoding": "br, gzip;q=0"})
    assert "content-encoding" not in refused.headers


@pytest.mark.parametrize("path", ["/api/v1/events", "/api/v1/export", "/healthz"])
def test_streams_and_small_answers_are_not_compressed(server: Server, path: str) -> None:
    with server.http.stream("GET", server.url + path) as answer:
        assert answer.status_code == 200
        assert "content-encoding" not in answer.headers


def test_an_update_has_only_the_regions_that_the_browser_does_not_have(server: Server) -> None:
    known = {name: version for version, name in VERSION.findall(get(server, "/").text)}
    assert {"states", "queues", "workers", "running"} <= set(known)
    have = " ".join(known.values())
    server.post("/jobs", {"command": "echo more", "queue": "mail", "delay": "1h"}, status=201)
    update = get(server, "/", **{"Queuectl-Update": have}).text
    changed = {name: version for version, name in VERSION.findall(update)}
    assert {"states", "queues"} <= set(changed)
    assert not {"workers", "running"} & set(changed)
    assert all(known[name] != version for name, version in changed.items())
    assert "<nav" not in update


def test_a_relative_time_alone_is_no_change(server: Server) -> None:
    def versions() -> list[str]:
        return [version for version, name in VERSION.findall(get(server, "/jobs?queue=mail").text) if name == "list"]

    def times() -> list[str]:
        return re.findall(r"<time[^>]*>([^<]*)", get(server, "/jobs?queue=mail").text)

    first, before = times(), versions()
    wait_until(lambda: times() != first, what="a relative time to change")
    assert versions() == before
