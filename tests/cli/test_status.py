from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.program import Program, WorkerProcess
from tests.terminal import Terminal, plain
from tests.wait import wait_until

StartWorker = Callable[..., WorkerProcess]
STATES = ["blocked", "pending", "processing", "failed", "completed", "dead", "cancelled"]


def test_the_status_of_nothing_is_complete(queuectl: Program) -> None:
    shown = queuectl("status", "--json", check=0).json
    assert shown == {
        "total": 0,
        "states": dict.fromkeys(STATES, 0),
        "workers": {"live": 0, "slots": 0, "busy": 0},
        "queues": [],
        "oldest_waiting_ms": None,
    }
    assert not queuectl.home.exists()


def test_workers_slots_and_queues_are_counted(queuectl: Program, start_worker: StartWorker) -> None:
    start_worker("--count", "3")
    for _ in range(2):
        queuectl("enqueue", "sleep 30", check=0)
    queuectl("enqueue", "--queue", "mail", "--delay", "1h", "true", check=0)
    wait_until(lambda: queuectl("status", "--json").json["states"]["processing"] == 2)
    lines = queuectl("status", check=0).lines
    assert lines[0] == "1 worker, 3 slots, 2 busy"
    counts = dict(line.split() for line in lines if len(line.split()) == 2)
    assert counts == {**dict.fromkeys(STATES, "0"), "processing": "2", "pending": "1", "total": "3"}
    assert ["mail", "1", "0"] in [line.split() for line in lines]


def test_a_worker_that_was_killed_is_not_counted(queuectl: Program, start_worker: StartWorker) -> None:
    worker = start_worker()
    worker.kill()
    assert queuectl("status", "--json", check=0).json["workers"]["live"] == 0
    lines = queuectl("status", check=0).lines
    assert lines[0] == "no workers: queuectl worker start"
    assert lines[1] == "1 worker lost, with jobs to rescue: queuectl worker list"


def test_a_database_that_is_not_the_default_is_named(queuectl: Program, tmp_path: Path) -> None:
    assert "store:" not in queuectl("status", check=0).out
    other = tmp_path / "other.db"
    assert f"database: {other}" in queuectl("--db", other, "status", check=0).lines
    assert "store" not in queuectl("--db", other, "status", "--json", check=0).json
    for arguments in (["config", "list"], ["worker", "list"]):
        terminal = Terminal(queuectl.home, "--db", str(other), *arguments, columns=200)
        assert terminal.end() == 0
        assert f"database: {other}" in plain(terminal.shown)


def test_queues_without_jobs_are_omitted(queuectl: Program) -> None:
    for queue in ("mail", "build", "default"):
        queuectl("enqueue", "--queue", queue, "true", check=0)
    assert "mail" in queuectl("status", check=0).out
    queuectl("reset", "--yes", check=0)
    assert "mail" not in queuectl("status", check=0).out


def test_a_queue_that_is_paused_is_shown_though_it_is_the_only_one(queuectl: Program) -> None:
    queuectl("enqueue", "--queue", "mail", "true", check=0)
    assert "mail" not in queuectl("status", check=0).out
    queuectl("queue", "pause", "mail", check=0)
    assert "mail (paused)" in queuectl("status", check=0).out


def test_the_oldest_waiting_job_is_one_that_is_due(queuectl: Program) -> None:
    queuectl("enqueue", "--delay", "1h", "true", check=0)
    assert queuectl("status", "--json", check=0).json["oldest_waiting_ms"] is None
    queuectl("enqueue", "true", check=0)
    assert 0 <= queuectl("status", "--json", check=0).json["oldest_waiting_ms"] < 60_000
    assert "oldest waiting job: " in queuectl("status", check=0).out


def test_watching_through_a_pipe_prints_a_line_of_json_for_each_change(queuectl: Program) -> None:
    watching = queuectl.start("status", "--watch", "--json", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert watching.stdout is not None
    assert json.loads(watching.stdout.readline())["total"] == 0
    queuectl("enqueue", "true", check=0)
    assert json.loads(watching.stdout.readline())["total"] == 1
    watching.send_signal(signal.SIGINT)
    out, err = watching.communicate(timeout=20)
    assert (out, err, watching.returncode) == (b"", b"", 130)


def test_watching_through_a_pipe_prints_a_block_for_each_change(queuectl: Program) -> None:
    watching = queuectl.start("status", "--watch", stdout=subprocess.PIPE)
    assert watching.stdout is not None

    def read_to_total() -> bytes:
        assert watching.stdout is not None
        for line in watching.stdout:
            if b"total" in line:
                return line.split()[-1]
        return b""

    assert read_to_total() == b"0"
    queuectl("enqueue", "true", check=0)
    assert read_to_total() == b"1"
    watching.send_signal(signal.SIGINT)
    watching.communicate(timeout=20)
    assert watching.returncode == 130


def test_watching_on_a_terminal_redraws_in_place_until_ctrl_c(queuectl: Program, home: Path) -> None:
    terminal = Terminal(home, "status", "--watch")
    terminal.wait_for("total")
    queuectl("enqueue", "true", check=0)
    wait_until(lambda: terminal.read() and "total            1" in plain(terminal.shown))
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == 130
    assert "\x1b[2J" not in terminal.shown  # the screen was never cleared, which would flicker
    assert "A\r" in terminal.shown
    assert terminal.shown.count("\x1b[?25h") == 1  # the cursor is visible again
    assert terminal.shown.rindex("\x1b[?25h") > terminal.shown.rindex("\x1b[?25l")
