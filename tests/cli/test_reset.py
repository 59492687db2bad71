from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from tests.program import Program, WorkerProcess
from tests.terminal import Terminal

StartWorker = Callable[..., WorkerProcess]


def test_reset_removes_jobs_keeps_settings_and_prints_the_backup(
    queuectl: Program, start_worker: StartWorker, home: Path
) -> None:
    queuectl("config", "set", "max-retries", "7", check=0)
    queuectl("enqueue", "--id", "j", "echo hi", check=0)
    assert start_worker("--drain").wait() == 0
    assert (home / "logs" / "j.log").exists()
    assert "--yes" in queuectl("reset", check=2).err
    done = queuectl("reset", "--yes", "--json", check=0).json
    assert done["jobs"] == 1
    with sqlite3.connect(f"file:{done['backup']}?mode=ro", uri=True) as copy:
        assert copy.execute("select id from jobs").fetchall() == [("j",)]
    copy.close()
    assert queuectl("list", "--json", check=0).json == []
    assert queuectl("config", "get", "max-retries", check=0).out == "7\n"
    assert list((home / "logs").iterdir()) == []
    queuectl("enqueue", "--id", "j", "echo again", check=0)


def test_reset_prints_the_path_of_the_backup(queuectl: Program, home: Path) -> None:
    queuectl("enqueue", "true", check=0)
    (line,) = queuectl("reset", "--yes", check=0).lines
    assert line.startswith(f"removed 1 job; backup: {home}/backups/")
    assert Path(line.split()[-1]).exists()


def test_reset_keeps_schedules_alerts_and_rules(queuectl: Program) -> None:
    queuectl("cron", "add", "nightly", "@daily", "true", check=0)
    queuectl("alert", "add", "deaths", "--dead", "1", "--command", "true", check=0)
    queuectl("queue", "set", "mail", "--concurrency", "2", check=0)
    queuectl("enqueue", "true", check=0)
    reported = "kept: the settings, 1 schedule, 1 alert, 1 queue with rules"
    assert queuectl("reset", "--yes", check=0).lines[1:] == [reported]
    assert [one["name"] for one in queuectl("alert", "list", "--json", check=0).json] == ["deaths"]
    assert queuectl("reset", "--yes", "--json", check=0).json == {
        "jobs": 0, "backup": None, "schedules": 1, "queues": 1, "alerts": 1,
    }  # fmt: skip
    assert [one["name"] for one in queuectl("cron", "list", "--json", check=0).json] == ["nightly"]
    assert queuectl("queue", "list", "--json", check=0).json[-1]["concurrency"] == 2


def test_reset_refuses_while_a_worker_is_alive(queuectl: Program, start_worker: StartWorker) -> None:
    start_worker("--name", "bee")
    queuectl("enqueue", "--delay", "1h", "true", check=0)
    done = queuectl("reset", "--yes", check=1)
    assert done.err == "error: cannot reset while workers run: bee\nhint: queuectl worker stop\n"
    assert queuectl("list", "--json", check=0).json != []


def test_reset_after_a_worker_was_killed(queuectl: Program, start_worker: StartWorker) -> None:
    worker = start_worker()
    queuectl("enqueue", "sleep 1000", check=0)
    worker.kill()
    assert queuectl("reset", "--yes", "--json", check=0).json["jobs"] == 1
    assert queuectl("worker", "list", "--json", check=0).json == []


def test_reset_creates_no_data_directory(queuectl: Program) -> None:
    assert queuectl("reset", "--yes", "--json", check=0).json == {
        "jobs": 0,
        "backup": None,
        "schedules": 0,
        "queues": 0,
        "alerts": 0,
    }
    assert not queuectl.home.exists()


def test_reset_asks_on_a_terminal(queuectl: Program, home: Path) -> None:
    queuectl("enqueue", "true", check=0)
    terminal = Terminal(home, "reset")
    terminal.wait_for("Remove 1 job with history and logs? [y/N]")
    terminal.type("\n")
    assert terminal.end() == 1
    assert len(queuectl("list", "--json", check=0).json) == 1
