"""Import of files of other tools, written after their documentation."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.program import Program

# A queue whose priorities grow with every enqueue.
AGEING = """
    CREATE TABLE jobs (
        id TEXT PRIMARY KEY,
        command TEXT NOT NULL,
        state TEXT NOT NULL,
        attempts INTEGER DEFAULT 0,
        max_retries INTEGER DEFAULT 3,
        timeout INTEGER DEFAULT 20,
        backoff_base INTEGER DEFAULT 2,
        priority INTEGER DEFAULT 5,
        waiting_time INTEGER DEFAULT 0,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        next_retry_at TEXT,
        error_message TEXT,
        output TEXT,
        locked_by TEXT,
        locked_at TEXT
    );
    CREATE INDEX idx_jobs_state ON jobs(state);
    CREATE TABLE config (key TEXT PRIMARY KEY, value TEXT);
    INSERT INTO config VALUES ('max_retries', '5'), ('backoff_base', '3'), ('color', 'green');
    INSERT INTO jobs (id, command, state, priority, waiting_time, created_at, updated_at)
    VALUES ('job2', 'echo two', 'pending', 8, 0, '2025-11-04T10:31:00.123456', '2025-11-04T10:31:00.123456'),
           ('job1', 'echo one', 'pending', 3, 5, '2025-11-04T10:30:00.123456', '2025-11-04T10:30:00.123456');
    INSERT INTO jobs VALUES
        ('busy', 'sleep 9', 'processing', 0, 3, 20, 2, 5, 0, '2025-11-04T10:32:00', '2025-11-04T10:33:00', NULL, NULL, NULL,
         'worker-1', '2025-11-04T10:33:00'),
        ('fine', 'echo hi', 'completed', 1, 3, 20, 2, 5, 0, '2025-11-04T10:20:00', '2025-11-04T10:21:00', NULL, NULL, 'hi',
         NULL, NULL),
        ('again', 'exit 1', 'failed', 2, 3, 20, 2, 5, 9, '2025-11-04T10:10:00', '2025-11-04T10:22:00',
         '2099-11-04T10:26:00', 'exit 1', '', NULL, NULL),
        ('gone', 'exit 2', 'dead', 3, 3, 0, 2, 5, 0, '2025-11-04T10:00:00', '2025-11-04T10:05:00', NULL, 'no luck', '',
         NULL, NULL);
"""
# One that delays by available_at.
DELAYED = """
    CREATE TABLE jobs (
        id TEXT PRIMARY KEY,
        command TEXT NOT NULL,
        state TEXT NOT NULL,
        attempts INTEGER NOT NULL,
        max_retries INTEGER NOT NULL,
        base_backoff REAL NOT NULL,
        priority INTEGER NOT NULL,
        timeout_seconds INTEGER,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        available_at TEXT NOT NULL,
        started_at TEXT,
        finished_at TEXT,
        stdout_log TEXT,
        mood TEXT
    );
    CREATE TABLE workers (id TEXT PRIMARY KEY, heartbeat TEXT);
    INSERT INTO jobs VALUES
        ('later', 'true', 'pending', 1, 3, 2.5, 7, NULL, '2025-11-04T10:30:00Z', '2025-11-04T10:30:00Z',
         '2099-01-01T00:00:00Z', NULL, NULL, 'logs/job_later.log', 'calm'),
        ('fine', 'true', 'completed', 0, 3, 2.0, 0, 30, '2025-11-04T10:30:00Z', '2025-11-04T10:31:02Z',
         '2025-11-04T10:30:00Z', '2025-11-04T10:31:00Z', '2025-11-04T10:31:02Z', 'logs/job_fine.log', NULL),
        ('gone', 'false', 'dead', 3, 3, 2.0, 0, NULL, '2025-11-04T10:30:00Z', '2025-11-04T10:31:00Z',
         '2025-11-04T10:30:00Z', '2025-11-04T10:30:59Z', NULL, 'logs/job_gone.log', NULL);
"""
# One whose first run is free.
FREE = """
    CREATE TABLE jobs (
        id TEXT PRIMARY KEY,
        command TEXT NOT NULL,
        state TEXT NOT NULL DEFAULT 'pending',
        attempts INTEGER NOT NULL DEFAULT 0,
        max_retries INTEGER NOT NULL DEFAULT 3,
        priority INTEGER DEFAULT 0,
        next_run_at TEXT,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        locked_by TEXT,
        locked_at TEXT,
        started_at TEXT,
        finished_at TEXT,
        duration_ms INTEGER
    );
    CREATE TABLE config (key TEXT PRIMARY KEY, value TEXT);
    CREATE TABLE meta (k TEXT PRIMARY KEY, v TEXT);
    INSERT INTO config VALUES ('backoff_base', '1'), ('default_max_retries', '4');
    INSERT INTO jobs VALUES
        ('fails', 'false', 'pending', 1, 1, NULL, NULL, '2025-11-04T10:30:00.000Z', '2025-11-04T10:30:01.000Z', NULL, NULL,
         NULL, NULL, NULL),
        ('fine', 'true', 'completed', 0, 3, 2, NULL, '2025-11-04T10:30:00.000Z', '2025-11-04T10:30:05.500Z', '4711',
         '2025-11-04T10:30:04.000Z', '2025-11-04T10:30:04.000Z', '2025-11-04T10:30:05.500Z', 1500.4),
        ('busy', 'true', 'processing', 0, 3, 0, NULL, '2025-11-04T10:30:02.000Z', '2025-11-04T10:30:07.000Z', '4712',
         '2025-11-04T10:30:07.000Z', '2025-11-04T10:30:07.000Z', NULL, NULL);
