"""Queries, counts and previous pages over HTTP."""

from __future__ import annotations

import pytest

from tests.web.server import Server


@pytest.fixture(scope="module")
def full(server: Server) -> Server:
    jobs = [
        {"command": f"convert IMG_{number}.png", "queue": "mail" if number % 2 else "web", "delay": "1h"}
        for number in range(5)
    ]
    server.post("/jobs/many", {"jobs": [*jobs, {"command": "true", "tags": ["eu"], "delay": "1h"}]}, status=201)
    return server


def commands(found: dict[str, list[dict[str, str]]]) -> list[str]:
    return [job["command"] for job in found["items"]]


def test_a_query_selects_jobs_and_a_count_says_how_many(full: Server) -> None:
    first = full.get("/jobs", q="queue:web img -command:_2", limit=1, count="true")
    assert commands(first) == ["convert IMG_4.png"]
    assert (first["total"], first["total_is_exact"], first["before"], first["previous_cursor"]) == (2, True, 0, None)
    second = full.get("/jobs", q="queue:web img -command:_2", limit=1, cursor=first["next_cursor"])
    assert (commands(second), second["before"], second["total"]) == (["convert IMG_0.png"], 1, None)
    back = full.get("/jobs", q="queue:web img -command:_2", limit=1, cursor=second["previous_cursor"], count="true")
    assert back == first


def test_an_invalid_query_is_rejected_with_its_parameter(full: Server) -> None:
    answer = full.http.get("/jobs", params={"q": "queu:web"})
    assert (answer.status_code, answer.json()["detail"]) == (422, "q: unknown qualifier 'queu'")


def test_a_query_selects_the_jobs_of_an_action(full: Server) -> None:
    body = {"action": "hold", "where": {"q": "queue:mail img"}, "preview": True}
    assert full.post("/jobs/actions", body)["count"] == 2
    held = full.post("/jobs/actions", {**body, "preview": False})["done"]
    assert len(held) == 2
    assert full.get("/jobs", q=f"id:{held[0]} state:queued", count="true")["total"] == 1


def test_terms_to_complete_a_query_are_qualifiers_and_known_names(full: Server) -> None:
    terms = full.get("/search/terms")
    assert {"queue:", "error:", "state:dead", "queue:mail", "tag:eu"} <= set(terms)
