"""A dead worker whose runs cannot be adopted costs no job: others terminate what is left of them and requeue the jobs. If they can be
adopted, see test_adoption.py."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time

import pytest

from queuectl.paths import runs_file
from queuectl.process.journal import read_journal
from queuectl.process.tree import send, supervisor_processes
from tests.e2e.processes import children, is_running, process, wait_until_gone
from tests.e2e.scene import Scene, family_of, freeze, stop
from tests.program import WorkerProcess
from tests.wait import wait_until

# Generous: the machine that runs the tests may be busy. The promise is two seconds.
SOON = 15.0

TREE = "trap '' TERM; sh -c 'sleep 1000 & wait' & setsid sh -c 'trap \"\" TERM; sleep 1000 & wait' &"
MEMBERS = 5


@pytest.fixture
def tag(scene: Scene) -> str:
    return str(scene.directory)  # of this test alone, also among those that run beside it


def crash_with(scene: Scene, tag: str, count: int = 1, **fields: object) -> tuple[WorkerProcess, list[str]]:
    """A worker that runs `count` jobs, each a tree of processes in its first run and soon done in its second."""
    first = f"{TREE} {scene.note('begun')}; {scene.until('never')}"
    command = f"{scene.note('runs', '$QUEUECTL_JOB_ID')}; if [ $QUEUECTL_RUN = 1 ]; then {first}; fi"
    ids = scene.enqueue_all([{"command": command, "env": {"FAMILY": tag}, **fields}] * count)
    worker = scene.worker("--name", "w1", "--count", str(count))
    scene.wait_for_lines("begun", count)
    wait_until(lambda: len(family_of(tag)) >= MEMBERS * count, what="the trees to grow")
    journal = runs_file(str(scene.home), "w1")
    wait_until(
        lambda: sum(not run.is_starting for run in read_journal(journal).runs.values()) >= count,
        what="the journal to have them",
    )
    return worker, ids


def test_another_worker_requeues_the_jobs_after_terminating_what_is_left_of_them(scene: Scene, tag: str) -> None:
    worker, ids = crash_with(scene, tag, count=2)
    left = family_of(tag)
    rescuer = scene.worker("--name", "w2", "--count", "2")
    worker.crash()
    died = time.monotonic()
    # Never two copies of one job: nothing of the first run is left when the second begins.
    wait_until(lambda: len(scene.lines("runs")) > 2, timeout=SOON, what="the first second run")
    overdue = time.monotonic() - died
    gone = [pid for pid in left if not is_running(pid)]
    assert gone == left, [process(pid) for pid in left if is_running(pid)]
    scene.wait_for_all(timeout=SOON)
    assert overdue < SOON
    for job_id in ids:
        job = scene.job(job_id)
        assert (job["state"], job["crashes"], job["attempts"], job["runs"]) == ("completed", 1, 0, 2)
        assert scene.outcomes(job_id) == ["lost", "completed"]
        assert scene.history(job_id)[0]["error"] == "its worker died"
        assert [run["worker"] for run in scene.history(job_id)] == ["w1", "w2"]
    assert sorted(scene.lines("runs")) == sorted(ids * 2)
    assert "rescued" in rescuer.output
    assert scene.workers() == {"w2": "running"}
    assert [path.name for path in (scene.home / "workers").iterdir() if path.name.startswith("w1")] == []


def test_jobs_are_requeued_also_while_every_other_worker_is_busy(scene: Scene, tag: str) -> None:
    worker, (job_id,) = crash_with(scene, tag)
    busy = scene.enqueue(f"{scene.note('busy')}; {scene.until('go')}")
    scene.worker("--name", "w2", "--count", "1")
    scene.wait_for_file("busy")
    worker.crash()
    job = scene.wait_for(job_id, "pending", timeout=SOON)
    assert (job["crashes"], job["attempts"]) == (1, 0)
    assert family_of(tag) == []
    assert scene.state(busy) == "processing"
    scene.open("go")
    scene.wait_for_all()


def test_the_next_worker_that_is_started_rescues_before_it_does_anything_else(scene: Scene, tag: str) -> None:
    worker, (job_id,) = crash_with(scene, tag)
    other = scene.enqueue(scene.note("runs", "other"), priority=9)
    worker.crash()
    assert scene.workers() == {"w1": "lost"}
    assert scene.state(job_id) == "processing"
    scene.drain()
    assert (scene.state(job_id), scene.state(other)) == ("completed", "completed")
    assert scene.job(job_id)["crashes"] == 1
    assert family_of(tag) == []
    assert scene.lines("runs") == [job_id, "other", job_id]


def test_the_log_says_that_the_run_was_lost(scene: Scene, tag: str) -> None:
    worker, (job_id,) = crash_with(scene, tag)
    worker.crash()
    scene.drain()
    assert _ends(scene, job_id) == ["lost", "rc=0"]


def _ends(scene: Scene, job_id: str) -> list[str]:
    return [line.split()[3] for line in scene.queuectl("logs", job_id, check=0).lines if line.startswith("--- END")]


def test_a_job_that_kills_its_supervisors_is_dead_after_the_maximum_of_crashes(scene: Scene) -> None:
    scene.configure(max_crashes=2)
    job_id = scene.enqueue("kill -9 $PPID; exec sleep 1000", max_retries=9)
    worker = scene.worker()
    job = scene.wait_for(job_id, "dead")
    assert (job["crashes"], job["attempts"], job["runs"]) == (2, 0, 2)
    assert scene.outcomes(job_id) == ["lost", "lost"]
    assert "2 times" in job["error"]
    scene.wait_for(scene.enqueue("true"), "completed")
    scene.queuectl("dlq", "retry", job_id, check=0)
    # Its crashes are forgotten: it may try again.
    assert scene.wait_for(job_id, "dead")["runs"] == 4
    assert worker.process.poll() is None


# ── runs that may still begin ───────────────────────────────────────────────────────────────────────────────────────


def test_a_job_that_was_requested_from_a_frozen_supervisor_runs_once(scene: Scene) -> None:
    scene.configure(heartbeat="1s", lease="5s")  # long enough to stop both
    worker = scene.worker("--name", "w1")
    worker.wait_until_ready()
    (supervisor,) = children(worker.pid)
    os.kill(supervisor.pid, signal.SIGSTOP)
    # The request waits in the channel: nothing in the journal mentions it.
    job_id = scene.enqueue(scene.note("ran", "$QUEUECTL_WORKER"))
    scene.wait_for(job_id, "processing")
    freeze(scene, worker)
    scene.worker("--name", "w2")
    job = scene.wait_for(job_id, "completed", timeout=SOON)
    assert not is_running(supervisor.pid)
    for pid in (supervisor.pid, worker.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    wait_until(lambda: scene.workers() == {"w1": "running", "w2": "running"}, what="both to be there")
    assert scene.wait_for(scene.enqueue("true", queue="other"), "completed")
    assert (job["worker"], scene.lines("ran")) == ("w2", ["w2"])


def test_a_process_that_has_not_become_its_program_is_found_by_the_journal_of_its_supervisor() -> None:
    # As between fork and exec: a child with the command line of its parent.
    code = "import os, time; os.fork(); os.write(1, b'x\\n'); time.sleep(600)"
    words = [sys.executable, "-c", code, "run_supervisor.py", "4", "/home/a/workers/w1.runs"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert [parent.stdout.readline() for _ in range(2)] == [b"x\n"] * 2
        (child,) = children(parent.pid)
        parent.kill()
        wait_until_gone([parent.pid])
        found = supervisor_processes("/home/a/workers/w1.runs", since=0)
        assert [one.pid for one in found] == [child.pid]
        assert supervisor_processes("/home/a/workers/w2.runs", since=0) == []
        send(signal.SIGKILL, found)
        wait_until_gone([child.pid])


def test_a_cancel_before_the_rescue_holds(scene: Scene, tag: str) -> None:
    worker, (job_id,) = crash_with(scene, tag)
    freeze(scene, worker)
    cancel = scene.queuectl.start("cancel", job_id)
    wait_until(lambda: cancel_is_recorded(scene, job_id), what="the cancel to be recorded")
    worker.kill()
    assert cancel.wait(30) == 0
    job = scene.job(job_id)
    assert (job["state"], job["crashes"], job["attempts"]) == ("cancelled", 0, 0)
    assert family_of(tag) == []


def cancel_is_recorded(scene: Scene, job_id: str) -> bool:
    return bool(scene.store.db.value("select cancel_requested from jobs where id = ?", (job_id,)))  # type: ignore[attr-defined]


def test_cancel_of_a_job_whose_only_worker_is_dead_returns_when_it_is_cancelled(scene: Scene, tag: str) -> None:
    worker, (job_id,) = crash_with(scene, tag)
    worker.kill()
    scene.queuectl("cancel", job_id, check=0, timeout=20)
    assert scene.state(job_id) == "cancelled"
    assert scene.outcomes(job_id) == ["cancelled"]
    assert family_of(tag) == []
    assert scene.workers() == {}


def test_a_crash_right_after_the_claim_costs_nothing(scene: Scene) -> None:
    # Killed in the moment the first of many is started: most of what it holds has no process yet.
    ids = scene.enqueue_all([{"command": scene.note("ran", "$QUEUECTL_JOB_ID")}] * 200)
    worker = scene.worker("--name", "w1", "--count", "200", ready=False)
    scene.wait_for_file("ran")
    worker.kill()
    scene.drain("--count", "20")
    assert {scene.state(job_id) for job_id in ids} == {"completed"}
    twice = {job_id for job_id in ids if scene.lines("ran").count(job_id) > 1}
    assert all("lost" in scene.outcomes(job_id) for job_id in twice)


def test_a_child_in_another_session_is_found_by_the_token_of_its_run(scene: Scene, tag: str) -> None:
    # The first process ends, its grandchild continues in its own session, and the journal of the worker is lost.
    command = f"setsid sh -c 'sleep 1000 & wait' & {scene.note('begun')}; {scene.until('never')}"
    job_id = scene.enqueue(command, env={"FAMILY": tag})
    worker = scene.worker("--name", "w1")
    scene.wait_for_file("begun")
    wait_until(lambda: len(family_of(tag)) >= 4, what="all of them")
    worker.kill()
    (scene.home / "workers" / "w1.runs").unlink()
    scene.queuectl("cancel", job_id, check=0)
    assert family_of(tag) == []


def test_removing_the_lock_file_of_a_living_worker_does_not_make_it_dead(scene: Scene) -> None:
    job_id = scene.enqueue(f"{scene.note('begun')}; {scene.until('go')}")
    worker = scene.worker("--name", "w1")
    scene.wait_for_file("begun")
    (scene.home / "workers" / "w1.lock").unlink()
    other = scene.worker("--name", "w2")
    other.wait_until_ready()
    assert scene.workers() == {"w1": "running", "w2": "running"}
    scene.open("go")
    assert scene.wait_for(job_id, "completed")["worker"] == "w1"
    assert scene.job(job_id)["runs"] == 1
    worker.kill()
    scene.wait_for_workers("w2")


def test_a_worker_that_was_stopped_past_its_lease_changes_nothing_and_continues_under_its_name(
    scene: Scene, tag: str
) -> None:
    scene.configure(heartbeat="200ms", lease="1s")
    worker, (job_id,) = crash_with(scene, tag)
    left = family_of(tag)
    freeze(scene, worker)
    scene.worker("--name", "w2")
    job = scene.wait_for(job_id, "completed", timeout=SOON)
    assert (job["worker"], job["crashes"], job["attempts"], job["runs"]) == ("w2", 1, 0, 2)
    assert [pid for pid in left if is_running(pid)] == []
    before = (scene.job(job_id), scene.history(job_id))
    worker.send(signal.SIGCONT)
    wait_until(lambda: "other workers took over" in worker.output, what="the worker to notice")
    wait_until(lambda: scene.workers() == {"w1": "running", "w2": "running"}, what="both to be there")
    assert (scene.job(job_id), scene.history(job_id)) == before
    assert _ends(scene, job_id) == ["lost", "rc=0"]  # one for each run, though its supervisor was alive all the time
    # And it runs jobs again.
    stop(scene._workers[1], signal.SIGTERM)
    scene.wait_for_workers("w1")
    assert scene.wait_for(scene.enqueue("true"), "completed")["worker"] == "w1"


def test_a_worker_that_does_not_know_how_long_it_was_stopped_leaves_the_log_of_a_lost_run_alone(
    scene: Scene, tag: str
) -> None:
    # It does not know of the shorter lease: it looks first at what has ended, and not at whether its lease has expired.
    scene.configure(lease="1h", heartbeat="10m")
    worker, (job_id,) = crash_with(scene, tag)
    freeze(scene, worker)
    scene.configure(heartbeat="200ms", lease="1s")
    scene.worker("--name", "w2")
    scene.wait_for(job_id, "completed", timeout=SOON)
    worker.send(signal.SIGCONT)
    wait_until(lambda: "the lease was lost" in worker.output, what="the worker to notice")
    assert _ends(scene, job_id) == ["lost", "rc=0"]


def test_the_output_of_a_run_that_ended_while_its_worker_was_stopped_has_no_marker_in_it(scene: Scene) -> None:
    scene.configure(heartbeat="200ms", lease="1s")
    job_id = scene.enqueue(f"echo run $QUEUECTL_RUN; {scene.note('begun')}; {scene.until('go')}")
    worker = scene.worker("--name", "w1")
    scene.wait_for_file("begun")
    freeze(scene, worker)
    scene.open("go")
    journal = str(scene.home / "workers" / "w1.runs")
    wait_until(
        lambda: any(run.exit for run in read_journal(journal).runs.values()), what="its supervisor to write the end"
    )
    scene.worker("--name", "w2")
    scene.wait_for(job_id, "completed", timeout=SOON)
    worker.send(signal.SIGCONT)
    wait_until(lambda: "other workers took over" in worker.output, what="the worker to notice")
    assert scene.outcomes(job_id) == ["lost", "completed"]
    assert _ends(scene, job_id) == ["rc=0", "rc=0"]
    assert scene.queuectl("logs", job_id, "--no-markers", check=0).lines == ["run 1", "run 2"]


def test_a_worker_that_is_stopped_for_less_than_its_lease_keeps_its_jobs(scene: Scene) -> None:
    scene.configure(heartbeat="200ms", lease="1m")
    job_id = scene.enqueue(f"{scene.note('begun')}; {scene.until('go')}")
    worker = scene.worker("--name", "w1")
    scene.wait_for_file("begun")
    freeze(scene, worker)
    scene.worker("--name", "w2")
    scene.open("go")
    wait_until(lambda: beats(scene, "w2") >= 8, what="the other to have looked around")
    assert scene.state(job_id) == "processing"
    worker.send(signal.SIGCONT)
    job = scene.wait_for(job_id, "completed")
    assert (job["worker"], job["runs"], job["crashes"]) == ("w1", 1, 0)


def beats(scene: Scene, name: str) -> int:
    return next(worker.beats for worker in scene.store.workers() if worker.id == name)


def test_a_reused_pid_is_not_taken_for_the_worker(scene: Scene) -> None:
    job_id = scene.enqueue(f"{scene.note('begun')}; [ $QUEUECTL_RUN = 2 ] || {scene.until('never')}")
    worker = scene.worker("--name", "w1")
    scene.wait_for_file("begun")
    worker.crash()
    # As if its PID were ours now.
    scene.forge("update workers set pid = ?", (os.getpid(),))
    assert scene.workers() == {"w1": "lost"}
    scene.drain()
    assert scene.job(job_id)["crashes"] == 1
