"""A worker or a command is stopped inside a transaction, and locks the database: the others kill it after the lease."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.locks import stop_in_transaction
from tests.program import Program, WorkerProcess
from tests.wait import wait_until

MANY = 60_000  # jobs in one transaction of several seconds


def configure(queuectl: Program, **settings: str) -> None:
    for name, value in settings.items():
        queuectl("config", "set", name, value, check=0)


@contextmanager
def stopped_enqueue(queuectl: Program, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    jobs = tmp_path / "jobs.jsonl"
    jobs.write_text("\n".join(json.dumps({"command": f"echo {number}"}) for number in range(MANY)))
    with queuectl.start("enqueue", "--file", jobs, "--quiet", stdout=subprocess.DEVNULL) as command:
        stop_in_transaction(command.pid, queuectl.home / "queue.db")
        try:
            yield command
        finally:
            command.kill()


def test_a_command_kills_an_enqueue_that_is_stopped_inside_its_transaction(queuectl: Program, tmp_path: Path) -> None:
    configure(queuectl, heartbeat="500ms", lease="2s")
    with stopped_enqueue(queuectl, tmp_path) as command:
        done = queuectl("enqueue", "--id", "after", "true", check=0)
        assert command.wait(20) == -signal.SIGKILL
    assert re.search(rf"killed process {command.pid} \(queuectl enqueue\): it was stopped for \d+ s", done.err)
    assert [job["id"] for job in queuectl("list", "--json", check=0).json] == ["after"]


def test_a_worker_kills_a_stopped_worker_and_adopts_its_jobs(
    queuectl: Program, start_worker: Callable[..., WorkerProcess], tmp_path: Path
) -> None:
    queuectl.forks = False  # a forked worker has the command line of the process that it was forked from
    configure(queuectl, heartbeat="500ms", lease="2s")
    ready = tmp_path / "ready"
    queuectl("enqueue", "--id", "long", "-q", "long", f"until test -e {ready}; do sleep 0.1; done", check=0)
    stopped = start_worker("--name", "stopped", "--count", "3")
    wait_until(lambda: queuectl("show", "long", "--json").json["state"] == "processing", what="the job to run")
    short = "\n".join(["true"] * 300)
    stop_in_transaction(
        stopped.pid,
        queuectl.home / "queue.db",
        make_busy=lambda: queuectl("enqueue", "--file", "-", "--format", "lines", "--quiet", input=short, check=0),
    )
    other = start_worker("--name", "other")
    assert stopped.process.wait(20) == -signal.SIGKILL
    assert f"killed process {stopped.pid} (queuectl worker)" in other.output
    ready.touch()
    wait_until(
        lambda: queuectl("show", "long", "--json").json["state"] == "completed", timeout=60, what="the job to complete"
    )
    assert queuectl("show", "long", "--json").json["runs"] == 1


def test_a_running_worker_logs_that_it_has_killed_a_stopped_process(
    queuectl: Program, start_worker: Callable[..., WorkerProcess], tmp_path: Path
) -> None:
    configure(queuectl, heartbeat="500ms", lease="2s")
    worker = start_worker("-q", "other")
    with stopped_enqueue(queuectl, tmp_path) as command:
        wait_until(
            lambda: f"unlocked  killed process {command.pid} (queuectl enqueue)" in worker.output,
            what="the worker to say so",
        )
        assert command.wait(20) == -signal.SIGKILL


def test_the_remedy_that_doctor_prints_for_a_stopped_process_works(queuectl: Program, tmp_path: Path) -> None:
    configure(queuectl, lease="1h", heartbeat="5s")
    with stopped_enqueue(queuectl, tmp_path) as command:

        def found() -> dict[str, str] | None:
            checks = {check["check"]: check for check in queuectl("doctor", "--json").json["checks"]}
            return next((one for one in checks["store"]["findings"] if one["code"] == "store-locked"), None)

        finding = wait_until(found, what="doctor to name the process")
        remedy = re.search(rf"kill -9 {command.pid}\b", finding["hint"])
        assert remedy is not None
        subprocess.run(["sh", "-c", remedy.group()], check=True)
        queuectl("enqueue", "true", check=0, timeout=20)


def test_doctor_does_not_recommend_a_command_that_would_wait_for_the_lock(
    queuectl: Program, start_worker: Callable[..., WorkerProcess]
) -> None:
    queuectl.forks = False
    configure(queuectl, heartbeat="100ms", lease="200ms")
    worker = start_worker("--name", "A", "--count", "2")
    short = "\n".join(["true"] * 300)
    stop_in_transaction(
        worker.pid,
        queuectl.home / "queue.db",
        make_busy=lambda: queuectl("enqueue", "--file", "-", "--format", "lines", "--quiet", input=short, check=0),
    )

    def hint() -> str | None:
        checks = {check["check"]: check for check in queuectl("doctor", "--json").json["checks"]}
        return next((one["hint"] for one in checks["workers"]["findings"] if one["code"] == "worker-stopped"), None)

    assert f"kill -9 {worker.pid}" in wait_until(hint, what="doctor to find the stopped worker")
    assert "worker stop" not in wait_until(hint, what="doctor to find the stopped worker")
