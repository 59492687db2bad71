"""Import refuses what enqueue refuses: the reserved queue, the origin of webhooks, settings, the policy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.scene import Scene
from tests.e2e.scene import scene as scene
from tests.program import Program
from tests.users import me
from tests.wait import wait_until
from tests.webhooks.receiver import receiving

WEBHOOKS = "queuectl.webhooks"
JOB = {"id": "a", "command": "true", "state": "pending", "created_at": "2026-01-02T03:04:05Z"}
CALL = {**JOB, "queue": WEBHOOKS, "command": None, "argv": ["queuectl:webhook", "dead", "x", "1"]}
FORGED = {**CALL, "argv": ["queuectl:webhook", "--db", "/home/other/queue.db", "dead", "x", "1"]}


def imported(program: Program, *records: dict[str, Any], rules: bool = False, check: int = 0) -> str:
    arguments = ("--rules",) if rules else ()
    return program("import", *arguments, "-", input=json.dumps(records), check=check).err


def calls(scene: Scene) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = scene.queuectl("list", "--queue", WEBHOOKS, "--json", check=0).json
    return found


def logs_of_calls(scene: Scene) -> str:
    return "".join(scene.queuectl("logs", call["id"]).out for call in calls(scene))


@pytest.mark.parametrize("record", [{**JOB, "queue": WEBHOOKS}, CALL, FORGED, {**CALL, "state": "completed"}])
def test_a_job_for_the_reserved_queue_is_refused_and_nothing_is_imported(
    queuectl: Program, record: dict[str, Any]
) -> None:
    error = imported(queuectl, {**JOB, "id": "b"}, record, check=2)
    assert error.startswith(f"error: item 2: queue: {WEBHOOKS} is reserved for webhook deliveries\n")
    assert queuectl("list", "--queue", WEBHOOKS, "--json", check=0).json == []
    assert queuectl("list", "--json", check=0).json == []


@pytest.mark.parametrize(
    "record",
    [
        {
            "kind": "schedule",
            "name": "s",
            "schedule": "@hourly",
            "tz": "UTC",
            "job": {"queue": WEBHOOKS, "command": "id"},
        },
        {"kind": "batch", "name": "b", "on_complete": {"queue": WEBHOOKS, "command": "id"}},
    ],
)
def test_a_schedule_or_batch_for_the_reserved_queue_is_refused(queuectl: Program, record: dict[str, Any]) -> None:
    error = imported(queuectl, record, rules=True, check=2)
    assert f"{WEBHOOKS} is reserved for webhook deliveries" in error


@pytest.mark.parametrize(
    "record",
    [
        {"kind": "queue", "name": "default", "on_success": "http://127.0.0.1:1/"},
        {"kind": "alert", "name": "x", "dead": 1, "command": "id"},
        {"kind": "alert", "name": "x", "dead": 1, "webhook": "http://127.0.0.1:1/"},
        {"kind": "schedule", "name": "s", "schedule": "@hourly", "tz": "UTC", "job": {"command": "id"}},
        {"kind": "batch", "name": "b", "on_complete": {"command": "id"}},
    ],
)
def test_a_file_that_has_more_than_jobs_needs_an_option(queuectl: Program, record: dict[str, Any]) -> None:
    error = imported(queuectl, JOB, record, check=2)
    assert error.startswith(f"error: item 2: kind: the file has more than jobs: '{record['kind']}'\n")
    assert "--rules" in error
    assert queuectl("list", "--json", check=0).json == []


@pytest.mark.parametrize("origin", ["config", "queue", "job"])
def test_a_webhook_of_an_imported_job_does_not_reach_a_private_address(scene: Scene, origin: str) -> None:
    with receiving() as receiver:
        imported(scene.queuectl, {**JOB, "hooks": {"success": [receiver.url, origin]}})
        scene.worker()
        wait_until(lambda: "127.0.0.1 is a private address" in logs_of_calls(scene), what="the call to be refused")
        assert receiver.received == []


def test_a_webhook_keeps_the_origin_that_it_has_in_this_store(scene: Scene) -> None:
    url = "https://example.org/{}".format
    scene.configure(webhook_success=url("all"))
    scene.queuectl("queue", "set", "mail", "--on-dead", url("queue"), check=0)
    hooks = {"success": [url("all"), "job"], "dead": [url("queue"), "job"], "failure": [url("all"), "config"]}
    imported(scene.queuectl, {**JOB, "queue": "mail", "hooks": hooks})
    kept = {name: list(hook) for name, hook in (scene.store.get("a").hooks or {}).items()}
    assert kept == {"success": [url("all"), "config"], "dead": [url("queue"), "queue"], "failure": [url("all"), "job"]}


def test_the_same_job_is_known_again_though_the_settings_have_changed(scene: Scene) -> None:
    url = "https://example.org/all"
    scene.configure(webhook_success=url)
    imported(scene.queuectl, {**JOB, "hooks": {"success": [url, "config"]}})
    scene.queuectl("config", "unset", "webhook-success", check=0)
    answer = scene.queuectl("import", "-", "--json", input=json.dumps([{**JOB, "hooks": {"success": [url, "config"]}}]))
    assert answer.json["skipped"] == 1


@pytest.mark.parametrize(
    "settings", [{"webhook_allow_private": True}, {"webhook-dead": "http://127.0.0.1/"}, {"webhook_secret": "x" * 32}]
)
def test_settings_that_decide_what_is_called_are_not_imported(
    queuectl: Program, tmp_path: Path, settings: dict[str, object]
) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"max_retries": 5, **settings}))
    error = queuectl("import", file, check=2).err
    assert "no file can set it" in error
    assert queuectl("config", "get", "max-retries", check=0).out != "5\n"


def test_an_imported_job_passes_the_policy(scene: Scene) -> None:
    scene.home.mkdir(mode=0o700, exist_ok=True)
    (scene.home / "policy.toml").write_text(f'user = "{me()}"\nprograms = ["/bin/echo"]\n')
    (scene.home / "policy.toml").chmod(0o600)
    imported(scene.queuectl, JOB)
    scene.drain()
    assert scene.job("a")["error"].startswith("refused by policy: shell: ")


def test_calls_of_webhooks_are_exported_only_if_their_queue_is_named(scene: Scene) -> None:
    scene.configure(webhook_success="https://example.org/")
    scene.queuectl("queue", "pause", WEBHOOKS, check=0)
    scene.enqueue("true", id="a")
    scene.worker()
    wait_until(lambda: calls(scene), what="the call to be queued")
    assert [job["id"] for job in scene.queuectl("export", check=0).json] == ["a"]
    named = scene.queuectl("export", "--queue", WEBHOOKS, check=0).json
    assert [job["id"] for job in named] == [job["id"] for job in calls(scene)]
