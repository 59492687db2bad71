"""A newer queuectl changes the schema while workers of this one run: they finish what they have begun, and go."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from queuectl.store.postgres.migrate import LATEST as LATEST_POSTGRES
from queuectl.store.statements import LATEST as LATEST_SQLITE
from tests.e2e.hosts import Hosts
from tests.e2e.scene import Scene
from tests.factories import new_job
from tests.wait import wait_until

BEAT = {"heartbeat": "300ms", "lease": "900ms", "poll_interval": "1h"}


@pytest.fixture(params=["sqlite", "postgres"])
def upgraded(request: pytest.FixtureRequest) -> Iterator[tuple[Scene, Callable[[], object]]]:
    """A scene, and what makes its store one of the next version."""
    if request.param == "sqlite":
        scene = request.getfixturevalue("scene")
        yield scene, lambda: scene.forge(f"pragma user_version = {LATEST_SQLITE + 1}")
    else:
        hosts: Hosts = request.getfixturevalue("hosts")
        (scene,) = hosts("a")
        yield scene, lambda: hosts.execute(f"update queuectl.meta set version = {LATEST_POSTGRES + 1}")


def test_a_worker_finishes_what_runs_says_why_and_goes(upgraded: tuple[Scene, Callable[[], object]]) -> None:
    scene, upgrade = upgraded
    running = scene.enqueue(f"{scene.note('begun')}; {scene.until('go')}; {scene.note('ended')}")
    scene.configure(**BEAT)
    store = scene.store  # opened before: who comes after is refused
    worker = scene.worker("--count", "2")
    scene.wait_for_file("begun")
    upgrade()
    wait_until(lambda: "schema version" in worker.output, what="the worker to notice")
    assert worker.process.poll() is None
    # Longer than its lease: it is alive, so no other worker may take its job; and it claims no other.
    (waiting,) = store.enqueue([new_job()])
    beats = store.workers()[0].beats
    wait_until(lambda: store.workers()[0].beats > beats + 4, what="heartbeats")
    assert store.get(waiting).state == "pending"
    scene.open("go")
    assert worker.wait() == 1
    assert store.get(running).state == "completed"
    assert store.get(waiting).state == "pending"
    assert store.workers() == []
    said = [line for line in worker.output.splitlines() if "schema version" in line]
    assert len(said) == 2, "once when it noticed, and once as its last word"
    assert said[-1].startswith("error: ")
    assert worker.output.splitlines()[-1].startswith("hint: upgrade queuectl")
    assert "recovered" not in worker.output


def test_an_idle_worker_goes_at_once_and_none_begins(upgraded: tuple[Scene, Callable[[], object]]) -> None:
    scene, upgrade = upgraded
    scene.configure(**BEAT)
    worker = scene.worker()
    upgrade()
    assert worker.wait() == 1
    for words in (["worker", "start"], ["enqueue", "true"], ["status"]):
        done = scene.queuectl(*words, check=1)
        assert "schema version" in done.err.splitlines()[0]


def test_who_waits_for_a_job_is_told_that_the_store_has_become_too_new(
    upgraded: tuple[Scene, Callable[[], object]],
) -> None:
    scene, upgrade = upgraded
    job_id = scene.enqueue("true")
    log = scene.path("wait.out")
    with log.open("wb") as file:
        waiting = scene.queuectl.start("wait", job_id, stdout=file, stderr=file)
    wait_until(lambda: "no live worker" in log.read_text(), what="it to wait")
    upgrade()
    assert waiting.wait(20) == 1
    assert "schema version" in log.read_text()
