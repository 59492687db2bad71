"""A supervisor that is stopped or killed, or that has to wait for a mount, costs time at most: B2, B9 and B10 of the attacks on 0.4."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from queuectl.process.journal import RECORD_BYTES
from queuectl.process.system import IS_PORTABLE
from tests.e2e.processes import children, is_running, process
from tests.e2e.scene import Scene
from tests.needs import require
from tests.process.hanging import Mount, mounted
from tests.program import WorkerProcess
from tests.wait import wait_until

LOST = "the supervisor died"
RESTARTED = "supervisor restarted"


def supervisor_of(worker: WorkerProcess) -> int:
    (found,) = [child.pid for child in children(worker.pid) if child.state != "Z"]
    return found


def kill_supervisor(worker: WorkerProcess) -> None:
    lost = worker.output.count(LOST)
    os.kill(supervisor_of(worker), signal.SIGKILL)
    wait_until(lambda: worker.output.count(LOST) > lost, what="the worker to notice it")


def freeze_supervisor(worker: WorkerProcess) -> int:
    pid = supervisor_of(worker)
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: (found := process(pid)) and found.state == "T", what="the supervisor to stop")
    return pid


def tally(scene: Scene, job_id: str) -> tuple[str, int, int]:
    job = scene.job(job_id)
    return job["state"], job["attempts"], job["crashes"]


# ── stopped ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_time_limits_and_cancel_go_on_while_the_supervisor_is_stopped(scene: Scene) -> None:
    scene.configure(kill_grace="300ms")
    job = f"echo $$ >> {scene.quoted('begun')}; exec sleep 1000"
    late, unwanted = scene.enqueue_all([{"command": job, "timeout": 4, "max_retries": 1}, {"command": job}])
    worker = scene.worker("--count", "2")
    pids = [int(word) for word in scene.wait_for_lines("begun", 2)]
    supervisor = freeze_supervisor(worker)
    cancel = scene.queuectl.start("cancel", unwanted)
    wait_until(lambda: not any(map(is_running, pids)), what="both to be terminated")
    os.kill(supervisor, signal.SIGCONT)
    assert cancel.wait(20) == 0
    assert scene.wait_for(late, "dead")["error"].startswith("timeout")
    scene.wait_for(unwanted, "cancelled")
    assert LOST not in worker.output


def test_worker_stop_now_ends_a_worker_whose_supervisor_is_stopped(scene: Scene) -> None:
    scene.configure(heartbeat="300ms", lease="1s", kill_grace="300ms")
    job_id = scene.enqueue(f"{scene.note('begun')}; exec sleep 1000")
    worker = scene.worker()
    scene.wait_for_file("begun")
    supervisor = freeze_supervisor(worker)
    scene.queuectl("worker", "stop", "--now", check=0, timeout=30)
    assert (worker.wait(), is_running(supervisor)) == (0, False)
    assert tally(scene, job_id) == ("pending", 0, 0)
    assert scene.outcomes(job_id) == ["released"]


def test_a_supervisor_that_is_stopped_for_a_lease_is_replaced_and_its_jobs_run_again(scene: Scene) -> None:
    scene.configure(heartbeat="300ms", lease="1s", kill_grace="300ms")
    job = f"echo $$ >> {scene.quoted('begun')}; {scene.until('go')}"
    ids = scene.enqueue_all([{"command": job}] * 2)
    worker = scene.worker("--count", "2")
    before = [int(word) for word in scene.wait_for_lines("begun", 2)]
    supervisor = freeze_supervisor(worker)
    wait_until(lambda: RESTARTED in " ".join(worker.output.split()), what="another supervisor")
    assert not is_running(supervisor)
    scene.wait_for_lines("begun", 3)
    assert not any(map(is_running, before))
    scene.open("go")
    for job_id in ids:
        scene.wait_for(job_id, "completed")
        assert (tally(scene, job_id), scene.outcomes(job_id)) == (("completed", 0, 0), ["released", "completed"])
    assert "it did not answer" in worker.output


def test_a_worker_that_was_stopped_together_with_its_supervisor_does_not_replace_it(scene: Scene) -> None:
    scene.configure(heartbeat="200ms", lease="600ms")
    job_id = scene.enqueue(f"{scene.note('begun')}; {scene.until('go')}")
    worker = scene.worker()
    scene.wait_for_file("begun")
    supervisor = freeze_supervisor(worker)
    worker.send(signal.SIGSTOP)
    wait_until(lambda: scene.workers() == {worker_name(scene): "lost"}, what="a lease to pass")
    worker.send(signal.SIGCONT)
    os.kill(supervisor, signal.SIGCONT)
    scene.open("go")
    scene.wait_for(job_id, "completed")
    assert LOST not in worker.output
    assert scene.outcomes(job_id) == ["completed"]


def worker_name(scene: Scene) -> str:
    (worker,) = scene.store.workers()
    return worker.id


# ── killed ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_supervisor_that_is_killed_is_restarted_and_its_jobs_run_again_without_an_attempt(scene: Scene) -> None:
    scene.configure(kill_grace="300ms")
    job = f"echo $$ >> {scene.quoted('begun')}; {scene.until('go')}; echo done"
    ids = scene.enqueue_all([{"command": job, "max_retries": 1}] * 3)
    worker = scene.worker("--count", "3")
    before = [int(word) for word in scene.wait_for_lines("begun", 3)]
    kill_supervisor(worker)
    scene.wait_for_lines("begun", 4)
    assert not any(map(is_running, before))
    scene.open("go")
    for job_id in ids:
        scene.wait_for(job_id, "completed")
        assert tally(scene, job_id) == ("completed", 0, 0)
        assert scene.outcomes(job_id) == ["released", "completed"]
        assert scene.queuectl("logs", job_id, "--no-markers", check=0).out == "done\n"
    assert RESTARTED in " ".join(worker.output.split())
    assert worker.process.poll() is None


def test_the_log_of_a_run_whose_supervisor_was_killed_says_how_it_ended(scene: Scene) -> None:
    scene.configure(kill_grace="300ms")
    job_id, _ = scene.enqueue_all([{"command": f"echo said; {scene.note('begun')}; {scene.until('go')}"}] * 2)
    worker = scene.worker("--count", "2")
    scene.wait_for_lines("begun", 2)
    wait_until(lambda: scene.job(job_id)["log"], what="its output to be known")
    kill_supervisor(worker)
    scene.open("go")
    scene.wait_for(job_id, "completed")
    lines = scene.queuectl("logs", job_id, check=0).lines
    assert [line.split()[1] if line.startswith("---") else line for line in lines] == [
        "START",
        "said",
        "END",
        "START",
        "said",
        "END",
    ]
    assert " released" in lines[2]


def test_a_supervisor_that_is_killed_while_it_is_idle_is_replaced(scene: Scene) -> None:
    worker = scene.worker()
    for _ in range(2):
        kill_supervisor(worker)
        scene.wait_for(scene.enqueue("true"), "completed")


def test_a_job_that_kills_its_supervisor_is_dead_lettered_alone(scene: Scene) -> None:
    scene.configure(kill_grace="300ms")
    poison, *others = scene.enqueue_all(
        [{"command": "kill -9 $PPID; sleep 1000"}] + [{"command": f"{scene.until('go')}; exit 0"}] * 3
    )
    worker = scene.worker("--count", "4")
    assert scene.wait_for(poison, "dead", timeout=40)["crashes"] == 3
    scene.open("go")
    for job_id in others:
        scene.wait_for(job_id, "completed")
        assert tally(scene, job_id) == ("completed", 0, 0)
    assert worker.process.poll() is None


def test_jobs_that_ran_when_the_supervisor_died_run_one_at_a_time_at_first(scene: Scene) -> None:
    scene.configure(kill_grace="300ms")
    job = f"echo $QUEUECTL_JOB_ID >> {scene.quoted('begun')}; until [ -e {scene.quoted('go')} ]; do sleep 0.03; done"
    suspects = scene.enqueue_all([{"command": job}] * 3)
    worker = scene.worker("--count", "4")
    scene.wait_for_lines("begun", 3)
    kill_supervisor(worker)
    scene.wait_for_lines("begun", 4)
    scene.wait_for(scene.enqueue("true"), "completed")  # it was not there
    assert len(scene.lines("begun")) == 4
    scene.open("go")
    scene.wait_for_all()
    assert [tally(scene, job_id) for job_id in suspects] == [("completed", 0, 0)] * 3


# ── waiting for a mount ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    require("a list of mounts", not IS_PORTABLE, "without it, mounts that may hang are not known")
    folder = tmp_path / "disk"
    folder.mkdir()
    with mounted(folder) as made:
        yield made


def test_a_job_in_a_directory_that_hangs_stalls_alone_and_is_never_run_twice(mount: Mount, scene: Scene) -> None:
    scene.configure(kill_grace="300ms", heartbeat="300ms", lease="1s")
    ran = scene.note("ran")
    late = scene.enqueue(ran, cwd=str(mount.path), timeout=0.3, max_retries=1)
    unwanted = scene.enqueue(ran, cwd=str(mount.path))
    mount.hang()
    worker = scene.worker("--count", "3")
    wait_until(lambda: scene.count("processing") == 2, what="both to be started")
    for _ in range(3):
        scene.wait_for(scene.enqueue("true"), "completed")
    scene.queuectl("cancel", unwanted, check=0)
    assert scene.wait_for(scene.enqueue("sleep 1000", timeout=1.5, max_retries=1), "dead")["error"].startswith(
        "timeout"
    )
    mount.answer()
    assert scene.wait_for(late, "dead")["error"].startswith("timeout")
    scene.wait_for(unwanted, "cancelled")
    assert scene.lines("ran") == []
    assert LOST not in worker.output


def test_a_job_whose_start_cannot_be_written_down_waits(scene: Scene) -> None:
    """Otherwise the next worker would take it for unstarted after a crash."""
    worker = scene.worker("--count", "2")
    pid = supervisor_of(worker)
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (RECORD_BYTES, before[1]))  # as a full disk: room for its signature
    job_id = scene.enqueue(scene.note("begun"))
    wait_until(lambda: "journal of its worker cannot be written" in worker.output, what="the worker to report it")
    assert not scene.lines("begun")
    resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
    job = scene.wait_for(job_id, "completed")
    assert (job["runs"], job["attempts"], len(scene.lines("begun"))) == (1, 0, 1)
