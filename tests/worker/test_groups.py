"""Each run is in a control group of its own: nothing that it starts escapes its end, and all that it uses is counted."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.e2e.processes import children, is_running
from tests.e2e.scene import Scene
from tests.groups import ESCAPE, group_of, groups_of, require_groups
from tests.program import WorkerProcess
from tests.wait import wait_until

BUSY = "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done"


@pytest.fixture(autouse=True)
def _groups() -> None:
    require_groups()


def supervisor_of(worker: WorkerProcess) -> int:
    (supervisor,) = [
        child.pid for child in children(worker.pid) if "run_supervisor" in child.words or "warm_server" in child.words
    ] or [0]
    return supervisor


def escaping(scene: Scene) -> str:
    """Words for the shell: a process whose origin cannot be seen, and that writes down its number."""
    words = f"echo $$ >> {scene.quoted('escaped')}; exec sleep 1000"
    return f"{ESCAPE} {scene.shell_word(words)}"


def escaped(scene: Scene) -> int:
    return int(scene.wait_for_lines("escaped", 1)[0])


@pytest.mark.parametrize("how", ["timeout", "cancel", "stop", "rescue"])
def test_who_leaves_everything_behind_ends_with_its_run(scene: Scene, how: str) -> None:
    limit = {"timeout": 1} if how == "timeout" else {}
    job_id = scene.enqueue(f"{escaping(scene)}; exec sleep 1000", max_retries=1, **limit)
    scene.configure(kill_grace="200ms")
    worker = scene.worker()
    pid = escaped(scene)
    if how == "cancel":
        scene.queuectl("cancel", job_id, check=0)
    elif how == "stop":
        scene.queuectl("worker", "stop", "--now", check=0)
    elif how == "rescue":
        worker.crash()  # and its supervisor: then how the run ends stays unknown, and what is left of it is terminated
        scene.queuectl("cancel", job_id, check=0)
        scene.drain()
    else:
        scene.wait_for(job_id, "dead")
    assert not is_running(pid)
    assert scene.state(job_id) == {"timeout": "dead", "stop": "pending"}.get(how, "cancelled")


def test_what_a_job_leaves_in_the_background_is_left_alone_in_a_group_of_its_own(scene: Scene) -> None:
    scene.worker()
    first = scene.enqueue(escaping(scene))
    scene.wait_for(first, "completed")
    pid = escaped(scene)
    for _ in range(3):
        scene.wait_for(scene.enqueue(f"tail -1 /proc/self/cgroup >> {scene.quoted('others')}"), "completed")
    assert is_running(pid)
    assert group_of(pid) not in {os.path.basename(line) for line in scene.lines("others")}
    os.kill(pid, signal.SIGKILL)


def test_a_run_may_go_where_one_was_before_unless_that_was_killed(scene: Scene) -> None:
    scene.configure(kill_grace="100ms")
    scene.worker()
    look = f"tail -1 /proc/self/cgroup >> {scene.quoted('places')}"
    for _ in range(3):
        scene.wait_for(scene.enqueue(look), "completed")
    stubborn = scene.enqueue(f"{look}; trap '' TERM; touch {scene.quoted('up')}; while :; do sleep 0.05; done")
    scene.wait_for_file("up")
    scene.queuectl("cancel", stubborn, check=0)
    for _ in range(2):
        scene.wait_for(scene.enqueue(look), "completed")
    first, second, third, killed, after, last = scene.lines("places")
    assert first == third == after != second == killed, "two in turn: the supervisor waits in that of the next run"
    assert last not in (after, killed)


def test_the_time_of_those_that_were_not_waited_for_is_counted(scene: Scene) -> None:
    words = scene.shell_word(f"{BUSY}; touch {scene.quoted('done')}")
    counted = scene.enqueue(f"{ESCAPE} {words}; {scene.until('done')}")
    after = scene.enqueue(f"sleep 0.2; {scene.until('done')}")
    scene.drain()
    (run,), (idle,) = scene.history(counted), scene.history(after)
    assert run["cpu_user_ms"] + run["cpu_system_ms"] > 50
    assert idle["cpu_user_ms"] + idle["cpu_system_ms"] < run["cpu_user_ms"], "and not with the next"


def test_no_group_is_left_when_the_worker_has_gone(scene: Scene) -> None:
    ids = scene.enqueue_all([{"command": "true"}, {"argv": ["true"]}, {"command": "exit 3", "max_retries": 1}] * 5)
    worker = scene.worker("--count", "4")
    supervisor = supervisor_of(worker)
    for job_id in ids:
        scene.wait_for(job_id, "completed", "dead")
    assert groups_of(supervisor)
    scene.queuectl("worker", "stop", check=0)
    wait_until(lambda: not groups_of(supervisor), what="its groups to be gone")


def test_what_a_killed_supervisor_has_left_is_removed_by_the_next(scene: Scene) -> None:
    worker = scene.worker()
    scene.wait_for(scene.enqueue("true"), "completed")
    supervisor = supervisor_of(worker)
    assert groups_of(supervisor)
    worker.crash()  # from now on, also a supervisor of another test may remove them
    wait_until(lambda: not [path for path in groups_of(supervisor) if _is_populated(path)], what="it to be dead")
    scene.enqueue("true")
    scene.drain()
    assert not groups_of(supervisor)


def test_a_group_that_is_removed_costs_no_job(scene: Scene) -> None:
    worker = scene.worker()
    scene.wait_for(scene.enqueue("true"), "completed")
    supervisor = supervisor_of(worker)
    (group,) = wait_until(lambda: _empty_groups(supervisor), what="the group of the run to be empty")
    group.rmdir()
    for _ in range(2):  # the supervisor waits in the group of the next run, which cannot be removed
        assert scene.wait_for(scene.enqueue("true"), "completed")["runs"] == 1


def test_a_worker_in_a_job_has_its_groups_inside_and_its_jobs_end_with_it(scene: Scene) -> None:
    program = f"{sys.executable} -m queuectl --home {scene.quoted('inner')}"
    look = f"echo $$ $(tail -1 /proc/self/cgroup) > {scene.quoted('look')}; exec sleep 1000"
    scene.configure(kill_grace="200ms")
    scene.worker()
    job_id = scene.enqueue(f"{program} enqueue {scene.shell_word(look)} && exec {program} worker start")
    pid, path = scene.wait_for_lines("look", 2)
    outer, inner = Path(path).parts[-2:]
    assert outer.startswith("queuectl-run-")
    assert inner.startswith("queuectl-run-")
    scene.queuectl("cancel", job_id, check=0)
    assert not is_running(int(pid))


def _empty_groups(supervisor: int) -> list[Path]:
    return [group for group in groups_of(supervisor) if not _is_populated(group)]


def _is_populated(group: Path) -> bool:
    try:
        return "populated 1" in (group / "cgroup.events").read_text()
    except FileNotFoundError:  # removed meanwhile
        return False
