"""The store locked, gone, replaced: jobs go on, results are kept, the worker says so and recovers by itself."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.e2e.processes import carrying
from tests.e2e.scene import Scene, freeze
from tests.needs import require
from tests.users import IS_ROOT
from tests.wait import wait_until


@contextmanager
def locked(home: Path, how: str = "immediate") -> Iterator[None]:
    """Another program holds the write lock."""
    with closing(sqlite3.connect(home / "queue.db", isolation_level=None)) as other:
        wait_until(lambda: begin(other, how), what="the write lock")
        yield
        other.execute("rollback")


def begin(connection: sqlite3.Connection, how: str) -> bool:
    try:
        connection.execute(f"begin {how}")
    except sqlite3.OperationalError:
        return False
    return True


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_jobs_go_on_and_their_results_are_kept_while_another_program_holds_the_lock(scene: Scene) -> None:
    command = f"{scene.note('begun')}; {scene.until('go')}; {scene.note('ended')}"
    ids = scene.enqueue_all([{"command": command}, {"command": f"{command}; exit 3", "max_retries": 1}])
    worker = scene.worker("--count", "2")
    scene.wait_for_lines("begun", 2)
    with locked(scene.home):
        scene.open("go")
        scene.wait_for_lines("ended", 2)
        wait_until(lambda: "locked" in worker.output, what="the worker to say so")
        assert [scene.state(job_id) for job_id in ids] == ["processing", "processing"]
        assert "recovered" not in worker.output
    scene.wait_for(ids[0], "completed")
    assert scene.wait_for(ids[1], "dead")["exit_code"] == 3
    wait_until(lambda: "recovered" in worker.output, what="the worker to say that it is over")
    assert worker.output.count("trouble") == worker.output.count("recovered") == 1
    assert worker.process.poll() is None


def test_a_time_limit_holds_also_while_the_store_is_locked(scene: Scene) -> None:
    job_id = scene.enqueue(
        f"{scene.note('begun')}; trap '{scene.note('told')}; exit' TERM; {scene.until('never')}",
        timeout=1,
        max_retries=1,
    )
    scene.worker()
    scene.wait_for_file("begun")
    with locked(scene.home):
        scene.wait_for_file("told")
    assert scene.wait_for(job_id, "dead")["error"].startswith("timeout")


def test_a_worker_that_waits_for_the_store_does_not_burn_the_processor(scene: Scene) -> None:
    scene.enqueue("true")
    scene.configure(heartbeat="200ms", lease="1s")
    worker = scene.worker()
    scene.wait_for_all()
    with locked(scene.home, "exclusive"):
        wait_until(lambda: "locked" in worker.output, what="the worker to say so")
        busy, began = cpu_seconds(worker.pid), time.monotonic()
        wait_until(lambda: time.monotonic() - began > 1.5, what="a span to measure over")
        assert (cpu_seconds(worker.pid) - busy) / (time.monotonic() - began) < 0.4


def test_a_worker_comes_up_once_the_lock_is_free(scene: Scene) -> None:
    job_id = scene.enqueue("true")
    with locked(scene.home):
        worker = scene.worker(ready=False)
        wait_until(lambda: "locked" in worker.output, what="the worker to say so")
        assert worker.process.poll() is None, worker.output
    scene.wait_for(job_id, "completed")


def test_a_worker_that_leaves_waits_for_the_lock_and_leaves_nothing_behind(scene: Scene) -> None:
    scene.enqueue("true")
    worker = scene.worker()
    scene.wait_for_all()
    with locked(scene.home):
        worker.send(signal.SIGTERM)
        wait_until(lambda: "locked" in worker.output, what="the worker to say so")
        assert worker.process.poll() is None
    assert worker.wait() == 0
    assert scene.store.workers() == []


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_store_that_goes_under_a_worker_is_never_made_again_and_ends_it_when_nothing_runs(
    scene: Scene, how: str
) -> None:
    scene.enqueue(f"{scene.note('begun')}; {scene.until('go')}; {scene.note('ended')}")
    scene.configure(heartbeat="200ms")
    worker = scene.worker()
    scene.wait_for_file("begun")
    for path in scene.home.glob("queue.db*"):
        path.rename(scene.directory / path.name)
    if how == "replaced":
        (scene.home / "queue.db").write_bytes(b"")
    wait_until(lambda: "removed or replaced" in worker.output, what="the worker to say so")
    # The job goes on: it is worth more than where its result would stand.
    assert worker.process.poll() is None
    # No command says that there is nothing.
    for words in (
        ("status",),
        ("list",),
        ("show", "last"),
        ("worker", "list"),
        ("worker", "stop"),
        ("metrics", "--json"),
    ):
        refused = scene.queuectl(*words, check=1)
        assert ("removed or replaced" if how == "removed" else "is empty") in refused.err
        assert refused.out == ""
    scene.open("go")
    scene.wait_for_file("ended")
    assert worker.wait() == 1
    assert "recovered" not in worker.output
    assert "error: the database" in worker.output.splitlines()[-2]
    left = scene.home / "queue.db"
    assert not left.exists() if how == "removed" else left.read_bytes() == b""


def test_a_home_that_is_removed_under_a_worker_ends_it_without_a_traceback(scene: Scene) -> None:
    scene.enqueue("true")
    scene.configure(heartbeat="200ms")
    worker = scene.worker()
    scene.wait_for_all()
    shutil.rmtree(scene.home)
    assert worker.wait() == 1
    assert "Traceback" not in worker.output
    assert "unexpected" not in worker.output
    assert not scene.home.exists()


def test_a_worker_that_was_forgotten_takes_its_name_again_and_goes_on(scene: Scene) -> None:
    scene.configure(heartbeat="200ms")
    worker = scene.worker("--name", "w1")
    scene.forge("delete from workers")
    wait_until(lambda: "other workers took over" in worker.output, what="the worker to notice")
    job_id = scene.enqueue("true")
    scene.wait_for(job_id, "completed")
    assert scene.workers() == {"w1": "running"}


def test_a_setting_that_cannot_be_in_force_is_told_once_and_does_not_end_the_worker(scene: Scene) -> None:
    worker = scene.worker("--name", "w1", env={"QUEUECTL_HEARTBEAT": "300ms"})
    scene.configure(heartbeat="100ms", lease="400ms")  # for us, who have another heartbeat, too short
    wait_until(lambda: "twice the heartbeat" in worker.output, what="the worker to say so")
    # It still looks after the others, which it does once a second.
    other = scene.worker("--name", "w2", env={"QUEUECTL_LEASE": "1m"})
    other.kill()
    wait_until(lambda: [found.id for found in scene.store.workers()] == ["w1"], what="the other to be removed")
    scene.wait_for(scene.enqueue("true"), "completed")
    assert worker.output.count("twice the heartbeat") == 1


def test_an_empty_store_is_never_made_in_the_place_of_one_that_a_worker_serves(scene: Scene) -> None:
    worker = scene.worker("--name", "w1")
    freeze(scene, worker)  # or it would find out, and go, before we come
    for path in scene.home.glob("queue.db*"):
        path.unlink()
    answer = scene.queuectl("enqueue", "true")
    assert (answer.code, answer.out) == (1, "")
    assert "was removed" in answer.err
    assert not (scene.home / "queue.db").exists()
    worker.kill()


def test_time_is_kept_and_a_stop_is_heard_however_long_the_store_cannot_be_asked(scene: Scene) -> None:
    scene.configure(heartbeat="100ms", lease="300ms", kill_grace="100ms")
    slow = scene.enqueue(f"{scene.note('begun')}; {scene.until('never')}", timeout="2s", max_retries=1)
    other = scene.enqueue(f"{scene.note('begun')}; trap '{scene.note('ended')}; exit 0' TERM; {scene.until('never')}")
    worker = scene.worker("--count", "2")
    scene.wait_for_lines("begun", 2)
    with locked(scene.home):
        # Much longer than the lease: the timeout of one job comes, and a signal for the other.
        wait_until(lambda: "trouble" in worker.output, what="the worker to notice")
        worker.send(signal.SIGTERM)
        wait_until(lambda: "finishing" in worker.output, what="the worker to hear it")
        worker.send(signal.SIGTERM)
        scene.wait_for_file("ended")
        wait_until(lambda: not carrying(f"QUEUECTL_JOB_ID={slow}"), what="the slow one to be ended")
    assert worker.wait() == 128 + signal.SIGTERM
    assert scene.state(other) == "pending"
    assert scene.state(slow) in ("dead", "pending")  # its time was over, or it was given back before


def test_a_worker_that_goes_before_the_store_answers_says_what_it_could_not_write(scene: Scene) -> None:
    job_id = scene.enqueue(f"{scene.note('begun')}; {scene.until('go')}")
    worker = scene.worker()
    scene.wait_for_lines("begun", 1)
    with locked(scene.home):
        scene.open("go")
        wait_until(lambda: "trouble" in worker.output, what="the worker to notice")
        worker.send(signal.SIGTERM)
        wait_until(lambda: "1 result to be written yet" in worker.output, what="the worker to say so")
        worker.send(signal.SIGTERM)
        wait_until(lambda: "ending 0 jobs" in worker.output, what="the worker to hear it again")
        worker.send(signal.SIGTERM)
        assert worker.wait() == 128 + signal.SIGTERM
    assert "1 result not written" in worker.output
    scene.drain()
    assert scene.state(job_id) == "completed"


# Root passes every mode by this capability.
WITHOUT_PRIVILEGE = (
    ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search")
    if IS_ROOT
    else ()
)


def test_a_worker_whose_home_may_not_be_entered_for_a_while_resumes(scene: Scene) -> None:
    require("setpriv", not IS_ROOT or shutil.which("setpriv"), "it takes from root what passes every mode")
    scene.configure(heartbeat="200ms", lease="1s")
    worker = scene.worker(through=WITHOUT_PRIVILEGE)
    scene.wait_for(scene.enqueue("true"), "completed")  # its supervisor has opened its files
    scene.home.chmod(0)
    try:
        wait_until(lambda: "queue.db failed: Permission denied" in worker.output, what="the worker to say so")
        mark = len(worker.output)
    finally:
        scene.home.chmod(0o700)
    scene.wait_for(scene.enqueue("true"), "completed")
    wait_until(lambda: "recovered" in worker.output[mark:], what="the worker to say that it is over")


def test_a_store_that_cannot_be_examined_is_neither_gone_nor_replaced(scene: Scene) -> None:
    real, loop = scene.home.with_name("real"), scene.home.with_name("loop")
    real.mkdir(mode=0o700)
    scene.home.symlink_to(real)
    scene.configure(heartbeat="200ms", lease="1s")
    worker = scene.worker()
    scene.wait_for(scene.enqueue("true"), "completed")  # its supervisor has opened its files
    loop.symlink_to(scene.home)
    loop.replace(scene.home)  # ELOOP: an error that says nothing about the file, like EIO or ESTALE
    try:
        words = "queue.db failed: Too many levels of symbolic links"
        wait_until(lambda: words in worker.output, what="the worker to say so")
    finally:
        loop.symlink_to(real)
        loop.replace(scene.home)
    scene.wait_for(scene.enqueue("true"), "completed")
    assert worker.process.poll() is None
