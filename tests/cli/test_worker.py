"""queuectl worker: stop and list, with workers that do not respond."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.processes import everyone
from tests.program import Program, WorkerProcess
from tests.wait import wait_until

StartWorker = Callable[..., WorkerProcess]


@pytest.fixture
def stopped(queuectl: Program, start_worker: StartWorker) -> WorkerProcess:
    """A worker with a running job, stopped by SIGSTOP."""
    queuectl("enqueue", "--id", "j", "sleep 60", check=0)
    worker = start_worker("--name", "w1")
    wait_until(lambda: queuectl("show", "j", "--json").json["state"] == "processing", what="the job to run")
    # After the start is recorded, the worker holds no lock of the database when it is stopped.
    wait_until(lambda: queuectl("show", "j", "--json").json["history"][0]["pid"], what="its start to be written")
    worker.send(signal.SIGSTOP)
    wait_until(lambda: Path(f"/proc/{worker.pid}/stat").read_text().split(") ")[1][0] == "T", what="it to be stopped")
    return worker


def test_a_stopped_worker_is_reported_once_and_waited_for(queuectl: Program, stopped: WorkerProcess) -> None:
    with queuectl.start("worker", "stop", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as stopping:
        assert stopping.stdout is not None
        assert stopping.stderr is not None
        line = stopping.stderr.readline().decode()
        assert line.startswith(f"worker w1 does not respond: its process {stopped.pid} is suspended; ")
        assert f"kill -CONT {stopped.pid}" in line
        assert stopping.poll() is None
        stopped.send(signal.SIGCONT)
        queuectl("cancel", "j", check=0)
        assert stopping.wait(20) == 0
        assert (stopping.stdout.read(), stopping.stderr.read()) == (b"stopped w1\n", b"")
    assert stopped.wait() == 0


@pytest.mark.parametrize("arguments", [("--now",), ("--timeout", "1s")])
def test_a_stopped_worker_is_continued_to_exit_now(
    queuectl: Program, stopped: WorkerProcess, arguments: tuple[str, ...]
) -> None:
    done = queuectl("worker", "stop", *arguments, check=0)
    assert done.out == "stopped w1\n"
    assert done.err.count("\n") == 1
    assert "does not respond" in done.err
    assert stopped.wait() == 0
    job = queuectl("show", "j", "--json", check=0).json
    assert (job["state"], job["attempts"], job["crashes"]) == ("pending", 0, 0)


def test_a_worker_stopped_past_its_lease_is_lost(queuectl: Program, stopped: WorkerProcess) -> None:
    assert [worker["state"] for worker in queuectl("worker", "list", "--json", check=0).json] == ["running"]
    for name, value in (("heartbeat", "100ms"), ("lease", "200ms")):
        queuectl("config", "set", name, value, check=0)
    wait_until(
        lambda: [worker["state"] for worker in queuectl("worker", "list", "--json").json] == ["lost"],
        what="its lease to pass",
    )
    assert queuectl("status", "--json", check=0).json["workers"]["live"] == 0
    assert queuectl("metrics", "--prometheus", check=0).out.count("queuectl_workers 0\n") == 1


def test_a_worker_logs_an_argv_quoted_for_a_shell(queuectl: Program, start_worker: StartWorker) -> None:
    queuectl("enqueue", "--id", "j", "--", "printf", "%s", "a b", "it's", "", check=0)
    worker = start_worker("--drain")
    assert worker.wait() == 0
    assert """started   j  printf %s 'a b' 'it'"'"'s' ''\n""" in worker.output


@pytest.mark.parametrize(
    "arguments",
    [
        ("--count", "0"),
        ("--queue", "a b"),
        ("--queue", "q=0"),
        ("--idle-timeout", "soon"),
        ("--name", "-"),
        ("--nonsense",),
    ],
    ids=" ".join,
)
def test_a_refused_worker_leaves_no_process_and_no_files(queuectl: Program, arguments: tuple[str, ...]) -> None:
    queuectl("worker", "start", "--drain", *arguments, check=2)
    assert [found for found in everyone() if str(queuectl.home) in found.words] == []
    assert not queuectl.home.exists()
