"""worker start --log-format json: what a worker says, for programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.scene import Scene
from tests.wait import wait_until

pytestmark = pytest.mark.usefixtures("fresh")


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_each_line_is_an_object_with_the_facts_of_what_happened(scene: Scene) -> None:
    good = scene.enqueue("printf 'a\\nb'; true # \u001b[31m \u007b")
    bad = scene.enqueue("exit 3", max_retries=1, queue="other")
    worker = scene.worker("--name", "w1", "--drain", "--count", "1", "--log-format", "json")
    assert worker.wait() == 0
    said = lines(worker.output)
    assert all({"time", "level", "event", "worker", "message"} <= line.keys() for line in said)
    assert {line["worker"] for line in said} == {"w1"}
    assert "\u001b" not in worker.output
    events = {(line["event"], line.get("job")): line for line in said}
    assert events["worker", None]["slots"] == 1
    assert events["worker", None]["pid"] == worker.pid
    started = events["started", good]
    assert (started["level"], started["queue"], started["run"]) == ("info", "default", 1)
    ended = events["completed", good]
    assert (ended["state"], ended["exit_code"], ended["error"]) == ("completed", 0, None)
    assert ended["duration_ms"] >= 0
    dead = events["dead", bad]
    assert (dead["level"], dead["queue"], dead["exit_code"], dead["attempts"]) == ("error", "other", 3, 1)
    assert events["stopped", None]["jobs_done"] == 2


def test_a_worker_in_the_background_and_restarted_still_speaks_json(scene: Scene) -> None:
    told = scene.queuectl("worker", "start", "-d", "--name", "w1", "--log-format", "json", "--json", check=0).json
    log = Path(told["log"])
    scene.queuectl("worker", "restart", "w1", check=0)
    scene.wait_for(scene.enqueue("true"), "completed")
    scene.queuectl("worker", "stop", check=0)
    wait_until(lambda: "stopped" in log.read_text("utf-8"), what="its last line")
    events = [line["event"] for line in lines(log.read_text("utf-8"))]
    assert events.count("worker") == 2
    assert {"restart", "started", "completed", "stopping", "stopped"} <= set(events)


def test_another_format_is_refused(scene: Scene) -> None:
    refused = scene.queuectl("worker", "start", "--log-format", "xml")
    assert (refused.code, refused.out) == (2, "")


def test_a_service_keeps_the_format(scene: Scene) -> None:
    printed = scene.queuectl("service", "install", "--print", "--log-format", "json", check=0).out
    assert " --log-format json\n" in printed
