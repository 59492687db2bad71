"""Logs that cannot be written, and disks that are full: a job is worth more than its log, and nothing is charged for it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.disks import SmallDisk, mounted
from tests.e2e.scene import Scene
from tests.wait import wait_until


@pytest.fixture
def small_logs(scene: Scene) -> Iterator[SmallDisk]:
    """The logs of this home lie on a disk of their own. Unmounted before the processes are ended."""
    yield from mounted(scene.home / "logs", "256k")


@pytest.fixture
def small_home(scene: Scene) -> Iterator[SmallDisk]:
    yield from mounted(scene.home, "2m")


def test_a_log_directory_that_is_removed_under_a_worker_costs_no_job(scene: Scene) -> None:
    running = scene.enqueue(f"{scene.note('begun')}; {scene.until('go')}; echo said; exit 3", max_retries=1)
    worker = scene.worker()
    scene.wait_for_file("begun")
    shutil.rmtree(scene.home / "logs")
    scene.open("go")
    assert scene.wait_for(running, "dead")["exit_code"] == 3
    assert scene.queuectl("show", running, "--json", check=0).json["output"] == "said\n"
    after = scene.enqueue("echo back")
    scene.wait_for(after, "completed")
    assert scene.queuectl("logs", after, "--no-markers", check=0).out == "back\n"
    assert worker.process.poll() is None
    assert (scene.home / "logs").stat().st_mode & 0o777 == 0o700


def test_that_the_end_of_a_log_cannot_be_written_is_said_and_not_that_it_is_tried_again(scene: Scene) -> None:
    running = scene.enqueue(f"echo said; {scene.until('never')}")
    worker = scene.worker()
    log = Path(wait_until(lambda: scene.job(running)["log"], what="its log"))
    log.unlink()
    log.mkdir()
    scene.queuectl("cancel", running, check=0)
    line = wait_until(lambda: [line for line in worker.output.splitlines() if "trouble" in line], what="word of it")[0]
    assert line.endswith(f"cannot write {log}: Is a directory")
    assert scene.state(running) == "cancelled"


def test_a_log_that_is_removed_while_the_job_runs_does_not_disturb_it(scene: Scene) -> None:
    running = scene.enqueue(f"echo first; {scene.until('go')}; echo said && {scene.note('after')}")
    scene.worker()
    Path(wait_until(lambda: scene.job(running)["log"], what="its log")).unlink()
    scene.open("go")
    scene.wait_for(running, "completed")
    assert scene.path("after").exists()


def test_where_no_log_can_be_created_the_job_runs_and_the_worker_logs_why_its_output_is_missing(
    scene: Scene, small_logs: SmallDisk
) -> None:
    small_logs.fill()
    job_id = scene.enqueue("echo lost", max_retries=1)
    worker = scene.worker()
    assert scene.wait_for(job_id, "completed")["attempts"] == 0
    wait_until(lambda: "No space left" in worker.output, what="the worker to log it")
    assert scene.outcomes(job_id) == ["completed"]
    small_logs.make_room()
    after = scene.enqueue("echo at last")
    scene.wait_for(after, "completed")
    assert scene.queuectl("logs", after, "--no-markers", check=0).out == "at last\n"


def test_a_job_that_fills_the_disk_keeps_its_result(scene: Scene, small_logs: SmallDisk) -> None:
    job_id = scene.enqueue("head -c 1000000 /dev/zero; exit 0", max_retries=1)
    worker = scene.worker()
    assert scene.wait_for(job_id, "completed")["exit_code"] == 0
    assert worker.process.poll() is None
    assert "Traceback" not in worker.output
    scene.queuectl("logs", job_id, "--tail", "1", check=0)
    scene.queuectl("show", job_id, check=0)


def test_what_could_not_be_written_is_thrown_away_and_said_when_there_is_room_again(
    scene: Scene, small_logs: SmallDisk
) -> None:
    line = "x" * 1000 + "word\n"
    words = f"echo {line.strip()}; echo . >> words; sleep 0.01"
    job_id = scene.enqueue(f"{scene.loop('stop', words)}; echo the end")
    scene.worker()
    log = small_logs.path / f"{job_id}.log"
    wait_until(lambda: log.exists() and b"word\n" in log.read_bytes(), what="some output")
    small_logs.fill()
    before = len(scene.lines("words"))
    scene.wait_for_lines("words", before + 100)  # nothing holds it up: that is more than a pipe takes
    small_logs.make_room()
    said = b" bytes could not be written: No space left on device ---\n"
    wait_until(lambda: said in log.read_bytes(), what="the log to say so")
    scene.open("stop")
    assert scene.wait_for(job_id, "completed")["exit_code"] == 0
    found = scene.queuectl("logs", "--no-markers", job_id, check=0).raw
    assert found.endswith(b"word\nthe end\n")
    lost = sum(int(one.split()[1]) for one in found.splitlines() if one.endswith(said.strip()))
    # Of the word that met the end of the disk, a part may be there.
    size = len(line)
    assert 0 <= size * len(scene.lines("words")) - lost - size * found.count(b"word\n") < size


def test_a_home_on_a_full_disk_loses_nothing_and_goes_on_once_there_is_room(
    scene: Scene, small_home: SmallDisk
) -> None:
    ids = scene.enqueue_all([{"command": f"{scene.note('begun')}; {scene.until('go')}"}] * 3)
    waiting = scene.enqueue_all([{"command": "true"}] * 20)
    worker = scene.worker("--count", "3")
    scene.wait_for_lines("begun", 3)
    small_home.fill()
    refused = scene.queuectl("enqueue", "--file", "-", input="true\n" * 20_000)
    assert (refused.code, refused.out) == (1, "")
    assert "no space" in refused.err
    assert len(refused.err.splitlines()) == 2
    scene.open("go")
    wait_until(lambda: "space" in worker.output.lower(), what="the worker to say so")
    small_home.make_room()
    scene.wait_for_all()
    assert {scene.state(job_id) for job_id in ids + waiting} == {"completed"}
    assert {scene.job(job_id)["attempts"] for job_id in ids + waiting} == {0}
    assert len(scene.states()) == 23
    assert worker.process.poll() is None
    worker.end()
    scene.end()


@pytest.mark.parametrize("kind", ["directory", "link", "pipe"])
def test_what_is_in_the_place_of_one_log_costs_that_log_at_most_and_is_not_followed(scene: Scene, kind: str) -> None:
    precious = scene.path("precious")
    precious.write_text("do not touch")
    bad, good = scene.enqueue("echo bad", max_retries=1), scene.enqueue("echo good")
    place = scene.home / "logs" / f"{bad}.log"
    match kind:
        case "directory":
            place.mkdir()
        case "link":
            place.symlink_to(precious)
        case _:
            os.mkfifo(place)
    worker = scene.worker("--drain")
    assert worker.wait() == 0
    assert (scene.state(bad), scene.state(good)) == ("completed", "completed")
    if kind == "directory":
        assert f"cannot write {place}" in worker.output
    else:  # replaced, not followed
        assert scene.queuectl("logs", bad, "--no-markers", check=0).out == "bad\n"
    assert scene.queuectl("logs", good, "--no-markers", check=0).out == "good\n"
    assert precious.read_text() == "do not touch"
    assert scene.queuectl("show", bad, check=0).out
