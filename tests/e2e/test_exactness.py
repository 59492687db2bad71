"""Whatever is killed, whenever: every job is done, none is done twice but for a reason, none is lost.

QUEUECTL_TEST_FULL=1 uses the numbers of the contract, QUEUECTL_TEST_SEED repeats a run that failed.
"""

from __future__ import annotations

import os
import random
import shlex
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable

import pytest

from tests.e2e.scene import FULL, Scene
from tests.program import COMMAND, WorkerProcess, environment
from tests.wait import wait_until

JOBS = 2_000 if FULL else 600
KILLS = 40 if FULL else 8


@pytest.mark.timeout(60 if not FULL else 300)
@pytest.mark.parametrize("end", [WorkerProcess.kill, WorkerProcess.crash], ids=["the worker", "its supervisor too"])
def test_workers_killed_at_random_moments_cost_no_job_and_repeat_only_what_could_not_be_adopted(
    scene: Scene, chance: random.Random, end: Callable[[WorkerProcess], None]
) -> None:
    # Without its supervisor, a run may be killed after its line and before its exit. Only then is there a second line.
    jobs = [{"command": scene.note("lines", "$QUEUECTL_JOB_ID"), "id": f"job-{number}"} for number in range(JOBS)]
    scene.enqueue_all_from_file(jobs)
    workers = [scene.worker("--count", "4", "--name", f"w{number}", ready=False) for number in range(3)]
    for part in (1, 3):  # somewhere in the second and in the fourth fifth of the work
        moment = JOBS * part // 5 + chance.randrange(JOBS // 5)
        wait_until(
            lambda moment=moment: len(scene.lines("lines")) >= moment, timeout=60, every=0.005, what="the moment"
        )
        victim: WorkerProcess = workers.pop(chance.randrange(len(workers)))
        end(victim)
        workers.append(scene.worker("--count", "4", "--name", f"replacement-{part}", ready=False))
    scene.wait_for_all(timeout=50 if not FULL else 250)
    assert scene.count("completed") == JOBS
    assert scene.count("processing") == 0
    printed = Counter(scene.lines("lines"))
    lost = Counter({job["id"]: scene.outcomes(job["id"]).count("lost") for job in jobs})
    assert set(printed) == {job["id"] for job in jobs}
    assert {job_id: count for job_id, count in printed.items() if count > 1 + lost[job_id]} == {}
    if end is WorkerProcess.kill:  # what it had claimed and not yet begun goes back, too; nothing that ran does
        assert set(printed.values()) == {1}
    else:
        interrupted = {job["id"] for job in jobs if scene.outcomes(job["id"])[0] != "completed"}
        # What a worker had claimed and not begun leaves no run: the worker that takes it back logs it.
        rescued = any("rescued" in worker.output for worker in workers)
        assert interrupted or rescued, "no worker was killed while it held something: the test has proved nothing"
    assert {scene.job(job_id)["attempts"] for job_id in lost} == {0}


@pytest.mark.timeout(60 if not FULL else 300)
def test_an_enqueue_loop_killed_at_random_moments_has_printed_every_job_but_the_last_of_each(
    scene: Scene, chance: random.Random
) -> None:
    ids = scene.quoted("ids")
    loop = f"while :; do {shlex.join(COMMAND)} enqueue true >> {ids}; done"
    for _ in range(KILLS):
        # Somewhere in the second run of the loop, the first being there to tell that it goes.
        before = len(scene.lines("ids"))
        process = subprocess.Popen(["sh", "-c", loop], env=environment(scene.home), start_new_session=True)
        wait_until(lambda before=before: len(scene.lines("ids")) > before, every=0.005, what="an id")
        moment = time.monotonic() + chance.uniform(0, 0.25)
        wait_until(lambda moment=moment: time.monotonic() >= moment, every=0.001, what="the moment")
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    # The processes of the group die one by one; a last id may still be on its way to the file.
    scene.leftovers_gone()
    printed = scene.lines("ids")
    stored = [job.id for job in scene.store.jobs()]
    assert len(printed) == len(set(printed)) >= KILLS
    assert set(printed) <= set(stored)
    assert len(set(stored) - set(printed)) <= KILLS
    assert len(stored) == len(set(stored))
    scene.drain("--count", "4")
    assert scene.count("completed") == len(stored)


def test_a_batch_that_is_killed_is_there_whole_or_not_at_all(scene: Scene, chance: random.Random) -> None:
    batch = "\n".join(f"echo {number}" for number in range(20_000)).encode()
    for _ in range(3):
        process = scene.queuectl.start("enqueue", "--file", "-", stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        assert process.stdin is not None
        try:
            process.stdin.write(batch)
            process.stdin.close()
        except BrokenPipeError:
            pass
        moment = time.monotonic() + chance.uniform(0, 0.4)
        wait_until(
            lambda moment=moment, process=process: time.monotonic() >= moment or process.poll() is not None,
            every=0.001,
            what="the moment",
        )
        process.kill()
        process.wait()
        if scene.is_there:
            assert scene.store.count() % 20_000 == 0