"""
RECORD = {
    "id": "job-1",
    "command": "echo hi",
    "state": "pending",
    "attempts": 0,
    "max_retries": 3,
    "created_at": "2025-11-13T10:30:00Z",
    "updated_at": "2025-11-13T10:30:00Z",
}


def make(path: Path, script: str, *, journal: str = "wal") -> Path:
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"pragma journal_mode = {journal}")
        db.executescript(script)
    return path


def jobs(queuectl: Program) -> dict[str, dict[str, Any]]:
    return {job["id"]: job for job in queuectl("export", check=0).json}


def facts(job: dict[str, Any], *names: str) -> list[Any]:
    return [job[name] for name in names]


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_a_queue_with_waiting_times_is_taken_over(queuectl: Program, tmp_path: Path, journal: str) -> None:
    path = make(tmp_path / "queuectl.db", AGEING, journal=journal)
    before = sorted(entry.name for entry in tmp_path.iterdir())
    answer = queuectl("import", path, "--json", check=0).json
    assert answer == {
        "imported": 6,
        "skipped": 0,
        "given_back": 1,
        "settings": {"backoff-base": "3", "max-retries": "5"},
        "ignored": ["setting color"],
        "queues": [],
        "schedules": [],
        "alerts": [],
        "batches": [],
        "dry_run": False,
    }
    assert sorted(entry.name for entry in tmp_path.iterdir() if entry.name != "home") == before
    found = jobs(queuectl)
    assert list(found) == ["gone", "again", "fine", "job1", "job2", "busy"]
    assert facts(found["job1"], "state", "priority", "timeout", "backoff_base") == ["pending", 3, 20, 2.0]
    assert found["job1"]["created_at"] == "2025-11-04T10:30:00.123Z"
    assert facts(found["busy"], "state", "attempts", "runs", "worker") == ["pending", 0, 1, "worker-1"]
    assert facts(found["fine"], "state", "attempts", "runs", "exit_code", "error") == ["completed", 1, 2, 0, None]
    assert facts(found["again"], "state", "attempts", "error") == ["failed", 2, "exit 1"]
    assert found["again"]["run_at"] == "2099-11-04T10:26:00.000Z"
    assert facts(found["gone"], "state", "attempts", "error", "timeout") == ["dead", 3, "no luck", None]
    assert found["gone"]["finished_at"] == "2025-11-04T10:05:00.000Z"
    assert queuectl("config", "get", "max-retries", check=0).out == "5\n"
    assert queuectl("import", path, "--json", check=0).json["skipped"] == 6
    assert queuectl("show", "gone", check=0).out


def test_a_queue_with_available_times_is_taken_over(queuectl: Program, tmp_path: Path) -> None:
    done = queuectl("import", make(tmp_path / "queue.db", DELAYED), check=0)
    assert done.lines == ["imported 3 jobs", "ignored, without an equivalent here: column mood"]
    found = jobs(queuectl)
    assert facts(found["later"], "state", "attempts", "priority", "backoff_base") == ["pending", 1, 7, 2.5]
    assert facts(found["later"], "run_at", "timeout") == ["2099-01-01T00:00:00.000Z", None]
    assert facts(found["fine"], "started_at", "finished_at", "timeout") == [
        "2025-11-04T10:31:00.000Z",
        "2025-11-04T10:31:02.000Z",
        30,
    ]
    assert facts(found["gone"], "state", "error", "finished_at") == ["dead", "failed", "2025-11-04T10:31:00.000Z"]


def test_a_queue_whose_first_run_is_free_keeps_that(queuectl: Program, tmp_path: Path) -> None:
    path = make(tmp_path / "queue.db", FREE)
    answer = queuectl("import", path, "--json", check=0).json
    assert answer["settings"] == {"backoff-base": "1", "max-retries": "4"}
    assert (answer["imported"], answer["given_back"]) == (3, 1)
    found = jobs(queuectl)
    assert facts(found["fine"], "state", "duration_ms", "worker") == ["completed", 1500, "4711"]
    assert found["fails"]["backoff_base"] == 1.0
    queuectl("worker", "start", "--drain", check=0)
    ended = jobs(queuectl)
    # It had failed once; with max_retries 1 it may fail twice.
    assert facts(ended["fails"], "state", "attempts", "max_retries") == ["dead", 2, 1]
    assert ended["busy"]["state"] == "completed"


def test_a_queue_that_is_being_written_is_read_as_it_is(queuectl: Program, tmp_path: Path) -> None:
    path = make(tmp_path / "queue.db", FREE)
    with closing(sqlite3.connect(path)) as db:
        db.execute("update jobs set state = 'completed' where id = 'busy'")
        db.commit()
        assert (tmp_path / "queue.db-wal").stat().st_size > 0
        link = tmp_path / "a link?"
        link.symlink_to(path)
        assert queuectl("import", link, "--json", check=0).json["given_back"] == 0


@pytest.mark.parametrize("indent", [None, 2])
def test_jobs_and_dead_letters_in_json_files_are_taken_over(
    queuectl: Program, tmp_path: Path, indent: int | None
) -> None:
    states = {"job-1": ("pending", 0), "job-2": ("processing", 0), "job-3": ("completed", 1), "job-4": ("failed", 2)}
    alive = [{**RECORD, "id": name, "state": state, "attempts": tries} for name, (state, tries) in states.items()]
    dead = [{**RECORD, "id": "job-5", "command": "exit 1", "state": "dead", "attempts": 3}]
    for name, records in (("jobs.json", alive), ("dlq.json", dead)):
        (tmp_path / name).write_text(json.dumps(records, indent=indent))
        answer = queuectl("import", tmp_path / name, "--json", check=0).json
        assert answer["imported"] == len(records)
    found = jobs(queuectl)
    assert [(job["state"], job["attempts"], job["runs"]) for job in found.values()] == [
        ("pending", 0, 0),
        ("pending", 0, 1),
        ("completed", 1, 2),
        ("failed", 2, 2),
        ("dead", 3, 3),
    ]
    assert found["job-1"]["created_at"] == "2025-11-13T10:30:00.000Z"
    queuectl("dlq", "retry", "job-5", check=0)
    queuectl("config", "set", "retain-completed", "forever", check=0)  # older than the retention
    queuectl("config", "set", "backoff-max", "100ms", check=0)
    queuectl("worker", "start", "--drain", "--count", "2", check=0)
    assert queuectl("status", "--json", check=0).json["states"]["completed"] == 4


@pytest.mark.parametrize("indent", [None, 2])
def test_settings_in_a_json_file_are_taken_over(queuectl: Program, tmp_path: Path, indent: int | None) -> None:
    path = tmp_path / "config.json"
    path.write_text(
        json.dumps({"max_retries": 5, "backoff_base": 2, "worker_count": 4, "theme": "dark"}, indent=indent)
    )
    assert queuectl("import", path, check=0).lines == [
        "imported 0 jobs",
        "max-retries = 5",
        "backoff-base = 2",
        "worker-count = 4",
        "ignored, without an equivalent here: setting theme",
    ]
    assert queuectl("config", "get", "worker-count", check=0).out == "4\n"


def test_an_invalid_setting_is_refused(queuectl: Program, home: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"max_retries": -1}')
    done = queuectl("import", tmp_path / "config.json", check=2)
    assert done.err.startswith("error: max-retries: expected an integer from 0 to 1000000, got '-1'")
    (tmp_path / "config.json").write_text('{"max_retries": [1]}')
    assert "max_retries: expected a number" in queuectl("import", tmp_path / "config.json", check=2).err
    assert not home.exists()


@pytest.mark.parametrize(
    "script, reported",
    [
        (
            "create table jobs (id text, body text)",
            "the layout of its table jobs is unknown (columns id, body)",
        ),
        ("create table tasks (id text)", "it has no table jobs"),
    ],
)
def test_an_unknown_layout_is_refused(
    queuectl: Program, home: Path, tmp_path: Path, script: str, reported: str
) -> None:
    path = make(tmp_path / "other.db", script)
    done = queuectl("import", path, check=1)
    assert done.err.splitlines()[0] == f"error: cannot import {path}: {reported}"
    assert not home.exists()


def test_an_invalid_row_is_reported_with_its_number_and_field(queuectl: Program, home: Path, tmp_path: Path) -> None:
    path = make(tmp_path / "queue.db", FREE + "update jobs set max_retries = -1 where id = 'fine';")
    assert queuectl("import", path, check=2).err.startswith("error: row 2: max_retries: expected an integer from 0")
    assert not home.exists()


def test_a_damaged_file_is_refused(queuectl: Program, home: Path, tmp_path: Path) -> None:
    path = make(tmp_path / "queue.db", FREE, journal="delete")
    data = path.read_bytes()
    path.write_bytes(data[:1000] + b"\xff" * (len(data) - 1000))
    done = queuectl("import", path, check=1)
    assert done.err.startswith(f"error: cannot read {path}: ")
    assert not home.exists()
