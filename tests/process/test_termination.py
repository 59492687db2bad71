"""Ending a job ends everything that it started, and nothing that it did not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from tests.e2e.processes import carrying, is_running, kill, process, wait_until_gone
from tests.e2e.scene import Scene, family_of, stop
from tests.program import WorkerProcess
from tests.wait import wait_until

# Two deep, deaf to TERM, one of them in a session of its own, one stopped.
TREE = """
trap '' TERM
sh -c 'trap "" TERM; sleep 1000 & sh -c "sleep 1000 & wait" & wait' &
setsid sh -c 'trap "" TERM; sleep 1000 & wait' &
sh -c 'kill -STOP $$; sleep 1000' &
sleep 1000 &
"""
MEMBERS = 9  # the shell itself, 3 + 1 + 1 + 1 below it, and the setsid'ed one with its child


def tree(scene: Scene, ending: str = "wait") -> str:
    return f"{TREE}\n{scene.note('begun')}\n{ending}"


def grown(scene: Scene, tag: str) -> list[int]:
    """The whole family, once it is complete."""
    scene.wait_for_file("begun")
    wait_until(lambda: len(family_of(tag)) >= MEMBERS, what=f"the tree to grow: {list(map(process, family_of(tag)))}")
    return family_of(tag)


@pytest.fixture
def tag(scene: Scene) -> str:
    return str(scene.directory)  # of this test alone, also among those that run beside it


def by_timeout(scene: Scene, worker: WorkerProcess, job_id: str) -> None:
    scene.wait_for(job_id, "dead")


def by_cancel(scene: Scene, worker: WorkerProcess, job_id: str) -> None:
    scene.queuectl("cancel", job_id, check=0)
    assert scene.state(job_id) == "cancelled"


def by_stop_now(scene: Scene, worker: WorkerProcess, job_id: str) -> None:
    scene.queuectl("worker", "stop", "--now", check=0)
    assert scene.state(job_id) == "pending"
    assert worker.wait() == 0


def by_stop_with_timeout(scene: Scene, worker: WorkerProcess, job_id: str) -> None:
    scene.queuectl("worker", "stop", "--timeout", "0.2", check=0)
    assert scene.state(job_id) == "pending"
    assert worker.wait() == 0


def by_second_interrupt(scene: Scene, worker: WorkerProcess, job_id: str) -> None:
    stop(worker, signal.SIGINT, signal.SIGINT)
    assert worker.wait() == 130
    assert scene.state(job_id) == "pending"


@pytest.mark.parametrize(
    "end, timeout",
    [
        (by_timeout, "4s"),
        (by_cancel, None),
        (by_stop_now, None),
        (by_stop_with_timeout, None),
        (by_second_interrupt, None),
    ],
)
def test_not_one_process_of_a_tree_is_left(
    scene: Scene, tag: str, end: Callable[[Scene, WorkerProcess, str], None], timeout: str | None
) -> None:
    scene.configure(kill_grace="200ms")
    job_id = scene.enqueue(tree(scene), env={"FAMILY": tag}, timeout=timeout, max_retries=1)
    worker = scene.worker()
    members = grown(scene, tag)
    end(scene, worker, job_id)
    # At once, not soon: what said that it is done has done it.
    assert [process(pid) for pid in members if is_running(pid)] == []
    assert family_of(tag) == []


def test_what_outlives_its_shell_is_ended_with_it_when_the_job_is_cancelled(scene: Scene, tag: str) -> None:
    # The leader obeys, its children do not: the job is over when the last of them is.
    scene.configure(kill_grace="200ms")
    command = f"sh -c 'trap \"\" TERM; sleep 1000 & wait' & {scene.note('begun')}; exec sleep 1000"
    job_id = scene.enqueue(command, env={"FAMILY": tag})
    scene.worker()
    scene.wait_for_file("begun")
    wait_until(lambda: len(family_of(tag)) == 3, what="all three")
    scene.queuectl("cancel", job_id, check=0)
    assert family_of(tag) == []
    assert scene.outcomes(job_id) == ["cancelled"]


def test_a_job_that_obeys_is_given_time_to_tidy_up(scene: Scene) -> None:
    command = f"trap '{scene.until('tidy')}; {scene.note('tidied')}; exit 0' TERM; {scene.note('begun')}; {scene.until('never')}"
    job_id = scene.enqueue(command)
    scene.configure(kill_grace="1m")
    scene.worker()
    scene.wait_for_file("begun")
    cancel = scene.queuectl.start("cancel", job_id)
    wait_until(lambda: scene.job(job_id)["state"] == "processing" and cancel.poll() is None, what="the cancel")
    scene.open("tidy")
    assert cancel.wait(20) == 0
    assert scene.path("tidied").exists()
    assert scene.state(job_id) == "cancelled"


def test_a_third_interrupt_does_not_wait(scene: Scene, tag: str) -> None:
    scene.configure(kill_grace="1h")
    job_id = scene.enqueue(tree(scene), env={"FAMILY": tag})
    worker = scene.worker()
    grown(scene, tag)
    stop(worker, signal.SIGINT, signal.SIGINT)
    worker.send(signal.SIGINT)
    assert worker.wait() == 130
    assert family_of(tag) == []
    assert scene.state(job_id) == "pending"


def test_a_process_whose_first_thread_has_ended_is_ended_too(scene: Scene, tag: str) -> None:
    # The table says that it is a zombie; its other thread works on.
    script = (
        "import ctypes, signal, threading, time\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])\n"
        "threading.Thread(target=time.sleep, args=(1000,)).start()\n"
        f"open({str(scene.path('begun'))!r}, 'w').close()\n"
        "ctypes.CDLL(None).syscall(60, 0)\n"
    )
    scene.configure(kill_grace="100ms")
    job_id = scene.enqueue(None, argv=[sys.executable, "-c", script], timeout=1, max_retries=1)
    scene.worker()
    scene.wait_for_file("begun")
    scene.wait_for(job_id, "dead")


@pytest.fixture
def stranger(scene: Scene) -> Iterator[subprocess.Popen[bytes]]:
    """A process of another program, with the environment of a job but for the token."""
    env = {**os.environ, "FAMILY": "other", "QUEUECTL_HOME": "/elsewhere", "QUEUECTL_RUN_TOKEN": "not-this-one"}
    env["QUEUECTL_JOB_ID"] = "mine"
    process = subprocess.Popen(["sleep", "1000"], env=env, start_new_session=True)
    yield process
    process.kill()
    process.wait()


def test_a_process_that_does_not_belong_to_the_job_is_never_signalled(
    scene: Scene, tag: str, stranger: subprocess.Popen[bytes]
) -> None:
    job_id = scene.enqueue(tree(scene), id="mine", env={"FAMILY": tag})
    scene.configure(kill_grace="100ms")
    worker = scene.worker()
    grown(scene, tag)
    scene.queuectl("cancel", job_id, check=0)
    again = scene.enqueue(f"{scene.note('again')}; {tree(scene)}", env={"FAMILY": tag})
    scene.wait_for_file("again")
    grown(scene, tag)
    worker.kill()
    scene.queuectl("cancel", again, check=0)  # by the process that finds the worker dead
    assert family_of(tag) == []
    assert stranger.poll() is None


def test_background_children_are_left_alone_at_a_normal_end_and_hold_neither_job_nor_slot(
    scene: Scene, tag: str
) -> None:
    # They hold its stdout, too: the end of the pipe is not waited for.
    command = f"sleep 1000 & setsid sleep 1000 & {scene.note('begun')}; echo done"
    one, two = scene.enqueue_all([{"command": command, "env": {"FAMILY": tag}}, {"command": "true"}])
    worker = scene.worker("--count", "1")
    scene.wait_for(one, "completed")
    scene.wait_for(two, "completed")
    assert len(family_of(tag)) == 2
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    left = family_of(tag)
    assert len(left) == 2
    kill(left)
    wait_until_gone(left)


def test_a_child_that_was_left_behind_is_not_touched_by_the_next_run(scene: Scene, tag: str) -> None:
    command = f"[ $QUEUECTL_RUN = 1 ] && {{ sleep 1000 & {scene.note('begun')}; exit 1; }}; exec sleep 1000"
    job_id = scene.enqueue(command, env={"FAMILY": tag}, max_retries=3, backoff_base=1)
    scene.configure(kill_grace="100ms", backoff_max="0")
    scene.worker()
    wait_until(lambda: scene.job(job_id)["runs"] == 2 and len(family_of(tag)) == 2, what="the second run")
    scene.queuectl("cancel", job_id, check=0)
    left = family_of(tag)
    assert [process(pid).words for pid in left] == ["sleep 1000"]  # type: ignore[union-attr]
    assert len(carrying(f"QUEUECTL_JOB_ID={job_id}")) == 1
    kill(left)
    wait_until_gone(left)


def test_a_family_that_goes_on_forking_is_ended_too(scene: Scene, tag: str) -> None:
    # Each has a child and ends: each is gone when its signal comes.
    script = (
        "import os, signal\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"open({str(scene.path('begun'))!r}, 'w').close()\n"
        "if os.fork():\n"
        "    signal.pause()\n"
        "while True:\n"
        "    if os.fork():\n"
        "        os._exit(0)\n"
    )
    scene.configure(kill_grace="100ms")
    job_id = scene.enqueue(None, argv=[sys.executable, "-c", script], env={"FAMILY": tag})
    scene.worker()
    scene.wait_for_file("begun")
    scene.queuectl("cancel", job_id, check=0, timeout=40)
    assert family_of(tag) == []


def test_many_runs_are_ended_in_one_go(scene: Scene) -> None:
    # One look at the table for all: with one look for each, a thousand slots took longer than a lease.
    scene.enqueue_all([{"command": f"{scene.note('begun')}; exec sleep 1000"}] * 120)
    scene.worker("--count", "120")
    scene.wait_for_lines("begun", 120)
    began = time.monotonic()
    scene.queuectl("worker", "stop", "--now", check=0)
    assert time.monotonic() - began < 10
    assert scene.count("pending") == 120
