"""No descriptor left, no process left: errors are reported, workers survive, and a process that cannot be checked is not treated as dead.

A limit of processes does not bind root, so it is a control group: tests/process/test_unstartable.py. Many slots with few
descriptors: tests/worker/test_main.py.
"""

from __future__ import annotations

import itertools
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.e2e.processes import carrying, descriptors, is_running
from tests.e2e.scene import Scene, family_of
from tests.program import COMMAND
from tests.wait import wait_until


def limited(scene: Scene, count: int, *words: str) -> subprocess.CompletedProcess[str]:
    """The program, with no more than `count` descriptors."""
    command = ["sh", "-c", f'ulimit -n {count}; exec "$@"', "-", *COMMAND, *words]
    return subprocess.run(command, env=scene.queuectl.environment(), capture_output=True, text=True, timeout=30)


@contextmanager
def no_more_descriptors(pid: int) -> Iterator[None]:
    """From now on this process can open nothing; what it has open stays."""
    before, taken = resource.prlimit(pid, resource.RLIMIT_NOFILE), descriptors(pid)
    free = next(number for number in itertools.count() if number not in taken)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (free, before[1]))
    yield
    resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("words", [("enqueue", "true"), ("status",), ("worker", "start", "--drain")])
def test_too_few_descriptors_are_said_in_words_and_change_nothing(scene: Scene, words: tuple[str, ...]) -> None:
    scene.enqueue_all([{"command": "true"}] * 3)
    seen, tried = 0, range(5, 9)  # with fewer, Python itself does not start; with more, most is done
    for count in tried:
        done = limited(scene, count, *words)
        if done.returncode == 0:
            continue
        seen += 1
        assert done.returncode == 1
        what, hint = done.stderr.splitlines()[-2:]
        assert "oo many open files" in what, done.stderr
        assert hint.startswith("hint: ")
        assert "please report" not in hint
        assert "Traceback" not in done.stderr
    assert seen
    scene.drain()
    assert set(scene.states().values()) == {"completed"}
    assert len(scene.states()) == 3 + (len(tried) - seen if words[0] == "enqueue" else 0)


def test_a_worker_that_can_open_nothing_more_keeps_its_jobs_and_goes_on(scene: Scene) -> None:
    scene.configure(heartbeat="200ms", lease="1s", kill_grace="200ms")
    codes = (0, 3)
    command = f"{scene.note('begun')}; {scene.until('go')}"
    ids = scene.enqueue_all([{"command": f"{command}; exit {code}", "max_retries": 1} for code in codes])
    late = scene.enqueue(f"{scene.note('begun')}; {scene.until('never')}", timeout=2, max_retries=1)
    worker = scene.worker("--count", "4", "--name", "w1")
    scene.worker("--count", "1", "--queue", "none", "--name", "w2")  # looks on, and must not take w1 for lost
    scene.wait_for_lines("begun", 3)
    with no_more_descriptors(worker.pid):
        waiting = scene.enqueue("true")
        wait_until(lambda: "oo many open files" in worker.output, what="the worker to say so")
        scene.open("go")
        for number in range(10):  # whatever it is asked meanwhile
            scene.queuectl("config", "set", "backoff-max", f"{number + 1}m", check=0)
    scene.wait_for_all()
    assert [scene.job(job_id)["exit_code"] for job_id in ids] == [0, 3]
    assert scene.job(late)["error"].startswith("timeout")
    assert scene.state(waiting) == "completed"
    assert {scene.job(job_id)["crashes"] for job_id in (*ids, late, waiting)} == {0}, worker.output
    assert scene.workers() == {"w1": "running", "w2": "running"}
    assert worker.output.count("oo many open files") <= 8


def test_a_run_has_not_ended_while_its_processes_cannot_be_checked(scene: Scene) -> None:
    scene.configure(kill_grace="100ms")
    far = f"setsid sh -c 'trap \"\" TERM; {scene.note('begun')}; exec sleep 1000'"
    tag = str(scene.directory)
    job_id = scene.enqueue(f"{far} & {scene.until('go')}; exec sleep 1000", env={"FAMILY": tag}, max_retries=1)
    worker = scene.worker()
    scene.wait_for_file("begun")
    with no_more_descriptors(worker.pid):
        calling = scene.queuectl.start("cancel", job_id)
        wait_until(lambda: "oo many open files" in worker.output, what="the worker to say so")
        assert len(family_of(tag)) >= 2
        assert scene.state(job_id) == "processing"
    assert calling.wait(20) == 0
    assert scene.state(job_id) == "cancelled"
    assert family_of(tag) == []


def test_a_job_that_cannot_be_checked_is_not_treated_as_dead(scene: Scene) -> None:
    scene.configure(heartbeat="200ms", lease="1s")
    first = f"{scene.note('begun', '$$')}; {scene.until('never')}"
    job_id = scene.enqueue(f"[ $QUEUECTL_RUN = 1 ] || exit 0; {first}")
    dead = scene.worker("--name", "w1")
    (pid,) = map(int, scene.wait_for_lines("begun", 1))
    second = scene.worker("--queue", "none", "--name", "w2")
    wait_until((scene.home / "workers" / "w2.runs").read_bytes, what="the supervisor of w2 to start")
    with no_more_descriptors(second.pid):
        dead.crash()
        wait_until(lambda: "oo many open files" in second.output, what="the next worker to report it")
        assert scene.job(job_id)["state"] == "processing"  # given back, it could be begun again beside itself
        assert carrying(f"QUEUECTL_JOB_ID={job_id}")
    scene.wait_for(job_id, "pending")
    assert not is_running(pid)
    scene.drain()
    assert scene.outcomes(job_id) == ["lost", "completed"]
