"""A disk that is full, a home that may only be read, a home that is gone: what people see, and that nothing is lost.

The full disk is a small tmpfs of its own, a real ENOSPC. Logs alone on such a disk, and a log directory that is removed under
a job: tests/worker/test_log_errors.py. The same by RLIMIT_FSIZE, for users who cannot mount: tests/store/sqlite/test_busy.py.
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator

import pytest

from tests.e2e.disks import SmallDisk, mounted, read_only
from tests.e2e.scene import Scene
from tests.program import Program
from tests.wait import wait_until


@pytest.fixture
def disk(scene: Scene) -> Iterator[SmallDisk]:
    """The whole home is on it."""
    yield from mounted(scene.home, "1500k")
    scene.end()


# ── full ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_enqueues_until_the_disk_is_full_have_printed_just_what_is_there(scene: Scene, disk: SmallDisk) -> None:
    printed = scene.queuectl("enqueue", "true", check=0).lines
    disk.fill()
    text = "\n".join(f"echo {'x' * 900} {number}" for number in range(2_000))
    stream = scene.queuectl("enqueue", "--file", "-", "--stream", input=text)
    printed += stream.lines
    batch = scene.queuectl("enqueue", "--file", "-", input=text)
    for refused in (stream, batch):
        assert refused.code == 1
        assert refused.err.splitlines() == [
            f"error: no space left for the database {scene.home}/queue.db",
            "hint: free some disk space; nothing was changed",
        ]
    assert batch.out == ""
    assert set(scene.states()) == set(printed)
    assert "disk-full" in scene.queuectl("doctor", "--json", check=1).out
    disk.make_room()
    printed += scene.queuectl("enqueue", "true", check=0).lines
    scene.drain("--count", "4")
    assert scene.states() == dict.fromkeys(printed, "completed")


def test_results_that_found_no_room_are_written_when_there_is_some(scene: Scene, disk: SmallDisk) -> None:
    command = f"{scene.note('begun', '$QUEUECTL_JOB_ID')}; {scene.until('go')}; head -c 50000 /dev/zero; {scene.note('ended')}"
    ids = scene.enqueue_all([{"command": f"{command}; exit {code}", "max_retries": 1} for code in (0, 0, 5)])
    worker = scene.worker("--count", "3")
    scene.wait_for_lines("begun", 3)
    scene.forge("pragma wal_checkpoint(truncate)")  # or there is room in the log, which is used again and again
    disk.fill()
    scene.open("go")
    scene.wait_for_lines("ended", 3)
    wait_until(lambda: "space left" in worker.output, what="the worker to say so")
    assert worker.process.poll() is None
    disk.make_room()
    scene.wait_for_all()
    assert [scene.state(job_id) for job_id in ids] == ["completed", "completed", "dead"]
    assert scene.job(ids[2])["exit_code"] == 5
    assert [scene.job(job_id)["runs"] for job_id in ids] == [1, 1, 1]
    assert len(scene.lines("begun")) == 3


def test_a_worker_that_is_killed_on_a_full_disk_costs_no_job(scene: Scene, disk: SmallDisk) -> None:
    command = f"{scene.note('begun')}; {scene.until('go')}; {scene.note('ended')}"
    ids = scene.enqueue_all([{"command": command}] * 3)
    worker = scene.worker("--count", "2")
    scene.wait_for_lines("begun", 2)
    scene.forge("pragma wal_checkpoint(truncate)")
    disk.fill()
    scene.open("go")
    scene.wait_for_lines("ended", 2)
    wait_until(lambda: "space left" in worker.output, what="the worker to say so")
    worker.kill()
    second = scene.worker("--drain", ready=False)
    wait_until(lambda: "space left" in second.output, what="the next worker to report it")
    disk.make_room()
    assert second.wait() == 0  # it did not have to be started again
    assert scene.states() == dict.fromkeys(ids, "completed")
    # Their supervisor recorded their exit. If it could not, they ran again, and that is recorded.
    assert all(scene.outcomes(job_id) in (["completed"], ["lost", "completed"]) for job_id in ids)
    assert {scene.job(job_id)["attempts"] for job_id in ids} == {0}


# ── only to be read ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_home_that_can_only_be_read_is_said_so_and_goes_on_where_it_was(scene: Scene) -> None:
    scene.configure(heartbeat="200ms", lease="1s")
    running = scene.enqueue(f"{scene.note('begun')}; {scene.until('go')}; exit 3", max_retries=1)
    worker, other = scene.worker("--name", "w1"), scene.worker("--name", "w2")
    scene.wait_for_file("begun")
    wait_until((scene.home / "workers" / "w2.runs").read_bytes, what="the supervisor of w2 to start")
    with read_only(scene.home):
        for command in (["enqueue", "true"], ["cancel", running], ["config", "set", "lease", "2s"]):
            refused = scene.queuectl(*command)
            assert (refused.code, refused.out) == (1, "")
            assert refused.err.splitlines()[0] == f"error: the database {scene.home}/queue.db cannot be written"
        refused = scene.queuectl("worker", "start")
        assert (
            refused.err.splitlines()[0]
            == f"error: cannot use {scene.home} as the data directory: Read-only file system"
        )
        assert scene.queuectl("list", "--json", check=0).json[0]["state"] == "processing"
        found = scene.queuectl("doctor", "--json", check=1).json
        assert {"home", "store", "logs"} <= {seen["check"] for seen in found["checks"] if seen["status"] == "problem"}
        scene.open("go")
        # The workers have the database open, and a run that prints nothing needs no other file.
        assert scene.wait_for(running, "dead")["exit_code"] == 3
    assert scene.wait_for(scene.enqueue("true"), "completed")["runs"] == 1
    assert scene.workers() == {"w1": "running", "w2": "running"}, worker.output + other.output  # and none is lost
    assert scene.outcomes(running) == ["failed"]


# ── gone ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_job_finishes_if_the_data_directory_is_removed_and_it_is_not_recreated(scene: Scene) -> None:
    scene.enqueue(f"{scene.note('begun')}; {scene.until('go')}; echo said; {scene.note('ended')}")
    scene.configure(heartbeat="200ms")
    worker = scene.worker()
    scene.wait_for_file("begun")
    shutil.rmtree(scene.home)
    wait_until(lambda: "was removed or replaced" in worker.output, what="the worker to say so")
    assert worker.process.poll() is None
    scene.open("go")
    scene.wait_for_file("ended")
    assert worker.wait() == 1
    assert worker.output.splitlines()[-2:] == [
        f"error: the database {scene.home}/queue.db was removed or replaced",
        "hint: restore it; queuectl never creates a new one in its place",
    ]
    assert not scene.home.exists()


def test_a_home_with_spaces_and_other_letters_survives_a_crash_and_a_stop(scene: Scene) -> None:
    scene.home = scene.directory / "zu Hause / żółw 漢字 🐢 'q' $x;y"
    scene.queuectl = Program(scene.home)
    command = f'[ $QUEUECTL_RUN = 2 ] || {{ {scene.note("begun")}; {scene.until("never")}; }}; echo "$QUEUECTL_HOME"'
    job_id = scene.enqueue(command)
    worker = scene.worker("--name", "w1")
    scene.wait_for_file("begun")
    worker.crash()
    again = scene.worker("--name", "w2")
    assert scene.wait_for(job_id, "completed")["crashes"] == 1
    assert scene.queuectl("logs", job_id, "--no-markers", "--tail", "1", check=0).out == f"{scene.home}\n"
    assert scene.queuectl("doctor", check=0).lines[-1] == "no problems found"
    again.send(signal.SIGTERM)
    assert again.wait() == 0
    scene.leftovers_gone()
