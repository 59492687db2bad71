"""Workers and enqueuers killed at random, all at once, under load: every job that was answered is done, and none more often than
was said.

QUEUECTL_TEST_FULL=1 goes on for longer, QUEUECTL_TEST_SEED repeats a run that failed. One at a time: test_exactness.py.
"""

from __future__ import annotations

import os
import random
import shlex
import signal
import subprocess
import time
from collections import Counter

import pytest

from tests.e2e.processes import everyone, is_running
from tests.e2e.scene import FULL, Scene, freeze
from tests.program import COMMAND, WorkerProcess
from tests.wait import wait_until

SECONDS = 60.0 if FULL else 3.0


class Enqueuer:
    """A loop of a shell script; the ids it was answered with go to a file."""

    def __init__(self, scene: Scene) -> None:
        command = shlex.quote(scene.note("lines", "$QUEUECTL_JOB_ID"))
        loop = f"while :; do {shlex.join(COMMAND)} enqueue {command} >> {scene.quoted('ids')}; done"
        self._process = subprocess.Popen(["sh", "-c", loop], env=scene.queuectl.environment(), start_new_session=True)

    def kill(self) -> None:
        group = self._process.pid
        os.killpg(group, signal.SIGKILL)
        self._process.wait()
        # They die one by one, and the last id may still be on its way to the file.
        wait_until(
            lambda: not [one for one in everyone() if one.group == group and is_running(one.pid)],
            what="all of it to end",
        )


@pytest.mark.timeout(60 if not FULL else 300)
def test_acknowledged_jobs_are_done_whichever_process_is_killed_at_any_time(
    scene: Scene, chance: random.Random
) -> None:
    scene.configure(max_crashes=1000, poll_interval="200ms")
    stock = [{"command": scene.note("lines", "$QUEUECTL_JOB_ID"), "id": f"stock-{number}"} for number in range(300)]
    scene.enqueue_all_from_file(stock)
    workers = [scene.worker("--count", "3", ready=False) for _ in range(2)]
    enqueuers = [Enqueuer(scene) for _ in range(2)]
    kills, over = Counter[str](), time.monotonic() + SECONDS
    while time.monotonic() < over:
        at = time.monotonic() + chance.uniform(0.05, 0.5)
        wait_until(lambda at=at: time.monotonic() >= at, every=0.005, what="the moment")
        what = chance.choice(["enqueuer", "worker", "worker and supervisor", "all"])
        kills[what] += 1
        if what in ("enqueuer", "all"):
            enqueuers.pop(0).kill()
            enqueuers.append(Enqueuer(scene))
        if what != "enqueuer":
            end = WorkerProcess.crash if what == "worker and supervisor" else WorkerProcess.kill
            end(workers.pop(0))
            workers.append(scene.worker("--count", "3", ready=False))
    for enqueuer in enqueuers:
        enqueuer.kill()
    scene.wait_for_all(timeout=40 if not FULL else 200)
    killed = kills["enqueuer"] + kills["all"] + len(enqueuers)
    answered, states = scene.lines("ids"), scene.states()
    assert len(answered) == len(set(answered))
    assert set(answered) | {job["id"] for job in stock} <= set(states)  # none is lost
    assert len(states) - len(stock) - len(answered) <= killed  # committed, and killed before it could say so
    assert set(states.values()) == {"completed"}
    done = Counter(scene.lines("lines"))
    assert set(done) == set(states)
    assert [job for job in states if done[job] > 1 + scene.outcomes(job).count("lost")] == []  # each is accounted for
    assert {scene.job(job_id)["attempts"] for job_id in states} == {0}
    assert scene.queuectl("doctor", "--json").json["problems"] == 0


def test_a_worker_that_is_stopped_under_load_loses_its_jobs_and_no_result_counts_twice(scene: Scene) -> None:
    scene.configure(heartbeat="200ms", lease="1s", kill_grace="200ms")
    command = f"{scene.note('begun', '$QUEUECTL_JOB_ID')}; [ $QUEUECTL_RUN = 2 ] || sleep 0.2; {scene.note('ended', '$QUEUECTL_JOB_ID')}"
    scene.enqueue_all([{"command": command, "id": f"job-{number}"} for number in range(40)])
    stopped = scene.worker("--count", "4", "--name", "w1")
    scene.worker("--count", "4", "--name", "w2")
    scene.wait_for_lines("ended", 8)
    freeze(scene, stopped)
    scene.wait_for_all()
    before = {job_id: scene.history(job_id) for job_id in scene.states()}
    stopped.send(signal.SIGCONT)
    wait_until(lambda: "other workers took over" in stopped.output, what="the worker to notice")
    assert scene.wait_for(scene.enqueue("true", id="after"), "completed")["runs"] == 1
    assert {job_id: scene.history(job_id) for job_id in before} == before  # it changed nothing
    assert set(scene.states().values()) == {"completed"}
    begun = Counter(scene.lines("begun"))
    assert {job_id: count for job_id, count in begun.items() if count > len(before[job_id])} == {}
    assert sum(run["outcome"] == "lost" for runs in before.values() for run in runs) <= 4
