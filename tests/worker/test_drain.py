"""Workers that end by themselves: --drain and --idle-timeout, to the letter of the fine print."""

from __future__ import annotations

from tests.e2e.scene import Scene
from tests.wait import wait_until


def test_draining_an_empty_home_ends_at_once(scene: Scene) -> None:
    scene.drain()
    assert scene.store.workers() == []


def test_draining_ends_with_zero_whatever_becomes_of_the_jobs(scene: Scene) -> None:
    dead, ok = scene.enqueue_all([{"command": "exit 9", "max_retries": 1}, {"command": "true"}])
    scene.drain()
    assert (scene.state(dead), scene.state(ok)) == ("dead", "completed")


def test_draining_waits_for_retries_but_not_for_first_runs_in_the_future(scene: Scene) -> None:
    again, later = scene.enqueue_all(
        [
            {"command": "[ $QUEUECTL_RUN = 2 ]", "backoff_base": 1},
            {"command": "true", "delay": "1h"},
        ]
    )
    scene.drain()
    assert scene.state(again) == "completed"
    assert (scene.state(later), scene.job(later)["runs"]) == ("pending", 0)


def test_draining_waits_for_what_runs_on_another_worker(scene: Scene) -> None:
    job_id = scene.enqueue(f"{scene.note('begun')}; {scene.until('go')}")
    scene.worker()
    scene.wait_for_file("begun")
    drainer = scene.worker("--drain")
    assert drainer.process.poll() is None
    scene.wait_for(scene.enqueue("true"), "completed")
    assert drainer.process.poll() is None  # it has run dry, but not all is done
    scene.open("go")
    scene.wait_for(job_id, "completed")
    assert drainer.wait(timeout=20) == 0


def test_draining_looks_only_at_the_queues_it_serves(scene: Scene) -> None:
    mine, other = scene.enqueue_all(
        [
            {"command": "true", "queue": "mine"},
            {"command": "exit 1", "queue": "other", "backoff_base": 3600},
        ]
    )
    busy = scene.enqueue(f"{scene.note('begun')}; {scene.until('go')}", queue="other")
    scene.worker("--queue", "other", "--count", "2")
    scene.wait_for_file("begun")
    scene.wait_for(other, "failed")
    scene.drain("--queue", "mine")
    assert scene.state(mine) == "completed"
    assert scene.state(busy) == "processing"


def test_a_job_that_comes_while_it_drains_is_done_too(scene: Scene) -> None:
    first = scene.enqueue(f"{scene.note('begun')}; {scene.until('go')}")
    drainer = scene.worker("--drain")
    scene.wait_for_file("begun")
    second = scene.enqueue("true")
    scene.open("go")
    assert drainer.wait() == 0
    assert (scene.state(first), scene.state(second)) == ("completed", "completed")


def test_draining_ends_as_soon_as_the_last_job_does(scene: Scene) -> None:
    scene.configure(poll_interval="1h", heartbeat="5s")
    scene.enqueue(f"{scene.note('begun')}; {scene.until('go')}")
    drainer = scene.worker("--drain")
    scene.wait_for_file("begun")
    wait_until(lambda: "started" in drainer.output, what="it to say so")
    lines = drainer.output.count("\n")
    scene.open("go")
    assert drainer.wait() == 0
    ended, stopped = (line.split()[:2] for line in drainer.output.splitlines()[lines:])
    assert (ended[1], stopped[1]) == ("completed", "stopped")


def test_a_worker_that_has_been_idle_for_long_enough_ends(scene: Scene) -> None:
    scene.configure(poll_interval="1h")
    job_id = scene.enqueue("true")
    worker = scene.worker("--idle-timeout", "500ms", ready=False)
    assert worker.wait() == 0
    assert scene.state(job_id) == "completed"


def test_a_running_job_keeps_a_worker_from_being_idle(scene: Scene) -> None:
    job_id = scene.enqueue(f"{scene.note('begun')}; {scene.until('go')}")
    worker = scene.worker("--idle-timeout", "100ms")
    scene.wait_for_file("begun")
    others = scene.enqueue_all([{"command": "true", "queue": "other"}])
    scene.drain("--queue", "other")  # time enough
    assert scene.state(others[0]) == "completed"
    assert worker.process.poll() is None
    scene.open("go")
    assert worker.wait() == 0
    assert scene.state(job_id) == "completed"


def test_a_waiting_retry_does_not_keep_a_worker_from_being_idle(scene: Scene) -> None:
    job_id = scene.enqueue("exit 1", backoff_base=3600)
    worker = scene.worker("--idle-timeout", "300ms", ready=False)
    assert worker.wait() == 0
    assert scene.state(job_id) == "failed"
