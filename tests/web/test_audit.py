"""Changes over HTTP are recorded in the audit log with the name of the token."""

from __future__ import annotations

from tests.web.server import Server


def test_a_change_over_http_is_recorded_with_the_name_of_its_token(server: Server) -> None:
    job = server.post("/jobs", {"command": "true"}, status=201)["id"]
    server.post(f"/jobs/{job}/cancel")
    found = server.get("/audit", id=job)["items"]
    assert [(one["what"], one["who"]["token"]) for one in found] == [("cancel", "ours"), ("enqueue", "ours")]
    assert server.get("/audit", id=job, who="mallory")["items"] == []
