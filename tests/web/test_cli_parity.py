"""The API returns the same objects as `queuectl … --json`."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from queuectl.jobs.fingerprint import fingerprint
from tests.program import Program, WorkerProcess
from tests.wait import wait_until
from tests.web.server import Server, wait_for_state

# What the clock changes between two looks.
FLEETING = {
    "due_in_ms",
    "message",
    "oldest_waiting_ms",
    "checked_at",
    "rate",
    "rate_now",
    "left_ms",
    "effective_priority",
    "heartbeat_at",
    "throughput",
}


URL = "https://hooks.example.org/k9z8"  # of what happens to no job here
HOOKS = {"on_success": URL, "on_failure": "none", "on_dead": URL}


@pytest.fixture(scope="module")
def server(house: Program, place: Path) -> Iterator[Server]:
    with Server(house, place, "--allow-alert-commands") as one:
        yield one


def lasting(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: lasting(part) for name, part in value.items() if name not in FLEETING}
    return [lasting(part) for part in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def full(server: Server, house: Program, worker: WorkerProcess) -> Server:
    """A store with something of everything."""
    server.post("/jobs", {"id": "good", "command": "echo out", "env": {"A": "b"}, "tags": ["t"]}, status=201)
    server.post("/jobs", {"id": "bad", "command": "exit 3", "max_retries": 0, "queue": "mail"}, status=201)
    server.post("/jobs", {"id": "later", "command": "true", "delay": "1d", "queue": "mail", **HOOKS}, status=201)
    server.post("/jobs", {"id": "child", "command": "true", "depends_on": ["later"]}, status=201)
    server.post("/jobs/many", {"jobs": [{"command": "true"}], "batch": "some", "on_complete": "true"}, status=201)
    server.post("/cron", {"name": "nightly", "schedule": "0 2 * * *", "command": "true", "env": {"A": "b"}}, status=201)
    # About an unused queue: every check of alerts writes the result.
    alert = {"name": "deaths", "dead": 99, "queue": "quiet", "webhook": "https://example.org/secret"}
    server.post("/alerts", alert, status=201)
    server.http.patch("/queues/mail", json={"concurrency": 2, "rate": "10/m", "on_success": URL}).raise_for_status()
    server.http.put("/config/max-retries", json={"value": 5}).raise_for_status()
    server.http.put("/config/webhook-success", json={"value": URL}).raise_for_status()
    wait_for_state(server, "good", "completed")
    wait_for_state(server, "bad", "dead")
    assert server.get("/batches/some/wait", timeout="10s")["done"] == 1
    # And the job that its end has added: nothing is to change between a look here and a look there.
    wait_until(lambda: server.get("/alerts/deaths")["checked_at"], what="the alert to be checked")
    wait_until(lambda: server.get("/status")["states"]["completed"] == 3, what="the rest to end")
    return server


@pytest.mark.parametrize(
    "words, path",
    [
        ("status", "/status"),
        ("metrics", "/metrics"),
        ("show good", "/jobs/good"),
        ("show bad", "/jobs/bad"),
        ("show later", "/jobs/later"),
        ("dlq show bad", "/dlq/bad"),
        ("explain later", "/jobs/later/explain"),
        ("explain bad", "/jobs/bad/explain"),
        ("graph later", "/jobs/later/graph"),
        ("batch show some", "/batches/some"),
        ("cron show nightly", "/cron/nightly"),
        ("alert show deaths", "/alerts/deaths"),
        ("config get max-retries", "/config/max-retries"),
        ("config get webhook-success", "/config/webhook-success"),
        ("wait good bad", "/wait?id=good&id=bad"),
        ("wait --any good later", "/wait?id=good&id=later&any=true"),
        ("wait --batch some", "/batches/some/wait"),
        ("doctor", "/doctor"),
    ],
)
def test_a_read_returns_the_same(full: Server, house: Program, words: str, path: str) -> None:
    printed = house(*words.split(), "--json").json
    assert lasting(full.get(path)) == lasting(printed)


@pytest.mark.parametrize(
    "words, path",
    [
        ("queue list", "/queues"),
        ("batch list", "/batches"),
        ("cron list", "/cron"),
        ("alert list", "/alerts"),
        ("worker list", "/workers"),
        ("config list", "/config"),
    ],
)
def test_lists_are_the_same(full: Server, house: Program, words: str, path: str) -> None:
    assert lasting(full.get(path)) == {"items": lasting(house(*words.split(), "--json").json), "next_cursor": None}


@pytest.mark.parametrize(
    "words, query",
    [
        ("list", ""),
        ("list --state dead,pending", "state=dead,pending"),
        ("list --state dead --state pending", "state=dead&state=pending"),
        ("list --queue mail --sort priority", "queue=mail&sort=priority"),
        ("list --tag t", "tag=t"),
        ("list --match exit", "match=exit"),
        ("list --error EXIT", "error=EXIT"),
        ("list --worker absent", "worker=absent"),
        ("list --where=-state:dead", "q=-state:dead"),
        ("list --where state:dead", "q=state:dead"),
        ("list --since 1h --sort -created", "since=1h&sort=-created"),
        ("list --batch some", "batch=some"),
    ],
)
def test_pages_of_a_list_are_the_same(full: Server, house: Program, words: str, query: str) -> None:
    printed = house(*words.split(), "--json", check=0).json
    got: list[Any] = []
    cursor: str | None = ""
    while cursor is not None:
        more = f"&cursor={cursor}" if cursor else ""
        page = full.get(f"/jobs?limit=2&{query}{more}")
        got, cursor = [*got, *page["items"]], page["next_cursor"]
    assert lasting(got) == lasting(printed)


def test_dead_jobs_are_listed_the_same(full: Server, house: Program) -> None:
    assert lasting(full.get("/dlq")["items"]) == lasting(house("dlq", "list", "--json", check=0).json)


def test_errors_of_dead_jobs_are_grouped_with_the_latest_job(full: Server) -> None:
    (bad,) = full.get("/dlq")["items"]
    (told,) = full.get("/deaths")
    assert told == {
        "fingerprint": fingerprint("dead", bad["error"], bad["last_output"]),
        "error": bad["error"],
        "last_output": bad["last_output"],
        "queue": bad["queue"],
        "jobs": 1,
        "newest": bad["id"],
        "at": bad["finished_at"],
    }


def test_dead_jobs_of_one_kind_are_listed_and_retried_together(full: Server) -> None:
    (told,) = full.get("/deaths")
    assert [job["id"] for job in full.get(f"/dlq?fingerprint={told['fingerprint']}")["items"]] == [told["newest"]]
    assert full.get("/dlq?fingerprint=0")["items"] == []
    body = {"where": {"fingerprint": told["fingerprint"]}, "preview": True}
    assert full.http.post("/dlq/retry", json=body).json()["sample"] == [told["newest"]]


def test_an_export_is_the_same_byte_by_byte(full: Server, house: Program) -> None:
    words = ("export", "--history", "--rules", "--format", "jsonl")
    answer = full.http.get("/export?history=true&rules=true")
    assert answer.headers["content-type"] == "application/jsonl"
    assert answer.text == house(*words, check=0).out
    assert full.http.get("/export?format=json&state=dead").json()[0]["id"] == "bad"


def test_the_log_of_a_job_is_the_same(full: Server, house: Program) -> None:
    assert full.http.get("/jobs/good/logs").text == house("logs", "good", check=0).out
    assert full.http.get("/jobs/good/logs?markers=false").text == "out\n"


def test_errors_have_the_same_code_and_message(full: Server, house: Program) -> None:
    for words, method, path in (
        ("show nothing", "GET", "/jobs/nothing"),
        ("retry good", "POST", "/jobs/good/retry"),
        ("cron show nothing", "GET", "/cron/nothing"),
        ("alert show nothing", "GET", "/alerts/nothing"),
        ("alert test nothing", "POST", "/alerts/nothing/test"),
        ("batch show nothing", "GET", "/batches/nothing"),
        ("config get nothing", "GET", "/config/nothing"),
    ):
        told = house(*words.split(), "--json")
        answer = full.http.request(method, path)
        said = answer.json()
        assert answer.status_code >= 400
        error = json.loads(told.err)["error"] if told.err else told.json["refused"][0]
        assert (said["code"], said["detail"]) == (error["code"], error["message"])


# ── changes ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("verb", ["hold", "release", "run-now", "cancel", "retry"])
def test_a_verb_does_what_the_command_does(server: Server, house: Program, verb: str) -> None:
    before = {"retry": "cancel", "release": "hold"}.get(verb)
    states = []
    house("queue", "pause", "verbs", check=0)  # or a worker may have begun what it is looked at for
    for act in (lambda one: server.post(f"/jobs/{one}/{verb}"), lambda one: house(verb, one, check=0)):
        job = server.post("/jobs", {"command": "true", "delay": "1d", "queue": "verbs"}, status=201)["id"]
        if before:
            house(before, job, check=0)
        act(job)
        seen = house("show", job, "--json", check=0).json
        states.append((seen["state"], seen["held"]))
        house("cancel", job)
    assert states[0] == states[1]


def test_many_are_done_or_refused_as_by_the_command(server: Server, house: Program) -> None:
    server.post("/jobs", {"id": "many-1", "command": "true", "delay": "1d", "tags": ["many"]}, status=201)
    said = server.post("/jobs/actions", {"action": "hold", "ids": ["many-1", "nothing"]})
    assert said == house("hold", "many-1", "nothing", "--json").json
    preview = server.post("/jobs/actions", {"action": "release", "where": {"tag": "many"}, "preview": True})
    assert (preview["count"], preview["sample"]) == (1, ["many-1"])
    assert server.post("/jobs/actions", {"action": "release", "where": {"tag": "many"}})["done"] == ["many-1"]
    change = {"action": "edit", "where": {"tag": "many"}, "change": {"priority": 7}}
    assert server.post("/jobs/actions", change)["done"] == ["many-1"]
    assert server.get("/jobs/many-1")["priority"] == 7
    assert server.post("/jobs/actions", {"action": "cancel", "where": {"tag": "many"}})["done"] == ["many-1"]
    assert server.post("/jobs/actions", {"action": "prune", "ids": ["many-1"]})["done"] == ["many-1"]
    assert server.http.get("/jobs/many-1").status_code == 404


def test_all_ways_to_add_many_are_there(server: Server) -> None:
    each = {"for_each": ["a b", "c"], "job": {"command": "echo {}", "delay": "1d", "queue": "each"}}
    jobs = server.post("/jobs/many", each, status=201)
    assert [(job["command"], job["queue"]) for job in jobs] == [("echo 'a b'", "each"), ("echo 'c'", "each")]
    array = {"array": "1-3%2", "job": {"command": "true", "delay": "1d"}, "batch": "rows"}
    assert len(server.post("/jobs/many", array, status=201)) == 3
    assert server.get("/batches/rows")["jobs"] == 3
    assert len(server.post("/jobs", [{"command": "true", "delay": "1d"}] * 2, status=201)) == 2


def test_webhooks_are_set_in_the_same_way(server: Server, house: Program) -> None:
    def told() -> list[str]:
        return re.findall(r"(success|failure|dead): https://hooks\.example\.org/…", house("show", job, check=0).out)

    job = server.post("/jobs", {"command": "true", "delay": "1d", "on_success": "none", "on_dead": URL}, status=201)[
        "id"
    ]
    assert told() == ["dead"]
    server.http.patch(f"/jobs/{job}", json={"on_failure": URL, "on_dead": "none"}).raise_for_status()
    assert told() == ["failure"]
    house("edit", job, "--on-failure", "none", "--on-success", URL, check=0)
    assert told() == ["success"]
    refused = server.http.post("/jobs", json={"command": "true", "on_dead": "https://me:key@example.org/"})
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid-input")


def test_an_edit_of_a_job_that_has_changed_is_refused(server: Server) -> None:
    job = server.post("/jobs", {"command": "true", "delay": "1d"}, status=201)
    seen = {"as_of": job["updated_at"]}
    first = server.http.patch(f"/jobs/{job['id']}", json={"priority": 1, **seen})
    assert first.status_code == 200
    if first.json()["updated_at"] != job["updated_at"]:
        again = server.http.patch(f"/jobs/{job['id']}", json={"priority": 2, **seen})
        assert (again.status_code, again.json()["code"]) == (409, "stale-edit")


def test_a_new_job_has_a_location_header(server: Server) -> None:
    answer = server.http.post("/jobs", json={"command": "true", "delay": "1d", "unique_key": "one"})
    assert answer.status_code == 201
    assert server.http.get(server.url + answer.headers["location"]).json()["id"] == answer.json()["id"]
    again = server.http.post("/jobs", json={"command": "true", "delay": "1d", "unique_key": "one"})
    assert (again.status_code, again.json()["duplicate"], again.json()["id"]) == (200, True, answer.json()["id"])


# ── the same request again ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_request_that_is_repeated_with_its_key_adds_nothing_and_is_answered_the_same(server: Server) -> None:
    key = {"Idempotency-Key": "0f8fad5b-d9cb-469f-a165-70867728950e"}
    body = [{"command": "true", "delay": "1d", "tags": ["once"]}] * 2
    first, again = (server.http.post("/jobs", json=body, headers=key) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 201)
    assert [job["id"] for job in first.json()] == [job["id"] for job in again.json()]
    assert len(server.get("/jobs", tag="once")["items"]) == 2
    other = server.http.post("/jobs", json=body[:1], headers=key)
    assert (other.status_code, other.json()["code"]) == (409, "idempotency-key-reused")


def test_of_the_same_request_many_times_at_once_one_adds(server: Server) -> None:
    key = {"Idempotency-Key": "all-at-once"}
    answers: list[str] = []

    def ask() -> None:
        with server.client(headers={**server.http.headers, **key}) as http:
            answers.append(http.post("/jobs", json={"command": "true", "delay": "1d"}).json()["id"])

    crowd = [threading.Thread(target=ask) for _ in range(20)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join()
    assert len(answers) == 20
    assert len(set(answers)) == 1


@pytest.mark.parametrize("key", ["", "x" * 256, "a\tb", "caf\u00e9"])
def test_a_key_that_is_none_is_refused(server: Server, key: str) -> None:
    given = [(b"Idempotency-Key", key.encode())]
    assert server.http.post("/jobs", json={"command": "true"}, headers=given).status_code == 422


# ── all the rest ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_other_commands_have_operations(server: Server, house: Program) -> None:
    server.post("/jobs", {"id": "mover", "command": "true", "delay": "1d", "queue": "from"}, status=201)
    assert server.post("/queues/from/move", {"to": "to"})["done"] == ["mover"]
    assert server.post("/queues/to/pause")["paused"]
    assert not server.post("/queues/to/resume")["paused"]
    copy = server.post("/jobs/mover/clone", {"priority": 3}, status=201)
    assert (copy["queue"], copy["priority"]) == ("to", 3)
    assert server.post("/prune", {"older_than": "0s", "dry_run": True})["dry_run"]
    server.http.put("/config/priority", json={"value": 2}).raise_for_status()
    assert server.http.delete("/config/priority").json()["source"] == "default"
    server.http.put("/config/priority", json={"value": 2}).raise_for_status()
    assert "priority" in server.http.delete("/config").json()["unset"]
    assert server.post("/doctor/fix")["problems"] >= 0
    server.post("/cron", {"name": "c", "schedule": "0 2 * * *", "command": "true"}, status=201)
    assert server.post("/cron/c/pause")["paused"]
    assert not server.post("/cron/c/resume")["paused"]
    assert len(server.get("/cron/c/next", n=3)) == 3
    assert server.post("/cron/c/run", status=201)["cron"] == "c"
    assert server.http.delete("/cron/c").json()["done"] == ["c"]
    server.post("/alerts", {"name": "a", "oldest": "1d", "for": 5, "command": "echo told"}, status=201)
    assert server.post("/alerts/a/test")["text"] == "ran echo told: told"
    assert server.http.delete("/alerts/a").json()["done"] == ["a"]
    gone = server.post("/dlq/purge", {"where": {}})
    assert gone["refused"] == []
