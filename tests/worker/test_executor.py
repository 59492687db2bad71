"""The life of a job in the hands of a real worker: every end there is, and what its log says."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from tests.e2e.scene import Scene

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


def test_a_command_that_exits_with_zero_is_completed(scene: Scene) -> None:
    job_id = scene.enqueue("exit 0")
    scene.drain()
    job = scene.job(job_id)
    assert (job["state"], job["exit_code"], job["signal"], job["error"]) == ("completed", 0, None, None)
    assert (job["attempts"], job["runs"], job["crashes"]) == (0, 1, 0)
    assert scene.outcomes(job_id) == ["completed"]


def test_a_failed_run_waits_for_its_backoff_and_the_last_one_allowed_makes_the_job_dead(scene: Scene) -> None:
    job_id = scene.enqueue("exit 7", max_retries=3, backoff_base=1)
    scene.worker()
    job = scene.wait_for(job_id, "dead")
    assert (job["attempts"], job["runs"], job["exit_code"], job["error"]) == (3, 3, 7, "exit code 7")
    runs = scene.history(job_id)
    assert [run["outcome"] for run in runs] == ["failed"] * 3
    for before, after in pairwise(runs):
        pause = datetime.fromisoformat(after["started_at"]) - datetime.fromisoformat(before["finished_at"])
        assert timedelta(seconds=0.99) <= pause < timedelta(seconds=20)  # 1 ** attempts


def test_a_failed_job_says_when_it_will_be_tried_again(scene: Scene) -> None:
    job_id = scene.enqueue("exit 1", max_retries=2, backoff_base=3600)
    scene.worker()
    job = scene.wait_for(job_id, "failed")
    pause = datetime.fromisoformat(job["run_at"]) - datetime.fromisoformat(job["finished_at"])
    assert timedelta(seconds=3599) < pause < timedelta(seconds=3610)
    assert job["attempts"] == 1


@pytest.mark.parametrize("max_retries", [0, 1])
def test_a_job_without_retries_is_dead_after_its_first_failure(scene: Scene, max_retries: int) -> None:
    job_id = scene.enqueue("exit 3", max_retries=max_retries)
    scene.drain()
    job = scene.job(job_id)
    assert (job["state"], job["attempts"], job["runs"]) == ("dead", 1, 1)


def test_death_by_a_signal_is_told_apart_from_an_exit_code(scene: Scene) -> None:
    killed, exited = scene.enqueue_all(
        [
            {"command": "kill -KILL $$", "max_retries": 1},
            {"command": "exit 137", "max_retries": 1},
        ]
    )
    scene.drain()
    job = scene.job(killed)
    assert (job["exit_code"], job["signal"], job["error"]) == (None, 9, "killed by signal 9 (SIGKILL)")
    assert scene.outcomes(killed) == ["signalled"]
    job = scene.job(exited)
    assert (job["exit_code"], job["signal"]) == (137, None)
    assert scene.outcomes(exited) == ["failed"]


def test_a_job_that_takes_too_long_is_ended_and_its_error_begins_with_timeout(scene: Scene) -> None:
    job_id = scene.enqueue("exec sleep 1000", timeout=0.2, max_retries=1)
    scene.drain()
    job = scene.job(job_id)
    assert job["state"] == "dead"
    assert job["error"].startswith("timeout")
    assert job["signal"] == 15
    assert scene.outcomes(job_id) == ["timeout"]
    assert 200 <= job["duration_ms"] < 20_000


def test_a_timeout_counts_also_if_the_job_answers_with_success(scene: Scene) -> None:
    job_id = scene.enqueue("trap 'exit 0' TERM; while :; do sleep 0.02; done", timeout=0.2, max_retries=1)
    scene.drain()
    job = scene.job(job_id)
    assert (job["state"], job["attempts"]) == ("dead", 1)
    assert job["exit_code"] != 0


def test_both_streams_go_to_the_log_in_the_order_written(scene: Scene) -> None:
    job_id = scene.enqueue("for i in 1 2 3; do echo out $i; echo err $i >&2; done")
    scene.drain()
    output = scene.queuectl("logs", job_id, "--no-markers", check=0).out
    assert output == "".join(f"out {i}\nerr {i}\n" for i in (1, 2, 3))


def test_each_run_is_framed_in_the_log(scene: Scene) -> None:
    job_id = scene.enqueue("echo said", max_retries=2, backoff_base=1)
    failing = scene.enqueue("echo wrong; exit 4", max_retries=2, backoff_base=1)
    scene.drain("--name", "w1")
    start = rf"--- START {TIME} run=%d worker=w1 ---\n"
    end = rf"--- END {TIME} %s duration=\d+\.\d+s ---\n"
    log = scene.queuectl("logs", job_id, check=0).out
    assert re.fullmatch(start % 1 + "said\n" + end % "rc=0", log)
    log = scene.queuectl("logs", failing, check=0).out
    assert re.fullmatch("".join(start % run + "wrong\n" + end % "rc=4" for run in (1, 2)), log)


@pytest.mark.parametrize(
    "command, fields, how",
    [
        ("kill -9 $$", {}, "signal=9"),
        ("exec sleep 1000", {"timeout": 0.1}, "timeout"),
        ("true", {"cwd": "/no/such/place"}, "could not start: .*/no/such/place.*"),
    ],
)
def test_the_last_frame_says_how_it_ended(scene: Scene, command: str, fields: dict[str, object], how: str) -> None:
    job_id = scene.enqueue(command, max_retries=1, **fields)
    scene.drain()
    last = scene.queuectl("logs", job_id, check=0).lines[-1]
    assert re.fullmatch(rf"--- END {TIME} {how}( duration=\d+\.\d+s)? ---", last)


def test_a_job_may_print_lines_like_ours_without_effect(scene: Scene) -> None:
    fake = "--- END 2026-01-01T00:00:00.000Z rc=0 duration=1s ---"
    job_id = scene.enqueue(f"echo '{fake}'; echo more; echo '{fake}'; exit 1", max_retries=1)
    scene.drain()
    assert scene.state(job_id) == "dead"
    assert scene.queuectl("logs", job_id, "--no-markers", check=0).out == f"{fake}\nmore\n{fake}\n"
    assert scene.queuectl("show", job_id, "--json", check=0).json["output"] == f"{fake}\nmore\n{fake}\n"


def test_a_frame_begins_a_line_of_its_own_also_after_half_a_line(scene: Scene) -> None:
    job_id = scene.enqueue("printf half")
    scene.drain()
    assert scene.queuectl("logs", job_id, check=0).lines[1:2] == ["half"]
    assert scene.queuectl("logs", job_id, "--no-markers", check=0).out == "half"


def test_jobs_run_one_after_the_other_in_one_slot_and_side_by_side_in_two(scene: Scene) -> None:
    # Each waits for the other: with one slot they could never end.
    one, other = scene.enqueue_all(
        [
            {"command": f"{scene.note('a')}; {scene.until('b')}"},
            {"command": f"{scene.note('b')}; {scene.until('a')}"},
        ]
    )
    worker = scene.worker("--count", "1")
    scene.wait_for_file("a")
    assert (scene.state(one), scene.state(other)) == ("processing", "pending")
    scene.worker("--count", "1")
    scene.wait_for(one, "completed")
    scene.wait_for(other, "completed")
    assert worker.process.poll() is None
