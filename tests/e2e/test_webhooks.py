"""Webhooks, from the end of a job to a real receiver."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from queuectl.text import WEBHOOK_QUEUE
from tests.docs.pages import read
from tests.e2e.hosts import Hosts
from tests.e2e.scene import Scene
from tests.wait import wait_until
from tests.webhooks.receiver import Receiver, receiving, say, silence

SECRET = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


def is_genuine() -> Callable[[bytes, str, str], bool]:
    """What the page tells receivers to do."""
    (code,) = re.findall(r"^```python\n(.*?)^```$", read("docs/guides/webhooks.md"), re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    found: Callable[[bytes, str, str], bool] = names["is_genuine"]
    return found


def events(receiver: Receiver) -> list[tuple[str, str]]:
    return sorted((told["event"], told["job_id"]) for told in (json.loads(one.body) for one in receiver.received))


def test_a_receiver_is_told_and_can_tell_that_it_is_us(scene: Scene, receiver: Receiver) -> None:
    scene.queuectl("config", "set", "webhook-secret", "-", input=SECRET + "\n", check=0)
    scene.configure(webhook_dead=receiver.url)
    scene.enqueue("exit 3", id="bad", max_retries=1, env={"KEY": "hidden-value"})
    scene.drain()
    (one,) = receiver.received
    assert is_genuine()(one.body, one.headers["queuectl-signature"], SECRET)
    assert not is_genuine()(one.body + b" ", one.headers["queuectl-signature"], SECRET)
    assert not is_genuine()(one.body, one.headers["queuectl-signature"], SECRET[::-1])
    told = json.loads(one.body)
    assert (one.headers["queuectl-event"], told["event"], told["job_id"]) == ("dead", "dead", "bad")
    assert one.headers["queuectl-delivery"] == told["id"]
    assert one.headers["content-type"] == "application/json"
    assert (told["job"]["state"], told["run"]["number"], told["run"]["exit_code"]) == ("dead", 1, 3)
    assert "env" not in told["job"]
    assert b"hidden-value" not in one.body
    log = scene.queuectl("logs", told["id"], check=0).out
    assert f"called http://127.0.0.1:{receiver.port}/…: 204" in log
    assert "hidden" not in log


def test_a_call_that_fails_is_made_again_and_is_the_same(scene: Scene, receiver: Receiver) -> None:
    receiver.answers = [say(500), say(302, Location=receiver.url)]
    scene.configure(webhook_allow_private="true", backoff_max="10ms")
    scene.enqueue("true", id="good", on_success=receiver.url)
    scene.drain()
    assert len({one.body for one in receiver.received}) == 1
    assert len(receiver.received) == 3
    (delivery,) = (job for job in scene.store.jobs() if job.queue == WEBHOOK_QUEUE)
    assert (delivery.state, delivery.runs, delivery.attempts) == ("completed", 3, 2)
    log = (scene.home / "logs" / f"{delivery.id}.log").read_text()
    assert "it answered 500" in log
    assert "it answered 302, a redirect; redirects are not followed" in log


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_job_cannot_have_private_addresses_called(scene: Scene, receiver: Receiver, host: str) -> None:
    scene.configure(backoff_max="1ms")
    scene.enqueue("true", id="good", on_success=f"http://{host}:{receiver.port}/")
    scene.drain("-q", "default")
    assert receiver.received == []
    (delivery,) = (job for job in scene.store.jobs() if job.queue == WEBHOOK_QUEUE)
    assert delivery.attempts >= 5  # a drain does not wait longer; the next worker continues
    assert "is a private address" in scene.queuectl("logs", delivery.id, check=0).out


def test_a_queue_and_the_settings_may_have_private_addresses_called(scene: Scene, receiver: Receiver) -> None:
    scene.configure(webhook_success=receiver.url)
    scene.queuectl("queue", "set", "q", "--on-failure", receiver.url, check=0)
    scene.enqueue("true", id="good", queue="q")
    scene.enqueue("false", id="bad", queue="q", max_retries=1)
    scene.enqueue("true", id="quiet", on_success="none")
    scene.drain()
    assert events(receiver) == [("failure", "bad"), ("success", "good")]


@pytest.fixture
def slow(receiver: Receiver) -> Iterator[Receiver]:
    """One that answers no call before the test is over."""
    with silence(receiver):
        yield receiver


def test_slow_receivers_take_no_slot_from_jobs(scene: Scene, slow: Receiver) -> None:
    scene.configure(webhook_success=slow.url)
    scene.worker("--count", "1")
    for number in range(6):
        scene.wait_for(scene.enqueue("true", id=f"told{number}"), "completed")
    wait_until(lambda: len(slow.received) == 2, what="as many deliveries as one receiver gets at a time")
    for number in range(3):
        scene.wait_for(scene.enqueue("true", on_success="none", id=f"other{number}"), "completed")
    (worker,) = scene.store.workers()
    assert (worker.slots, worker.busy) == (1, 0)


def test_a_receiver_that_does_not_answer_does_not_hold_up_another(scene: Scene, slow: Receiver) -> None:
    scene.configure(webhook_success=slow.url)
    scene.worker("--count", "4")
    hanging = scene.enqueue_all([{"command": "true"} for _ in range(14)])
    for job in hanging:
        scene.wait_for(job, "completed")
    wait_until(lambda: slow.received, what="a delivery that hangs")
    with receiving() as other:
        scene.queuectl("queue", "set", "q", "--on-success", other.url, check=0)
        scene.enqueue("true", id="prompt", queue="q")
        wait_until(lambda: events(other) == [("success", "prompt")], what="the other receiver to be called")
    deliveries = [
        job for job in scene.store.jobs() if job.queue == WEBHOOK_QUEUE and job.argv and job.argv[2] in hanging
    ]
    assert (len(deliveries), [job for job in deliveries if job.state == "completed"]) == (14, [])


def test_a_call_is_made_while_every_slot_is_taken(scene: Scene, receiver: Receiver) -> None:
    scene.configure(webhook_success=receiver.url)
    scene.worker("--count", "1")
    scene.enqueue("true", id="told")
    long = scene.enqueue("exec sleep 60", id="long", on_success="none")
    scene.wait_for(long, "processing")
    wait_until(lambda: events(receiver) == [("success", "told")], what="the call")
    assert scene.store.get(long).state == "processing"


def test_who_was_given_the_queue_of_the_calls_makes_as_many_as_it_has_slots(scene: Scene) -> None:
    with ExitStack() as stack:
        silent = [stack.enter_context(receiving()) for _ in range(4)]
        for number, one in enumerate(silent):
            stack.enter_context(silence(one))
            scene.queuectl("queue", "set", f"q{number}", "--on-success", one.url, check=0)
            for again in range(3):
                scene.enqueue("true", id=f"told{number}{again}", queue=f"q{number}")
        scene.worker("--count", "6", *(f"--queue={queue}" for queue in (WEBHOOK_QUEUE, "q0", "q1", "q2", "q3")))
        wait_until(lambda: sum(len(one.received) for one in silent) == 6, what="six calls")


def test_a_worker_that_drains_does_not_wait_for_a_receiver_that_is_gone(scene: Scene) -> None:
    scene.configure(webhook_success="http://127.0.0.1:1/", backoff_max="1ms")
    scene.enqueue("true", id="good")
    scene.drain()
    (delivery,) = (job for job in scene.store.jobs() if job.queue == WEBHOOK_QUEUE)
    assert delivery.attempts >= 5
    assert "cannot connect" in scene.queuectl("logs", delivery.id, check=0).out


def test_lists_and_counts_are_of_jobs_not_of_calls(scene: Scene, receiver: Receiver) -> None:
    scene.configure(webhook_success=receiver.url)
    scene.enqueue("true", id="a")
    scene.drain()
    assert len(receiver.received) == 1
    assert scene.queuectl("show", "last", "--json", check=0).json["id"] == "a"
    assert [job["id"] for job in scene.queuectl("list", "--json", check=0).json] == ["a"]
    status = scene.queuectl("status", "--json", check=0).json
    assert (status["total"], status["states"]["completed"]) == (1, 1)
    (call,) = scene.queuectl("list", "--queue", WEBHOOK_QUEUE, "--json", check=0).json
    assert (call["state"], call["tags"]) == ("completed", ["webhook"])
    assert len(scene.queuectl("export", "--format", "jsonl", check=0).out.splitlines()) == 1


@pytest.mark.parametrize(
    "words",
    [
        ("enqueue", "true", "--queue", WEBHOOK_QUEUE),
        ("queue", "move", "mail", WEBHOOK_QUEUE),
        ("queue", "move", WEBHOOK_QUEUE, "mail"),
    ],
)
def test_the_queue_of_the_calls_is_for_nothing_else(scene: Scene, words: tuple[str, ...]) -> None:
    refused = scene.queuectl(*words)
    assert (refused.code, refused.out) == (2, "")
    assert "queue: queuectl.webhooks is reserved for webhook deliveries" in refused.err.splitlines()[0]
    assert not scene.is_there


def test_a_worker_that_is_killed_between_an_end_and_its_call_costs_none(scene: Scene, receiver: Receiver) -> None:
    scene.configure(webhook_success=receiver.url)
    worker = scene.worker("--count", "4")
    ids = [scene.enqueue(f"echo {number}") for number in range(12)]
    for _ in range(3):
        worker.kill()
        worker = scene.worker("--count", "4")
    scene.wait_for_all()
    wait_until(lambda: set(events(receiver)) == {("success", id_) for id_ in ids}, what="all to be told")


def test_a_call_is_made_by_a_worker_of_another_host(hosts: Hosts, receiver: Receiver) -> None:
    a, b = hosts("a", "b")
    a.configure(webhook_dead=receiver.url)
    a.enqueue("false", id="bad", max_retries=1)
    b.worker("-q", "elsewhere")
    a.drain("-q", "default")
    wait_until(lambda: events(receiver) == [("dead", "bad")], what="the call")


def test_nothing_is_made_for_a_url_that_cannot_be(scene: Scene) -> None:
    refused = scene.queuectl("enqueue", "true", "--on-dead", "https://me:secret@example.org/")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.splitlines()[0] == "error: --on-dead: the URL contains a user or a password"
    assert "secret@" not in refused.err
    assert not scene.is_there


def test_secrets_are_shown_nowhere(scene: Scene, receiver: Receiver) -> None:
    scene.queuectl("config", "set", "webhook-secret", SECRET, check=0)
    scene.configure(webhook_success=receiver.url)
    scene.queuectl("queue", "set", "q", "--on-dead", receiver.url, check=0)
    scene.queuectl("cron", "add", "s", "@yearly", "--on-dead", receiver.url, "true", check=0)
    scene.enqueue("true", id="a", on_dead=receiver.url)
    said = [
        scene.queuectl(*words, check=0).out
        for words in (
            ("config", "list"),
            ("config", "list", "--json"),
            ("config", "get", "webhook-secret"),
            ("queue", "list"),
            ("queue", "list", "--json"),
            ("cron", "show", "s"),
            ("cron", "show", "s", "--json"),
            ("cron", "list", "--json"),
            ("show", "a"),
            ("show", "a", "--json"),
            ("export",),
        )
    ]
    assert not [text for text in said if "hidden" in text or SECRET in text]
    assert f"dead: http://127.0.0.1:{receiver.port}/…" in scene.queuectl("show", "a", check=0).out


def test_a_clone_has_the_webhooks_of_its_original(scene: Scene, receiver: Receiver) -> None:
    scene.configure(webhook_success=receiver.url)
    scene.enqueue("true", id="a", on_dead=receiver.url)
    scene.queuectl("config", "unset", "webhook-success", check=0)
    scene.queuectl("clone", "a", "--id", "b", check=0)
    assert scene.store.get("b").hooks == scene.store.get("a").hooks
    scene.queuectl("clone", "a", "--id", "c", "--on-dead", "none", check=0)
    assert list(scene.store.get("c").hooks or ()) == ["success"]


def test_hooks_go_out_and_come_in_with_their_jobs(scene: Scene, receiver: Receiver) -> None:
    scene.enqueue("true", id="a", on_dead=receiver.url)
    scene.queuectl("queue", "set", "q", "--on-dead", receiver.url, check=0)
    before, file = scene.store.get("a").hooks, scene.path("jobs.json")
    scene.queuectl("export", "--rules", file, check=0)
    scene.queuectl("reset", "--yes", check=0)
    scene.queuectl("import", "--rules", file, check=0)
    assert scene.store.get("a").hooks == before
    assert scene.store.queues.rules()["q"].on_dead == receiver.url
