"""The working directory of a job is on a mount that stops answering, as with an NFS server that restarts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from queuectl.process.system import IS_PORTABLE
from tests.e2e.processes import carrying
from tests.e2e.scene import Scene
from tests.process.hanging import Mount, mounted
from tests.users import me
from tests.wait import wait_until

LEASE = 3.0


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    if IS_PORTABLE:
        pytest.skip("without a list of mounts, those that may hang are not known")
    with mounted(tmp_path) as made:
        yield made


@pytest.fixture
def stuck(scene: Scene, mount: Mount) -> str:
    """A job whose directory does not answer. It writes how many copies of it run at once, which an exclusive lock tells."""
    scene.configure(heartbeat="1s", lease=f"{LEASE:g}s", poll_interval="200ms")
    lock = scene.quoted("lock")
    once = f"flock --nonblock {lock} -c '{scene.note('ran', 'once')}; sleep 0.3' || {scene.note('ran', 'OVERLAP')}"
    scene.path("lock").touch()
    job_id = scene.enqueue(once, cwd=str(mount.path), id="stuck", max_attempts=5)
    mount.hang()
    return job_id


def wait_for_shell(scene: Scene, job_id: str) -> int:
    """Until the local shell runs that is to enter the directory."""
    found = list[int]()
    wait_until(lambda: found.extend(carrying(f"QUEUECTL_JOB_ID={job_id}")) or found, what="the shell of the job")
    assert scene.state(job_id) == "processing"
    return found[0]


def owner_pid(scene: Scene, job_id: str) -> int:
    name = scene.store.get(job_id).worker
    return next(worker.pid for worker in scene.store.workers() if worker.id == name)


def test_other_jobs_run_and_time_limits_hold_while_a_mount_does_not_answer(
    scene: Scene, mount: Mount, stuck: str
) -> None:
    scene.worker("--count", "4")
    wait_for_shell(scene, stuck)
    timed = scene.enqueue("sleep 60", timeout=1, max_attempts=1)
    late = scene.enqueue("true", cwd=str(mount.path), timeout=1, max_attempts=1)
    assert scene.wait_for(scene.enqueue("true"), "completed")
    assert "timeout after" in scene.wait_for(timed, "dead")["error"]
    scene.queuectl("cancel", stuck, check=0)
    mount.answer()
    assert "timeout after" in scene.wait_for(late, "dead")["error"]
    scene.wait_for(stuck, "cancelled")
    assert scene.lines("ran") == []


@pytest.mark.parametrize("killed", ["none", "worker", "worker and supervisor"])
def test_a_job_runs_once_when_its_mount_answers_after_several_leases(
    scene: Scene, mount: Mount, stuck: str, killed: str
) -> None:
    workers = [scene.worker("--count", "2") for _ in range(3)]
    wait_for_shell(scene, stuck)
    owner = next(worker for worker in workers if worker.pid == owner_pid(scene, stuck))
    if killed == "worker":
        owner.kill()
    elif killed == "worker and supervisor":
        owner.crash()
    # Meanwhile all workers work.
    for _ in range(3):
        done = scene.enqueue("sleep 1")
        scene.wait_for(done, "completed")
    mount.answer()
    scene.wait_for(stuck, "completed", timeout=40)
    assert scene.lines("ran") == ["once"]
    assert scene.job(stuck)["crashes"] <= (killed == "worker and supervisor")


def test_a_policy_that_has_to_look_at_a_mount_that_hangs_stalls_no_other_job(scene: Scene, mount: Mount) -> None:
    policy = scene.path("policy.toml")
    policy.write_text(f'directories = ["{mount.path}", "{scene.directory}"]\nuser = "{me()}"\n')
    policy.chmod(0o600)
    stuck = scene.enqueue("true", cwd=str(mount.path), max_attempts=10)
    mount.hang()
    scene.worker("--count", "2", "--policy", policy)
    scene.wait_for(scene.enqueue("true"), "completed")
    assert scene.wait_for(stuck, "failed", "pending")["error"] == f"could not start: {mount.path} does not answer"
    mount.answer()
    scene.wait_for(stuck, "completed", timeout=50)
