"""When a worker looks for work: when it is woken, when something comes due; never because an hour has passed."""

from __future__ import annotations

from datetime import datetime

import pytest

from tests.e2e.scene import Scene
from tests.wait import wait_until


@pytest.fixture
def rare(scene: Scene) -> Scene:
    """A home whose workers look by themselves once an hour."""
    scene.configure(poll_interval="1h")
    return scene


def test_an_enqueue_from_another_process_starts_at_once_on_an_idle_worker(rare: Scene) -> None:
    rare.worker()
    for _ in range(3):
        rare.wait_for(rare.enqueue("true"), "completed")


def test_a_delayed_job_starts_at_its_time_and_not_before(rare: Scene) -> None:
    rare.worker()
    job = rare.wait_for(rare.enqueue("true", delay="700ms"), "completed")
    begun, due = datetime.fromisoformat(job["started_at"]), datetime.fromisoformat(job["run_at"])
    assert 0 <= (begun - due).total_seconds() < 20


def test_a_retry_starts_at_its_time_on_the_worker_that_saw_it_fail(rare: Scene) -> None:
    job_id = rare.enqueue("[ $QUEUECTL_RUN = 2 ]", backoff_base=1)
    rare.worker()
    rare.wait_for(job_id, "completed")


def test_a_retry_starts_at_its_time_also_if_the_worker_that_saw_it_fail_is_busy(rare: Scene) -> None:
    job_id = rare.enqueue(
        f"{rare.note('begun')}; [ $QUEUECTL_RUN = 2 ] || {{ {rare.until('go')}; exit 1; }}", backoff_base=1
    )
    rare.worker("--name", "w1", "--queue", "default", "--queue", "mine")
    rare.wait_for_file("begun")
    rare.worker("--name", "w2", "--queue", "default")
    long = rare.enqueue(rare.until("end"), queue="mine", priority=1)  # before the retry, also if that is due by then
    rare.open("go")
    rare.wait_for(long, "processing")
    job = rare.wait_for(job_id, "completed")
    assert (job["runs"], job["worker"]) == (2, "w2")
    rare.open("end")


def test_a_job_that_is_given_back_is_taken_by_another_worker_at_once(rare: Scene) -> None:
    job_id = rare.enqueue(f"{rare.note('begun')}; {rare.until('go')}")
    rare.worker("--name", "w1")
    rare.wait_for_lines("begun", 1)
    rare.worker("--name", "w2")
    rare.configure(kill_grace="100ms")
    rare.queuectl("worker", "stop", "w1", "--now", check=0)
    rare.wait_for_lines("begun", 2)
    assert rare.job(job_id)["worker"] == "w2"
    rare.open("go")
    assert rare.wait_for(job_id, "completed")["attempts"] == 0


def test_a_retry_by_hand_starts_at_once(rare: Scene) -> None:
    job_id = rare.enqueue(f"[ -e {rare.quoted('good')} ]", max_retries=1)
    rare.worker()
    rare.wait_for(job_id, "dead")
    rare.open("good")
    rare.queuectl("dlq", "retry", job_id, check=0)
    rare.wait_for(job_id, "completed")


def test_a_free_slot_is_filled_at_once(rare: Scene) -> None:
    rare.worker("--count", "2")
    rare.enqueue_all([{"command": "true"}] * 40)
    rare.wait_for_all()


@pytest.mark.parametrize("grow", [True, False])
def test_a_change_of_worker_count_is_followed_within_a_heartbeat(rare: Scene, grow: bool) -> None:
    before, after = (1, 3) if grow else (3, 1)
    rare.configure(heartbeat="300ms", worker_count=before)
    rare.enqueue_all([{"command": f"{rare.note('begun')}; {rare.until('go')}"}] * 6)
    worker = rare.worker()
    rare.wait_for_lines("begun", before)
    rare.configure(worker_count=after)
    wait_until(lambda: f"now {after} slot" in worker.output, what="the worker to follow")
    if grow:
        rare.wait_for_lines("begun", 3)
        assert worker.listed()["slots"] == 3  # type: ignore[index]
    rare.open("go")
    rare.wait_for_all()


def test_a_worker_that_was_given_a_count_keeps_it(rare: Scene) -> None:
    rare.configure(heartbeat="100ms", worker_count=5)
    worker = rare.worker("--count", "2")
    rare.configure(worker_count=7)
    job_id = rare.enqueue("true")
    rare.wait_for(job_id, "completed")
    assert worker.listed()["slots"] == 2  # type: ignore[index]
    assert "resized" not in worker.output


def test_a_change_of_kill_grace_is_followed_within_a_heartbeat(rare: Scene) -> None:
    rare.configure(heartbeat="200ms", kill_grace="1h")
    job_id = rare.enqueue(f"trap '' TERM; {rare.note('begun')}; {rare.until('never')}")
    worker = rare.worker("--name", "w1")
    rare.wait_for_file("begun")
    rare.configure(kill_grace="100ms")
    wait_for_beats(rare, 2)
    rare.queuectl("cancel", job_id, check=0, timeout=20)
    assert rare.state(job_id) == "cancelled"
    assert worker.process.poll() is None


def test_a_change_of_poll_interval_is_followed_within_a_heartbeat(rare: Scene) -> None:
    rare.configure(heartbeat="200ms")
    rare.worker("--name", "w1")
    bell = rare.home / "workers" / "w1.bell"
    bell.unlink()  # from now on nothing can wake it
    rare.configure(poll_interval="100ms")
    rare.wait_for(rare.enqueue("true"), "completed")


def wait_for_beats(scene: Scene, count: int) -> None:
    first = scene.store.workers()[0].beats
    wait_until(lambda: scene.store.workers()[0].beats >= first + count, what=f"{count} heartbeats")


def test_workers_of_one_home_share_the_work_and_never_a_job(scene: Scene) -> None:
    scene.enqueue_all([{"command": f"{scene.note('lines', '$QUEUECTL_JOB_ID $QUEUECTL_WORKER')}"}] * 60)
    for name in ("w1", "w2", "w3"):
        scene.worker("--name", name, "--count", "2", ready=False)
    scene.wait_for_all()
    words = scene.lines("lines")
    assert len(words[::2]) == len(set(words[::2])) == 60
    assert set(words[1::2]) <= {"w1", "w2", "w3"}


def test_a_worker_serves_only_its_queues_and_the_first_of_them_first(scene: Scene) -> None:
    jobs = [{"command": scene.note("order", queue), "queue": queue} for queue in ("b", "c", "a", "b", "a")]
    scene.enqueue_all(jobs)
    scene.drain("--queue", "a", "--queue", "b")
    assert scene.lines("order") == ["a", "a", "b", "b"]
    assert scene.count("pending") == 1
