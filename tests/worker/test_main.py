"""Workers in the places where workers live: a shell that closes, a container as pid 1, a path of any length."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.processes import children, is_running
from tests.e2e.scene import Scene, make_scene, stop
from tests.needs import require
from tests.program import Program
from tests.wait import wait_until

pytestmark = pytest.mark.usefixtures("fresh")


def can_unshare() -> bool:
    return subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "true"], capture_output=True).returncode == 0


def test_a_worker_that_is_pid_1_reaps_orphans_and_hears_term(scene: Scene) -> None:
    require("unshare --pid", can_unshare(), "a process namespace of its own needs privileges")
    unshare = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    worker = scene.worker("--name", "init", through=unshare, ready=False)
    wait_until(lambda: scene.is_there and scene.store.workers(), what="the worker")
    (known,) = scene.store.workers()
    assert known.pid == 1
    (init,) = (child.pid for child in children(worker.pid))
    # Twice forked: their parent is dead, so they are left to pid 1.
    orphans = "(sleep 0.05 &) ; (setsid sleep 0.05 &) ; (sleep 0.05 &)"
    for job_id in scene.enqueue_all([{"command": f"{orphans}; exit {code}", "max_retries": 1} for code in (0, 3)]):
        scene.wait_for(job_id, "completed", "dead")
    assert [run["exit_code"] for job in scene.store.jobs() for run in scene.history(job.id)] == [3, 0]
    # Its supervisor is left.
    wait_until(lambda: len(children(init)) == 1, what=f"every orphan to be reaped: {children(init)}")
    # By its lock everybody sees that it lives, though its pid means something else outside.
    assert scene.workers() == {"init": "running"}
    os.kill(init, signal.SIGTERM)
    assert worker.wait() == 0
    assert scene.store.workers() == []


def test_the_second_term_ends_pid_1_and_its_jobs(scene: Scene) -> None:
    require("unshare --pid", can_unshare(), "a process namespace of its own needs privileges")
    job_id = scene.enqueue(f"trap '' TERM; {scene.note('begun')}; sleep 1000 & {scene.until('never')}")
    scene.configure(kill_grace="100ms")
    worker = scene.worker(through=["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"], ready=False)
    scene.wait_for_file("begun")
    (init,) = (child.pid for child in children(worker.pid))
    for count in (1, 2):
        os.kill(init, signal.SIGTERM)
        wait_until(
            lambda count=count: worker.output.count(" stopping ") >= count or worker.process.poll() is not None,
            what="the worker to take note",
        )
    assert worker.wait() == 143
    assert scene.state(job_id) == "pending"


def test_a_worker_started_under_nohup_does_not_hear_a_hangup(scene: Scene) -> None:
    worker = scene.worker(through=["nohup"])
    worker.send(signal.SIGHUP)
    scene.wait_for(scene.enqueue("true"), "completed")
    assert worker.process.poll() is None
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0


def test_a_worker_started_by_setsid_works_and_is_stopped(scene: Scene) -> None:
    worker = scene.worker(through=["setsid", "--wait"], ready=False)
    wait_until(lambda: scene.is_there and scene.store.workers(), what="the worker")
    scene.wait_for(scene.enqueue("true"), "completed")
    scene.queuectl("worker", "stop", check=0)
    assert worker.wait() == 0


def test_a_worker_whose_shell_closes_goes_on_in_the_background(scene: Scene) -> None:
    # As from a terminal: the shell starts it with & and exits; INT and QUIT are then ignored by the shell's doing.
    from tests.program import COMMAND, environment

    words = " ".join([*COMMAND, "worker", "start", "--name", "w1"])
    subprocess.run(
        ["sh", "-c", f"{words} > {scene.quoted('out')} 2>&1 &"],
        env=environment(scene.home),
        check=True,
        stdin=subprocess.DEVNULL,
    )
    wait_until(lambda: scene.is_there and scene.store.workers(), what="the worker")
    scene.wait_for(scene.enqueue("true"), "completed")
    (known,) = scene.store.workers()
    scene.queuectl("worker", "stop", check=0)
    assert not is_running(known.pid)


@pytest.mark.parametrize(
    "name",
    ["a" * 100 + "/" + "b" * 100, "with spaces and 'quotes'", "żółw-漢字-🐢"],
    ids=["long", "spaces", "non-ascii"],
)
def test_a_home_may_be_anywhere(tmp_path: Path, name: str) -> None:
    for scene in make_scene(Program(tmp_path / name / "home"), tmp_path):
        scene.configure(poll_interval="1h")
        worker = scene.worker()
        job_id = scene.enqueue('echo "$QUEUECTL_HOME"')
        scene.wait_for(job_id, "completed")  # woken, not found by looking
        assert scene.queuectl("logs", job_id, "--no-markers", check=0).out == f"{scene.home}\n"
        slow = scene.enqueue(scene.until("never"))
        scene.wait_for(slow, "processing")
        scene.queuectl("cancel", slow, check=0)
        stop(worker, signal.SIGTERM)
        assert worker.wait() == 0
        told = scene.queuectl("worker", "start", "--detach", "--json", check=0).json
        assert Path(told["log"]).is_relative_to(scene.home)
        scene.queuectl("worker", "stop", check=0)


def test_a_name_can_be_used_again_after_a_crash(scene: Scene) -> None:
    job_id = scene.enqueue(f"{scene.note('begun')}; {scene.until('go')}")
    scene.worker("--name", "w1")
    scene.wait_for_lines("begun", 1)
    scene._workers[0].kill()
    scene.open("go")
    again = scene.worker("--name", "w1")
    job = scene.wait_for(job_id, "completed")
    assert (job["runs"], job["crashes"]) == (1, 0)
    assert again.listed()["id"] == "w1"  # type: ignore[index]


def test_a_name_can_be_used_again_while_others_still_deal_with_the_crash(scene: Scene) -> None:
    # Its job is deaf to TERM, so the rescuer is busy with it for a while.
    scene.enqueue(f"trap '' TERM; {scene.note('begun')}; {scene.until('never')}", max_retries=1)
    crashed = scene.worker("--name", "w1")
    scene.wait_for_file("begun")
    scene.configure(max_crashes=1, kill_grace="1s")
    scene.worker("--name", "rescuer")
    crashed.kill()
    wait_until(lambda: scene.worker("--name", "w1"), what="w1 to be up again")
    assert scene.workers() == {"rescuer": "running", "w1": "running"}


def test_a_worker_raises_its_limit_of_open_files_as_far_as_it_may(scene: Scene) -> None:
    scene.enqueue_all([{"command": f"{scene.note('begun')}; {scene.until('go')}"}] * 60)
    scene.worker("--count", "1000", through=["sh", "-c", 'ulimit -Sn 24; exec "$@"', "-"])
    scene.wait_for_lines("begun", 60)
    scene.open("go")
    scene.wait_for_all()
    assert scene.count("completed") == 60


def test_a_worker_refuses_more_slots_than_the_limit_of_open_files_allows(scene: Scene) -> None:
    limited = ["sh", "-c", 'ulimit -n 84; exec "$@"', "-"]
    refused = scene.worker("--count", "11", through=limited, ready=False)
    assert refused.wait() == 1
    assert "the limit of open files allows a worker 10 slots, not 11" in refused.output
    scene.enqueue_all([{"command": f"{scene.note('begun')}; {scene.until('go')}"}] * 20)
    scene.worker("--count", "10", through=limited)
    scene.wait_for_lines("begun", 10)
    scene.open("go")
    scene.wait_for_all()
    assert scene.count("completed") == 20


def test_a_name_can_be_used_again_also_if_the_host_has_another_name_now(scene: Scene) -> None:
    # A container that is created again: same home, same --name, another host name.
    job_id = scene.enqueue(f"{scene.note('begun')}; [ $QUEUECTL_RUN = 2 ] || {scene.until('never')}")
    crashed = scene.worker("--name", "w1", env={"QUEUECTL_HOST": "before"})
    scene.wait_for_file("begun")
    crashed.crash()
    scene.worker("--name", "w1", env={"QUEUECTL_HOST": "after"})
    job = scene.wait_for(job_id, "completed")
    assert (job["crashes"], job["runs"]) == (1, 2)


def test_a_name_is_taken_also_if_its_worker_lives_in_another_home_of_the_store(scene: Scene, tmp_path: Path) -> None:
    db = str(tmp_path / "shared.db")
    scene.worker("--db", db, "--name", "w1", ready=False)
    wait_until(lambda: scene.queuectl("--db", db, "worker", "list", "--json").json, what="the worker")
    refused = Program(tmp_path / "other")("--db", db, "worker", "start", "--drain", "--name", "w1")
    assert refused.code == 1
    assert "a worker named 'w1' is running" in refused.err


def test_workers_of_two_homes_that_share_a_store_look_after_each_other(scene: Scene, tmp_path: Path) -> None:
    db = str(tmp_path / "shared.db")
    command = f"{scene.note('begun')}; [ $QUEUECTL_RUN = 2 ] || {scene.until('never')}"
    job_id = scene.queuectl("--db", db, "enqueue", command, check=0).out.strip()
    crashed = scene.worker("--db", db, ready=False)
    scene.wait_for_file("begun")
    crashed.kill()
    other = Program(tmp_path / "other")
    other("--db", db, "worker", "start", "--drain", check=0)
    job = other("--db", db, "show", job_id, "--json", check=0).json
    assert (job["state"], job["crashes"]) == ("completed", 1)


def test_what_a_worker_makes_is_private_whatever_the_umask(scene: Scene) -> None:
    job_id = scene.enqueue("umask")
    scene.worker("--name", "w1", umask=0)
    scene.wait_for(job_id, "completed")
    assert scene.queuectl("logs", job_id, "--no-markers", check=0).out.strip() in ("0000", "000")
    modes = {path.relative_to(scene.home).as_posix(): path.stat().st_mode & 0o777 for path in scene.home.rglob("*")}
    assert {name for name, mode in modes.items() if mode not in (0o600, 0o700)} == set()
    assert {f"workers/w1.{kind}" for kind in ("lock", "bell", "runs")} <= set(modes)


def test_a_worker_may_inherit_more_descriptors_than_select_can_count(scene: Scene) -> None:
    leak = "import os, sys; [os.dup2(0, fd) for fd in range(3, 1100)]; os.execv(sys.argv[1], sys.argv[1:])"
    worker = scene.worker(through=["sh", "-c", 'ulimit -n 2000; exec "$@"', "-", sys.executable, "-c", leak])
    scene.wait_for(scene.enqueue("true"), "completed")
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0


def test_two_workers_may_begin_at_once_in_a_home_that_does_not_exist(scene: Scene) -> None:
    workers = [scene.worker("--drain", ready=False) for _ in range(4)]
    assert [worker.wait() for worker in workers] == [0] * 4
