"""Jobs that cannot be started: a failure of the job, with an error that its owner understands."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.scene import Scene
from tests.needs import require
from tests.wait import wait_until

PIDS = Path("/sys/fs/cgroup/pids")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "file").write_text("no program")
    (tmp_path / "no-shebang").write_text("echo hi\n")
    (tmp_path / "no-shebang").chmod(0o755)
    (tmp_path / "lost-shebang").write_text("#!/no/such/interpreter\n")
    (tmp_path / "lost-shebang").chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"command": "true", "cwd": "missing"}, ["working directory", "/missing", "no such file or directory"]),
        ({"command": "true", "cwd": "file"}, ["working directory", "/file", "not a directory"]),
        ({"argv": ["{}/file"]}, ["not executable", "/file"]),
        ({"argv": ["{}"]}, ["not executable"]),
        ({"argv": ["{}/missing"]}, ["no such program", "/missing"]),
        ({"argv": ["no-such-program-anywhere"]}, ["no such program", "no-such-program-anywhere"]),
        ({"argv": ["a\nb"]}, ["no such program", r"a\nb"]),
        ({"argv": ["./no-shebang"]}, ["./no-shebang", "exec format error"]),
        ({"argv": ["./lost-shebang"]}, ["./lost-shebang", "interpreter"]),
        ({"argv": ["x" * 5000]}, ["file name too long"]),
    ],
)
def test_what_cannot_be_started_fails_with_a_clear_error(
    scene: Scene, place: Path, fields: dict[str, object], words: list[str]
) -> None:
    given = {name: value for name, value in fields.items() if name == "command"}
    if isinstance(argv := fields.get("argv"), list):
        given["argv"] = [word.format(place) for word in argv]
    given["cwd"] = str(place / str(fields.get("cwd", "")))
    job_id = scene.enqueue_all([{"max_retries": 2, "backoff_base": 3600, **given}])[0]
    scene.worker()
    job = scene.wait_for(job_id, "failed")
    for word in ["could not start", *words]:
        assert word in job["error"]
    assert "\n" not in job["error"]
    assert len(job["error"]) < 1000
    assert (job["attempts"], job["runs"], job["exit_code"], job["signal"]) == (1, 1, None, None)
    run = scene.history(job_id)[0]
    assert (run["outcome"], run["pid"]) == ("unstartable", None)
    assert job["error"] in scene.queuectl("logs", job_id, check=0).lines[-1]


def test_a_command_that_is_too_long_for_the_system_fails_with_a_clear_error(scene: Scene) -> None:
    # Each word is within our limits; the kernel's limit for a variable counts its name, too.
    spec = {"command": "true", "max_retries": 1, "env": {"LONG": "x" * 131_072}}
    job_id = scene.queuectl("enqueue", "--file", "-", input=json.dumps(spec), check=0).out.strip()
    scene.drain()
    job = scene.job(job_id)
    assert job["state"] == "dead"
    assert "too long" in job["error"]


def test_no_room_for_another_process_is_a_failure_and_not_the_end_of_the_worker(scene: Scene) -> None:
    # Two that stay: they are made side by side, and either may be the first.
    ids = scene.enqueue_all([{"command": "exec sleep 1000", "max_retries": 1}] * 2)
    with no_more_than(4) as within:  # the worker with two threads, its supervisor, and a job
        worker = scene.worker("--count", "2", through=within)
        wait_until(lambda: "dead" in {scene.state(job_id) for job_id in ids}, what="one of them to be dead")
        dead, other = sorted(ids, key=lambda job_id: scene.state(job_id) != "dead")
        assert "no room for another process" in scene.job(dead)["error"]
        assert worker.process.poll() is None
        scene.queuectl("cancel", other, check=0)
        assert scene.state(other) == "cancelled"
        scene.wait_for(scene.enqueue("true"), "completed")
        worker.end()


def test_no_room_for_the_supervisor_ends_the_worker_and_costs_no_job(scene: Scene) -> None:
    job_id = scene.enqueue("true", max_retries=1)
    with no_more_than(1) as within:
        worker = scene.worker(ready=False, through=within)
        assert worker.wait() == 1
    assert "the process that keeps jobs" in worker.output
    assert "no room" in worker.output or "temporarily unavailable" in worker.output
    assert scene.state(job_id) == "pending"


def test_a_worker_without_room_for_a_second_thread_works_alone(scene: Scene) -> None:
    job_id = scene.enqueue("true", max_retries=1)
    with no_more_than(2) as within:  # the worker and its supervisor
        worker = scene.worker(through=within)
        wait_until(lambda: scene.state(job_id) == "dead", what="the job to find no room for its process")
        assert worker.process.poll() is None
        worker.end()


_NUMBERS = itertools.count()


@contextlib.contextmanager
def no_more_than(count: int) -> Iterator[list[str]]:
    """What to put before a command so that it, its threads and its children are so many at most.

    A control group, because a limit of the user's does not bind root.
    """
    group = PIDS / f"queuectl-test-{os.getpid()}-{next(_NUMBERS)}"  # a failed test may have left one
    try:
        group.mkdir()
        (group / "pids.max").write_text(str(count))
    except OSError as exc:
        require("a writable pids control group", False, str(exc))
    yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "-"]
    group.rmdir()


@pytest.mark.parametrize("command", ["-h", "--help me", "+x", "- echo"])
def test_a_command_that_begins_like_an_option_is_still_a_command(scene: Scene, command: str) -> None:
    job_id = scene.enqueue(command, max_retries=1)
    scene.drain()
    job = scene.job(job_id)
    assert (job["exit_code"], job["error"]) == (127, "exit code 127 (command not found)")


def test_an_argv_reaches_its_program_word_for_word(scene: Scene) -> None:
    words = ["a b", "", "$HOME", "*", "-n", "żółw", "it's", "x" * 100_000, "new\nline"]
    script = "import json, sys; print(json.dumps(sys.argv[1:]))"
    job_id = scene.enqueue(None, argv=[sys.executable, "-c", script, *words])
    scene.drain()
    assert scene.queuectl("logs", job_id, "--no-markers", check=0).json == words


def test_the_longest_command_there_may_be_is_run(scene: Scene) -> None:
    command = "true " + "x" * (131_071 - 5)
    job_id = scene.queuectl("enqueue", "--file", "-", input=command, check=0).out.strip()
    scene.drain()
    assert scene.state(job_id) == "completed"


def test_a_directory_that_is_removed_before_the_run_is_no_trouble_for_the_others(scene: Scene, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    ids = scene.enqueue_all([{"command": "true", "cwd": str(gone), "max_retries": 1}, {"command": "true"}])
    shutil.rmtree(gone)
    scene.drain()
    assert [scene.state(job_id) for job_id in ids] == ["dead", "completed"]
