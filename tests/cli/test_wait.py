from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.program import Program, WorkerProcess
from tests.terminal import Terminal, plain

StartWorker = Callable[..., WorkerProcess]


@pytest.fixture
def worker(start_worker: StartWorker) -> WorkerProcess:
    return start_worker("--count", "4")


@pytest.mark.parametrize(
    "command, code", [("true", 0), ("exit 3", 3), ("kill -9 $$", 137), ("exit 255", 255), ("cd /; ./nope", 127)]
)
def test_wait_exits_with_the_code_of_the_job(queuectl: Program, worker: WorkerProcess, command: str, code: int) -> None:
    queuectl("enqueue", "--id", "j", "--max-retries", "1", command, check=0)
    done = queuectl("wait", "j", check=code)
    assert (done.out, done.err) == ("", "")


def test_a_job_that_could_not_start_exits_with_1(queuectl: Program, worker: WorkerProcess) -> None:
    queuectl("enqueue", "--id", "j", "--max-retries", "1", "--cwd", "/nowhere", "true", check=0)
    queuectl("wait", "j", check=1)


def test_the_first_job_that_did_not_complete_decides_the_exit_status(queuectl: Program, worker: WorkerProcess) -> None:
    for job_id, command in (("a", "true"), ("b", "exit 4"), ("c", "exit 5")):
        queuectl("enqueue", "--id", job_id, "--max-retries", "1", command, check=0)
    queuectl("wait", "a", "c", "b", check=5)
    queuectl("wait", "b", "c", check=4)
    queuectl("wait", "a", "a", check=0)
    shown = queuectl("wait", "--json", "c", "a", check=5).json
    assert [(job["id"], job["state"]) for job in shown] == [("c", "dead"), ("a", "completed")]


def test_waiting_for_any_ends_with_the_first(queuectl: Program, worker: WorkerProcess) -> None:
    queuectl("enqueue", "--id", "slow", "sleep 30", check=0)
    queuectl("enqueue", "--id", "fast", "true", check=0)
    assert [job["id"] for job in queuectl("wait", "--any", "--json", "slow", "fast", check=0).json] == ["fast"]


def test_a_timeout_exits_124_and_the_job_keeps_running(queuectl: Program, worker: WorkerProcess) -> None:
    queuectl("enqueue", "--id", "j", "sleep 30", check=0)
    done = queuectl("wait", "--timeout", "200ms", "j", check=124)
    assert done.err.startswith("error: still not ended after 0.2 s: j\n")
    assert queuectl("wait", "--timeout", "0", "--json", "j", check=124).out == ""
    assert queuectl("show", "j", "--json", check=0).json["state"] == "processing"


def test_a_cancelled_job_ends_the_waiting(queuectl: Program) -> None:
    queuectl("enqueue", "--id", "j", "true", check=0)
    with queuectl.start("wait", "j") as waiting:
        queuectl("cancel", "j", check=0)
        assert waiting.wait(timeout=20) == 1


def test_existing_jobs_are_waited_for_and_unknown_ones_refused(queuectl: Program, worker: WorkerProcess) -> None:
    queuectl("enqueue", "--id", "j", "true", check=0)
    assert queuectl("wait", "j", "nope", check=1).err == "error: no job 'nope'\n"
    assert queuectl("wait", "nope", check=1).err.startswith("error: no job 'nope'\nhint: ")
    assert queuectl("wait", "nope", "nada", check=1).err == "error: no job 'nope'\nerror: no job 'nada'\n"
    done = queuectl("wait", "--json", "nope", "nada", check=1)
    assert done.out == ""
    assert done.err.count("\n") == 1


def test_with_json_an_error_is_the_only_output(queuectl: Program, worker: WorkerProcess) -> None:
    queuectl("enqueue", "--id", "j", "true", check=0)
    done = queuectl("wait", "--json", "j", "nope", check=1)
    assert done.out == ""
    assert json.loads(done.err)["error"]["code"] == "job-not-found"
    assert queuectl("show", "j", "--json", check=0).json["state"] == "completed"
    queuectl("enqueue", "--id", "slow", "sleep 30", check=0)
    done = queuectl("wait", "--json", "--timeout", "200ms", "slow", "nope", check=124)
    assert done.out == ""
    assert json.loads(done.err)["error"]["code"] == "wait-timeout"


@pytest.mark.parametrize("args", [[], ["j", "--timeout", "soon"], ["j", "--timeout", "-1"]])
def test_invalid_arguments_are_refused(queuectl: Program, args: list[str]) -> None:
    queuectl("wait", *args, check=2)
    assert not queuectl.home.exists()


def test_a_queue_without_a_worker_is_reported_once_on_stderr(queuectl: Program, start_worker: StartWorker) -> None:
    queuectl("enqueue", "--id", "j", "true", check=0)
    with queuectl.start("wait", "j", stderr=subprocess.PIPE) as waiting:
        assert waiting.stderr is not None
        line = waiting.stderr.readline()
        assert line == b"no live worker serves the queue 'default': queuectl worker start; still waiting\n"
        start_worker()
        assert waiting.wait(timeout=20) == 0
        assert waiting.stderr.read() == b""


def test_the_result_of_each_job_is_printed_on_a_terminal(queuectl: Program, worker: WorkerProcess, home: Path) -> None:
    queuectl("enqueue", "--id", "good", "true", check=0)
    queuectl("enqueue", "--id", "bad", "--max-retries", "1", "exit 3", check=0)
    terminal = Terminal(home, "wait", "good", "bad")
    assert terminal.end() == 3
    assert "good completed in " in plain(terminal.shown)
    assert "bad dead: exit code 3" in plain(terminal.shown)
