"""Every list of the API is paginated."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.server import Server

NAMES = ("a", "b", "c", "d", "e")


@pytest.fixture(scope="module")
def full(server: Server) -> Server:
    for name in NAMES:
        server.post("/jobs/many", {"jobs": [{"command": "true", "queue": name}], "batch": name}, status=201)
        server.post("/cron", {"name": name, "schedule": "0 2 * * *", "command": "true"}, status=201)
        server.post("/alerts", {"name": name, "dead": 99, "webhook": "https://example.org/"}, status=201)
    return server


def pages(server: Server, path: str, limit: int) -> list[list[dict[str, Any]]]:
    found, more = [], {}
    for _ in range(100):
        page = server.get(path, limit=limit, **more)
        found.append(page["items"])
        if page["next_cursor"] is None:
            return found
        more = {"cursor": page["next_cursor"]}
    raise AssertionError(f"{path} has no end")


@pytest.mark.parametrize("path", ["/queues", "/batches", "/cron", "/alerts", "/config", "/audit", "/jobs"])
@pytest.mark.parametrize("limit", [1, 2, 5])
def test_all_pages_together_are_the_whole_list(full: Server, path: str, limit: int) -> None:
    whole, parts = full.get(path, limit=1000)["items"], pages(full, path, limit)
    assert len(whole) >= len(NAMES)
    assert [_lasting(one) for part in parts for one in part] == [_lasting(one) for one in whole]
    assert {len(part) for part in parts[:-1]} <= {limit}
    assert 1 <= len(parts[-1]) <= limit


def test_a_page_goes_on_behind_one_that_was_removed(full: Server) -> None:
    first = full.get("/alerts", limit=2)
    assert full.http.delete(f"/alerts/{first['items'][-1]['name']}").status_code == 200
    rest = full.get("/alerts", cursor=first["next_cursor"])
    assert [one["name"] for one in rest["items"]] == ["c", "d", "e"]
    full.post("/alerts", {"name": "b", "dead": 99, "webhook": "https://example.org/"}, status=201)


@pytest.mark.parametrize("path", ["/queues", "/workers", "/cron", "/config", "/audit"])
@pytest.mark.parametrize(
    "cursor", ["", "nonsense", "WzFd", "WzEsImEiLDJd", "W3RydWVd", "WyJhIiwxXQ", "Wy0xXQ==", "A" * 501]
)
def test_a_forged_cursor_is_refused(full: Server, path: str, cursor: str) -> None:
    if (path, cursor) == ("/audit", "WzFd"):
        assert full.get(path, cursor=cursor) == {"items": [], "next_cursor": None}  # before the first record
        return
    answer = full.http.get(path, params={"cursor": cursor})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid-input")


def _lasting(one: dict[str, Any]) -> dict[str, Any]:
    """Alerts are looked at between two looks of ours."""
    return {name: value for name, value in one.items() if name not in ("checked_at", "value", "since")}
