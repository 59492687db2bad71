"""A worker in the background: up before the command returns, or a reason."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.processes import descriptors, is_running, process, wait_until_gone
from tests.e2e.scene import Scene


@pytest.fixture
def detached(scene: Scene) -> Iterator[Scene]:
    """Ends the workers in the background that the test has started."""
    yield scene
    if scene.home.exists() and (scene.home / "queue.db").is_file():
        scene.queuectl("worker", "stop", "--now")


def start(scene: Scene, *args: str, **options: object) -> dict[str, object]:
    told = scene.queuectl("worker", "start", "--detach", "--json", *args, check=0, **options).json  # type: ignore[arg-type]
    assert set(told) == {"id", "pid", "log"}
    return told  # type: ignore[no-any-return]


def test_a_detached_worker_serves_when_the_command_returns(detached: Scene) -> None:
    told = start(detached, "--name", "w1", "--count", "3")
    listed = detached.queuectl("worker", "list", "--json", check=0).json
    assert [(w["id"], w["pid"], w["state"], w["slots"]) for w in listed] == [("w1", told["pid"], "running", 3)]
    job_id = detached.enqueue("true")
    detached.wait_for(job_id, "completed")
    assert job_id in Path(str(told["log"])).read_text()


def test_a_detached_worker_depends_on_nothing_of_who_started_it(detached: Scene, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    pid = int(str(start(detached, cwd=place)["pid"]))
    found = process(pid)
    assert found is not None
    assert found.session == pid == found.group
    assert os.readlink(f"/proc/{pid}/cwd") == str(detached.home)
    streams = descriptors(pid)
    assert streams[0] == "/dev/null"
    assert streams[1] == streams[2]
    assert streams[1].startswith(str(detached.home))
    place.rmdir()
    detached.wait_for(detached.enqueue("true"), "completed")


def test_people_are_told_the_id_the_pid_and_the_log(detached: Scene) -> None:
    line = detached.queuectl("worker", "start", "--detach", "--name", "w1", check=0).out
    (worker,) = detached.store.workers()
    assert "w1" in line
    assert str(worker.pid) in line
    assert str(detached.home / "workers") in line


def test_a_hangup_does_not_end_a_detached_worker(detached: Scene) -> None:
    pid = int(str(start(detached)["pid"]))
    os.kill(pid, signal.SIGHUP)
    detached.wait_for(detached.enqueue("true"), "completed")
    assert is_running(pid)


def test_worker_stop_ends_a_detached_worker_and_leaves_only_its_log(detached: Scene) -> None:
    told = start(detached, "--name", "w1")
    detached.queuectl("worker", "stop", check=0)
    assert not is_running(int(str(told["pid"])))
    assert [path.name for path in (detached.home / "workers").iterdir()] == ["w1.log"]


def test_a_detached_worker_can_drain(detached: Scene) -> None:
    job_id = detached.enqueue("true")
    pid = int(str(start(detached, "--drain")["pid"]))
    wait_until_gone([pid])
    assert detached.state(job_id) == "completed"


def test_a_name_that_is_taken_is_refused_with_the_reason(detached: Scene) -> None:
    start(detached, "--name", "w1")
    refused = detached.queuectl("worker", "start", "--detach", "--name", "w1")
    assert (refused.code, refused.out) == (1, "")
    assert "a worker named 'w1' is running" in refused.err
    assert len(refused.err.splitlines()) == 2
    refused = detached.queuectl("worker", "start", "--name", "w1")
    assert refused.code == 1
    assert "a worker named 'w1' is running" in refused.err
    assert len(detached.store.workers()) == 1


@pytest.mark.parametrize(
    "spoil, word",
    [
        (
            lambda home: (home / "queue.db").write_bytes(b"not a database, and long enough to tell" * 99),
            "not a queuectl database",
        ),
        (lambda home: (home / "queue.db").mkdir(), "directory"),
    ],
)
def test_a_store_that_is_not_ours_is_refused_with_the_reason(scene: Scene, spoil: object, word: str) -> None:
    scene.home.mkdir()
    spoil(scene.home)  # type: ignore[operator]
    refused = scene.queuectl("worker", "start", "--detach", "--json")
    assert (refused.code, refused.out) == (1, "")
    assert word in json.loads(refused.err)["error"]["message"]


@pytest.mark.parametrize("options", [["--detach"], []])
def test_a_bad_setting_in_the_environment_is_refused_and_nothing_is_made(scene: Scene, options: list[str]) -> None:
    refused = scene.queuectl("worker", "start", *options, env={"QUEUECTL_HEARTBEAT": "soon"})
    assert (refused.code, refused.out) == (2, "")
    assert "QUEUECTL_HEARTBEAT" in refused.err
    assert not scene.home.exists()


def test_a_detached_worker_uses_the_same_store_when_it_was_named_by_db(detached: Scene, tmp_path: Path) -> None:
    told = detached.queuectl(
        "--db", "elsewhere.db", "worker", "start", "--detach", "--drain", "--json", cwd=tmp_path, check=0
    ).json
    wait_until_gone([told["pid"]])
    assert (tmp_path / "elsewhere.db").exists()
    assert not (detached.home / "queue.db").exists()


def test_a_worker_that_a_job_starts_in_the_background_outlives_the_job(detached: Scene) -> None:
    from tests.worker.test_environment import QUEUECTL

    job_id = detached.enqueue(f"{QUEUECTL} worker start --detach --name child; {detached.until('never')}")
    detached.configure(kill_grace="100ms")
    detached.worker("--name", "parent", "--count", "1")
    detached.wait_for_workers("parent", "child")
    detached.queuectl("cancel", job_id, check=0)
    assert detached.workers() == {"parent": "running", "child": "running"}
    env = Path(f"/proc/{next(w.pid for w in detached.store.workers() if w.id == 'child')}/environ").read_bytes()
    assert b"QUEUECTL_JOB_ID" not in env
    assert b"QUEUECTL_RUN_TOKEN" not in env


def test_a_log_that_cannot_be_created_is_reported_and_no_worker_is_started(scene: Scene) -> None:
    log = scene.home / "workers" / "w1.log"
    log.mkdir(parents=True)
    refused = scene.queuectl("worker", "start", "--detach", "--name", "w1", check=1)
    what, hint = refused.err.splitlines()
    assert what == f"error: cannot use {scene.home} as the data directory: {log}: Is a directory"
    assert hint.startswith("hint: choose another")
    assert scene.workers() == {}
