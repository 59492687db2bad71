"""Ending a worker: by signals, by `worker stop`, by pulling the terminal away."""

from __future__ import annotations

import os
import pty
import signal
import subprocess

import pytest

from tests.e2e.scene import Scene, stop
from tests.program import WorkerProcess
from tests.wait import wait_until

pytestmark = pytest.mark.usefixtures("fresh")


def busy(scene: Scene, *args: str, **options: object) -> tuple[WorkerProcess, str]:
    """A worker with a job that ends when the test says so."""
    job_id = scene.enqueue(f"{scene.note('begun')}; {scene.until('go')}")
    worker = scene.worker(*args, **options)  # type: ignore[arg-type]
    scene.wait_for_file("begun")
    return worker, job_id


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_first_signal_lets_what_runs_finish_and_nothing_new_begin(scene: Scene, number: signal.Signals) -> None:
    worker, job_id = busy(scene)
    stop(worker, number)
    waiting = scene.enqueue("true")
    assert scene.workers() == {worker.listed()["id"]: "stopping"}  # type: ignore[index]
    assert worker.process.poll() is None
    scene.open("go")
    assert worker.wait() == 0
    assert (scene.state(job_id), scene.state(waiting)) == ("completed", "pending")
    assert scene.store.workers() == []


@pytest.mark.parametrize(
    "signals, code",
    [
        ((signal.SIGTERM, signal.SIGTERM), 143),
        ((signal.SIGINT, signal.SIGINT), 130),
        ((signal.SIGTERM, signal.SIGINT), 130),
    ],
)
def test_the_second_signal_gives_the_jobs_back_without_an_attempt(
    scene: Scene, signals: tuple[signal.Signals, ...], code: int
) -> None:
    worker, job_id = busy(scene)
    stop(worker, *signals)
    assert worker.wait() == code
    job = scene.job(job_id)
    assert (job["state"], job["attempts"], job["crashes"], job["runs"]) == ("pending", 0, 0, 1)
    assert scene.outcomes(job_id) == ["released"]
    assert "released" in scene.queuectl("logs", job_id, check=0).lines[-1]
    assert scene.store.workers() == []
    scene.open("go")
    scene.drain()
    assert scene.state(job_id) == "completed"


def test_a_long_line_of_jobs_that_cannot_be_started_does_not_make_a_worker_deaf(scene: Scene) -> None:
    scene.enqueue_all_from_file([{"command": "true", "cwd": "/no/such/place", "max_retries": 1}] * 5000)
    worker = scene.worker(ready=False)
    wait_until(lambda: scene.count("dead") >= 10, every=0.002, what="the first")
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    assert scene.count("pending") > 0
    assert scene.count("processing") == 0


def test_worker_stop_waits_until_what_runs_has_finished(scene: Scene) -> None:
    worker, job_id = busy(scene, "--name", "w1")
    stopping = scene.queuectl.start("worker", "stop", "--json", stdout=subprocess.PIPE)
    wait_until(lambda: scene.workers() == {"w1": "stopping"}, what="the worker to take note")
    assert stopping.poll() is None
    scene.open("go")
    out, _ = stopping.communicate(timeout=20)
    assert (stopping.returncode, out.strip()) == (0, b'{"done": ["w1"], "refused": []}')
    assert worker.process.wait(20) == 0
    assert scene.state(job_id) == "completed"


def test_worker_stop_returns_when_the_process_is_gone_though_it_is_not_reaped(scene: Scene) -> None:
    worker = scene.worker()
    # Its parent, this test, does not wait for it: it stays a zombie.
    scene.queuectl("worker", "stop", check=0, timeout=20)
    assert worker.process.wait(0) == 0


def test_worker_stop_with_a_timeout_ends_at_once_what_is_not_finished_by_then(scene: Scene) -> None:
    worker, job_id = busy(scene)
    scene.queuectl("worker", "stop", "--timeout", "300ms", check=0)
    assert worker.wait() == 0
    assert (scene.state(job_id), scene.outcomes(job_id)) == ("pending", ["released"])


def test_worker_stop_now_gives_the_jobs_back_without_an_attempt(scene: Scene) -> None:
    worker, job_id = busy(scene)
    scene.queuectl("worker", "stop", "--now", check=0)
    assert worker.wait() == 0
    job = scene.job(job_id)
    assert (job["state"], job["attempts"], job["crashes"]) == ("pending", 0, 0)


