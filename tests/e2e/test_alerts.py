"""Alerts, from what goes wrong to a real receiver, with real workers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.hosts import Hosts
from tests.e2e.scene import Scene
from tests.e2e.test_webhooks import SECRET, is_genuine
from tests.wait import wait_until
from tests.webhooks.receiver import Receiver, receiving, say, silence


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


@pytest.fixture
def slow() -> Iterator[Receiver]:
    with receiving() as found, silence(found):
        yield found


def told(receiver: Receiver) -> list[dict[str, Any]]:
    return [json.loads(one.body) for one in receiver.received]


def states(receiver: Receiver) -> list[str]:
    return [one["alert"]["state"] for one in told(receiver)]


def test_a_worker_tells_that_jobs_died_and_that_it_is_over(scene: Scene, receiver: Receiver) -> None:
    scene.queuectl("config", "set", "webhook-secret", "-", input=SECRET + "\n", check=0)
    scene.queuectl("alert", "add", "deaths", "--dead", "2", "--webhook", receiver.url, check=0)
    scene.worker("--count", "2")
    for name in ("a", "b"):
        scene.enqueue("exit 3", id=name, max_retries=1)
    wait_until(lambda: states(receiver) == ["firing"], what="it to be told")
    (one,) = receiver.received
    assert is_genuine()(one.body, one.headers["queuectl-signature"], SECRET)
    assert one.headers["queuectl-event"] == "alert"
    (what,) = told(receiver)
    assert one.headers["queuectl-delivery"] == what["id"]
    assert what["event"] == "alert"
    assert what["alert"].pop("text") in {f"2 jobs are dead; the latest is {name}: exit code 3" for name in ("a", "b")}
    assert what["alert"] == {
        "name": "deaths",
        "state": "firing",
        "kind": "dead",
        "queue": None,
        "value": 2,
        "threshold": 2,
    }
    scene.wait_for(what["id"], "completed")
    scene.queuectl("dlq", "purge", "--all", "--yes", check=0)
    wait_until(lambda: states(receiver) == ["firing", "over"], what="it to be over")
    assert "called http://127.0.0.1" in scene.queuectl("logs", what["id"], check=0).out


def test_an_alert_is_delivered_while_webhooks_of_jobs_hang(scene: Scene, receiver: Receiver, slow: Receiver) -> None:
    is_told_before_they_end(scene, receiver, slow)


def test_an_alert_is_delivered_while_webhooks_of_jobs_hang_on_postgresql(
    hosts: Hosts, receiver: Receiver, slow: Receiver
) -> None:
    (scene,) = hosts("a")
    is_told_before_they_end(scene, receiver, slow)


def is_told_before_they_end(scene: Scene, receiver: Receiver, slow: Receiver) -> None:
    scene.configure(webhook_success=slow.url)
    scene.worker("--count", "4")
    scene.enqueue_all([{"command": "true"} for _ in range(14)])
    wait_until(lambda: slow.received, what="a delivery that hangs")
    scene.queuectl("alert", "add", "deaths", "--dead", "1", "--webhook", receiver.url, check=0)
    scene.enqueue("false", id="bad", max_retries=1)
    wait_until(lambda: states(receiver) == ["firing"], what="it to be told")
    calls = [job for job in scene.store.jobs() if "webhook" in job.tags]
    assert (len(calls), [job for job in calls if job.state == "completed"]) == (14, [])


def test_of_many_workers_one_tells(scene: Scene, receiver: Receiver) -> None:
    scene.queuectl("alert", "add", "deaths", "--dead", "1", "--webhook", receiver.url, check=0)
    for _ in range(3):
        scene.worker()
    scene.enqueue("false", id="bad", max_retries=1)
    wait_until(lambda: states(receiver) == ["firing"], what="it to be told")

    def looked() -> int:
        return scene.store.alerts.get("deaths").turn

    before = looked()
    wait_until(lambda: looked() > before, what="the alerts to be evaluated again")
    assert states(receiver) == ["firing"]


def test_a_command_is_run_as_a_job_with_its_variables(scene: Scene) -> None:
    file = scene.path("told")
    words = 'echo "$QUEUECTL_ALERT $QUEUECTL_ALERT_STATE $QUEUECTL_ALERT_VALUE $QUEUECTL_ALERT_THRESHOLD" >> told'
    scene.queuectl("alert", "add", "deaths", "--dead", "1", "--command", words, check=0, cwd=scene.directory)
    scene.worker("-q", "default")
    scene.enqueue("false", id="bad", max_retries=1)
    wait_until(lambda: file.exists() and file.read_text() == "deaths firing 1 1\n", what="it to be told")


def test_who_does_not_answer_is_called_again(scene: Scene, receiver: Receiver) -> None:
    receiver.answers = [say(500), say(503)]
    scene.configure(backoff_max="10ms")
    scene.queuectl("alert", "add", "deaths", "--dead", "1", "--webhook", receiver.url, check=0)
    scene.worker()
    scene.enqueue("false", id="bad", max_retries=1)
    wait_until(lambda: len(receiver.received) == 3, what="the third call")
    assert len({one.body for one in receiver.received}) == 1


def test_a_missing_worker_is_notified_by_the_check_and_a_new_one_by_the_worker(
    scene: Scene, receiver: Receiver
) -> None:
    words = ("--no-worker", "1ms", "--for", "0", "--webhook", receiver.url)
    scene.queuectl("alert", "add", "no-worker", *words, check=0)
    assert scene.queuectl("alert", "check", check=0).out.startswith("no-worker firing: no worker takes jobs, for")
    assert scene.queuectl("alert", "check", check=0).out == ""
    assert states(receiver) == ["firing"]
    scene.worker()
    wait_until(lambda: states(receiver) == ["firing", "over"], what="it to be over")


def test_a_worker_that_is_killed_is_missed(scene: Scene, receiver: Receiver) -> None:
    scene.queuectl("alert", "add", "no-worker", "--no-worker", "1ms", "--for", "0", "--webhook", receiver.url, check=0)
    worker = scene.worker()
    wait_until(lambda: scene.store.alerts.get("no-worker").checked_ms is not None, what="the worker to look")
    assert scene.queuectl("alert", "check", check=0).out == ""
    worker.kill()

    def is_missed() -> bool:
        return scene.queuectl("alert", "check", check=0).out.startswith("no-worker firing: ")

    wait_until(is_missed, what="the alert to fire")
    assert states(receiver) == ["firing"]


def test_an_undelivered_notification_is_delivered_by_the_next_worker(scene: Scene, receiver: Receiver) -> None:
    receiver.answers = [say(500)]
    scene.queuectl("alert", "add", "late", "--oldest", "1ms", "--for", "0", "--webhook", receiver.url, check=0)
    scene.enqueue("true", id="waits")
    wait_until(lambda: scene.store.oldest_waiting_ms().get("default", 0) > 1, what="it to wait")
    scene.queuectl("alert", "check", check=1)
    scene.forge("update alerts set tried_at = tried_at - 60000")
    scene.worker()
    wait_until(lambda: sorted(states(receiver)) == ["firing", "firing", "over"], what="both to be told")
    assert len({one["id"] for one in told(receiver)}) == 2


def test_workers_of_several_hosts_tell_it_once(hosts: Hosts, receiver: Receiver) -> None:
    a, b = hosts("a", "b")
    a.queuectl("alert", "add", "deaths", "--dead", "1", "--webhook", receiver.url, check=0)
    for host in (a, b):
        host.worker()
    a.enqueue("false", id="bad", max_retries=1)
    wait_until(lambda: states(receiver) == ["firing"], what="it to be told")
    a.queuectl("dlq", "purge", "--all", "--yes", check=0)
    wait_until(lambda: states(receiver) == ["firing", "over"], what="it to be over")
