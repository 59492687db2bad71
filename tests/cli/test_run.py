from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.program import Program, WorkerProcess
from tests.wait import wait_until

StartWorker = Callable[..., WorkerProcess]


@pytest.fixture
def worker(start_worker: StartWorker) -> WorkerProcess:
    return start_worker("--count", "2")


def test_run_prints_the_output_and_exits_with_the_code_of_the_job(queuectl: Program, worker: WorkerProcess) -> None:
    done = queuectl("run", "--max-retries", "1", r"printf 'a\377\000b'; echo err >&2; exit 9", check=9)
    assert done.raw == b"a\xff\x00berr\n"
    assert done.err == ""


def test_run_follows_every_run_of_the_job(queuectl: Program, worker: WorkerProcess) -> None:
    script = 'echo "$QUEUECTL_RUN"; [ "$QUEUECTL_RUN" = 2 ]'
    assert queuectl("run", "--backoff-base", "1", script, check=0).out == "1\n2\n"


def test_run_takes_the_options_and_arguments_of_enqueue(queuectl: Program, worker: WorkerProcess) -> None:
    assert queuectl("run", "--queue", "mail", "--", "printf", "%s|", "a b", "-x", check=0).out == "a b|-x|"
    assert queuectl("run", '{"command": "echo $X", "env": {"X": "json"}}', "--env", "X=flag", check=0).out == "flag\n"
    assert queuectl("run", "--command", "{ echo braces; }", check=0).out == "braces\n"
    assert queuectl("show", "last", "--json", check=0).json["runs"] == 1


def test_run_takes_the_job_of_a_file(queuectl: Program, worker: WorkerProcess, tmp_path: Path) -> None:
    file = tmp_path / "job.json"
    file.write_text('{\n  "command": "echo $X; exit 3",\n  "env": {"X": "file"}\n}\n')
    assert queuectl("run", "--file", file, "--retries", "1", check=3).out == "file\n"
    assert queuectl("run", "--file", "-", input="\necho line\n", check=0).out == "line\n"
    assert queuectl("run", "-", "--format", "lines", input="{ echo braces; }\n", check=0).out == "braces\n"


@pytest.mark.parametrize(
    "args, printed",
    [
        ([], "nothing to run"),
        (['[{"command": "true"}, {"command": "true"}]'], "run takes one job"),
        (["[]"], "run takes one job"),
        (["--file", "-"], "run takes one job"),
        (["--file", "-", "true"], "jobs from arguments and from a file at once"),
        (["--format", "lines", "true"], "--format requires --file"),
        (["--priority", "x", "true"], "priority"),
        (["true", "--nope"], "no such option"),
        (["  "], "blank"),
    ],
)
def test_invalid_arguments_are_refused(queuectl: Program, args: list[str], printed: str) -> None:
    done = queuectl("run", *args, check=2)
    assert done.out == ""
    assert printed in done.err
    assert not queuectl.home.exists()


def test_ctrl_c_leaves_the_job_running_and_prints_how_to_follow_it(
    queuectl: Program, worker: WorkerProcess, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    script = f"echo on; until [ -e {go} ]; do sleep 0.02; done; echo off"
    with queuectl.start("run", "--id", "j", script, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.readline() == b"on\n"
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=20) == 130
        assert running.stderr.read() == b"j keeps running; to follow it: queuectl logs -f j\n"
    assert queuectl("show", "j", "--json", check=0).json["state"] == "processing"
    go.touch()
    assert queuectl("logs", "-f", "j", "--no-markers", check=0).out == "on\noff\n"


def test_run_with_json_prints_all_fields_of_the_job(queuectl: Program, worker: WorkerProcess) -> None:
    shown = queuectl("run", "--json", "--max-retries", "1", "echo out; exit 2", check=2).json
    assert (shown["state"], shown["exit_code"], shown["output"]) == ("dead", 2, "out\n")
    assert len(shown["history"]) == 1


def test_ctrl_c_with_json_names_the_running_job(queuectl: Program, worker: WorkerProcess) -> None:
    with queuectl.start("run", "--json", "sleep 30", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        wait_until(lambda: queuectl("status", "--json").json["states"]["processing"] == 1, what="the job to run")
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=20)
    (job_id,) = queuectl("list", "--quiet", check=0).lines
    error = json.loads(err)["error"]
    assert (running.returncode, out, error["code"]) == (130, b"", "interrupted")
    assert error["message"] == f"{job_id} keeps running"
    assert error["hint"].endswith(f"queuectl logs -f {job_id}")
    queuectl("cancel", job_id, check=0)


def test_run_ends_when_the_job_is_cancelled(queuectl: Program, worker: WorkerProcess) -> None:
    with queuectl.start("run", "--id", "j", "sleep 30", stdout=subprocess.DEVNULL) as running:
        wait_until(lambda: queuectl("show", "j", "--json").code == 0)
        queuectl("cancel", "j", check=0)
        assert running.wait(timeout=20) != 0