def test_now_overrides_a_stop_that_waits(scene: Scene) -> None:
    worker, job_id = busy(scene, "--name", "w1")
    patient = scene.queuectl.start("worker", "stop")
    wait_until(lambda: scene.workers() == {"w1": "stopping"}, what="the worker to take note")
    scene.queuectl("worker", "stop", "--now", check=0)
    assert patient.wait(20) == 0
    assert worker.wait() == 0
    assert scene.state(job_id) == "pending"


def test_worker_stop_stops_those_that_are_named_and_no_other(scene: Scene) -> None:
    one, two = scene.worker("--name", "w1"), scene.worker("--name", "w2")
    done = scene.queuectl("worker", "stop", "w1", "none", "--json")
    assert (done.code, done.json["done"]) == (1, ["w1"])
    assert [refusal["code"] for refusal in done.json["refused"]] == ["worker-not-found"]
    assert one.wait() == 0
    assert two.process.poll() is None


def test_worker_stop_without_workers_says_so_and_succeeds(scene: Scene) -> None:
    done = scene.queuectl("worker", "stop", check=0)
    assert "no worker" in done.out + done.err
    assert not scene.home.exists()


def test_worker_stop_all_waits_also_for_workers_of_other_hosts(scene: Scene) -> None:
    worker = scene.worker("--name", "w1", env={"QUEUECTL_HOST": "elsewhere"})
    scene.queuectl("worker", "stop", "--all", check=0, timeout=20)
    assert worker.wait() == 0


def test_worker_stop_lets_the_jobs_of_a_worker_that_is_gone_run_on(scene: Scene) -> None:
    worker, job_id = busy(scene, "--name", "w1")
    worker.kill()
    done = scene.queuectl("worker", "stop", "--json", check=0)
    assert done.json["done"] == ["w1"]
    assert scene.state(job_id) == "processing"
    scene.open("go")
    scene.drain()
    job = scene.job(job_id)
    assert (job["state"], job["runs"], job["crashes"]) == ("completed", 1, 0)


def test_worker_stop_now_removes_a_worker_that_is_gone(scene: Scene) -> None:
    worker, job_id = busy(scene, "--name", "w1")
    worker.kill()
    done = scene.queuectl("worker", "stop", "--now", "--json", check=0)
    assert done.json["done"] == ["w1"]
    job = scene.job(job_id)
    assert (job["state"], job["crashes"], job["attempts"]) == ("pending", 1, 0)
    assert scene.store.workers() == []


def test_workers_are_listed_as_running_stopping_and_lost(scene: Scene) -> None:
    # No other worker lives that could rescue it.
    scene.worker("--name", "w1").kill()
    assert scene.workers() == {"w1": "lost"}
    worker, _ = busy(scene, "--name", "w2", "--count", "3", "--queue", "default")
    listed = worker.listed()
    assert listed is not None
    assert (listed["id"], listed["state"], listed["pid"]) == ("w2", "running", worker.pid)
    assert (listed["slots"], listed["busy"], listed["queues"]) == (3, 1, ["default"])
    stop(worker, signal.SIGTERM)
    assert scene.workers() == {"w2": "stopping"}
    scene.open("go")
    assert worker.wait() == 0
    assert scene.workers() == {}


def test_a_terminal_that_vanishes_does_not_end_a_worker_that_may_outlive_it(scene: Scene) -> None:
    mine, its = pty.openpty()
    # In its own session but without a controlling terminal: nothing tells it, its prints just fail.
    worker = scene.worker(stdin=its, stdout=its, stderr=its, start_new_session=True)
    os.close(its)
    os.close(mine)
    scene.wait_for(scene.enqueue("true"), "completed")
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0


@pytest.mark.parametrize("arrange", ["exec >&- 2>&-", "exec > /dev/full", "exec <&-"])
def test_a_worker_that_cannot_print_works_all_the_same(scene: Scene, arrange: str) -> None:
    worker = scene.worker(through=["sh", "-c", f'{arrange}; exec "$@"', "-"])
    scene.wait_for(scene.enqueue("echo fine"), "completed")
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0


def test_a_reader_that_reads_no_more_does_not_hold_up_the_jobs(scene: Scene) -> None:
    # A pipe that is full, as behind a pager, or a terminal after Ctrl-S.
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    try:
        while True:
            os.write(writing, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(writing, True)
    worker = scene.worker(stdout=writing)
    scene.wait_for(scene.enqueue("true"), "completed")
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    os.close(reading)
    os.close(writing)


def test_a_pipe_whose_reader_has_gone_does_not_end_the_worker(scene: Scene) -> None:
    reading, writing = os.pipe()
    worker = scene.worker(stdout=writing)
    os.close(writing)
    os.close(reading)
    scene.wait_for(scene.enqueue("true"), "completed")
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
