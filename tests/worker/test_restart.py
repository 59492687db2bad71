"""worker restart: a worker restarts in place, and its jobs notice nothing."""

from __future__ import annotations

import pytest

from tests.e2e.processes import children
from tests.e2e.scene import Scene
from tests.wait import wait_until

pytestmark = pytest.mark.usefixtures("fresh")


def test_a_restart_is_the_same_process_with_its_options_and_its_jobs_run_on(scene: Scene) -> None:
    running = scene.enqueue(f"{scene.note('begun')}; {scene.until('go')}; exit 4", max_retries=1)
    worker = scene.worker("--count", "3", "--queue", "default", "--queue", "other")
    scene.wait_for_file("begun")
    (before,) = scene.queuectl("worker", "list", "--json", check=0).json
    done = scene.queuectl("worker", "restart", "--json", check=0)
    assert done.json["done"] == [before["id"]]
    (after,) = scene.queuectl("worker", "list", "--json", check=0).json
    same = ("id", "pid", "slots", "queues", "host", "state")
    assert [after[key] for key in same] == [before[key] for key in same]
    assert after["pid"] == worker.pid
    assert after["started_at"] > before["started_at"]
    wait_until(lambda: "adopted" in worker.output, what="it to look after its job")
    scene.wait_for(scene.enqueue("true", queue="other"), "completed")
    scene.open("go")
    job = scene.wait_for(running, "dead")
    assert (job["exit_code"], job["runs"], job["crashes"]) == (4, 1, 0)
    assert len(scene.lines("begun")) == 1


def test_a_detached_worker_can_be_restarted_again_and_again(scene: Scene) -> None:
    scene.queuectl("worker", "start", "--detach", "--name", "w1", check=0)
    job_id = scene.enqueue(f"{scene.note('begun')}; {scene.until('go')}")
    scene.wait_for_file("begun")
    for _ in range(3):
        assert scene.queuectl("worker", "restart", "w1", check=0).out == "restarted w1\n"
    scene.open("go")
    job = scene.wait_for(job_id, "completed")
    assert (job["runs"], job["crashes"], job["worker"]) == (1, 0, "w1")
    scene.queuectl("worker", "stop", check=0)
    assert [path.name for path in (scene.home / "workers").iterdir()] == ["w1.log"]


@pytest.mark.parametrize("ids, code, said", [((), 0, "no worker"), (("none",), 1, "no worker 'none'")])
def test_restarting_without_a_worker_says_so(scene: Scene, ids: tuple[str, ...], code: int, said: str) -> None:
    answer = scene.queuectl("worker", "restart", *ids)
    assert answer.code == code
    assert said in answer.out + answer.err


def test_a_restart_leaves_no_zombie_of_what_kept_its_jobs(scene: Scene) -> None:
    scene.enqueue(f"({scene.note('begun')}; {scene.until('go')}; echo late) & true")
    worker = scene.worker("--name", "w1")
    scene.wait_for_file("begun")
    scene.wait_for_all()
    (supervisor,) = children(worker.pid)
    for _ in range(2):
        scene.queuectl("worker", "restart", check=0)
    assert supervisor.pid in {child.pid for child in children(worker.pid)}  # it still reads what may be printed
    scene.open("go")
    wait_until(lambda: [child.state for child in children(worker.pid)] == ["S"], what="the old supervisor to be reaped")
