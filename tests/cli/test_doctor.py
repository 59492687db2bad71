"""queuectl doctor: every finding, with a real cause."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from queuectl.store.open import open_store
from queuectl.store.types import NewWorker
from tests import postgres
from tests.clock import FakeClock
from tests.factories import new_job
from tests.needs import require
from tests.program import Leftovers, Program, WorkerProcess
from tests.terminal import Terminal, plain
from tests.wait import wait_until

StartWorker = Callable[..., WorkerProcess]

CHECKS = [
    "installation",
    "home",
    "permissions",
    "disk-space",
    "file-system",
    "store",
    "schema",
    "clock",
    "settings",
    "policy",
    "secrets",
    "logs",
    "workers",
    "jobs",
    "alerts",
    "processes",
    "leftovers",
]
IS_ROOT = os.geteuid() == 0


@pytest.fixture(scope="session", autouse=True)
def no_server_is_left() -> Iterator[None]:
    yield
    postgres.stop_server()


def findings(queuectl: Program, *arguments: str, check: int, **env: str) -> dict[str, Any]:
    """The findings of `doctor` by code. `check`: the exit status. None may be about the host of the tests."""
    reported = queuectl("doctor", "--json", *arguments, check=check, env=env).json
    found = {one["code"]: one for seen in reported["checks"] for one in seen["findings"]}
    for one in found.values():
        assert set(one) == {"code", "severity", "message", "hint", "fixable"}
        assert one["message"]
        assert one["hint"]
    found.pop("disk-scarce", None)
    return found


def sqlite(queuectl: Program, statement: str) -> None:
    """Change the database without our code."""
    with closing(sqlite3.connect(queuectl.home / "queue.db", isolation_level=None)) as db:
        db.execute(statement)


# ── no findings ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_missing_data_directory_is_no_problem_and_is_not_created(queuectl: Program) -> None:
    done = queuectl("doctor", check=0)
    assert f"there is none at {queuectl.home} yet" in done.lines[1]
    assert done.lines[-1] == "no problems found"
    queuectl("doctor", "--fix", check=0)
    assert not queuectl.home.exists()


def test_a_data_directory_in_use_is_healthy(queuectl: Program, start_worker: StartWorker) -> None:
    queuectl("enqueue", "--id", "fails", "--max-retries", "1", "exit 3", check=0)
    start_worker("--drain")
    start_worker()
    queuectl("enqueue", "--id", "runs", "exec sleep 1000", check=0)
    wait_until(lambda: queuectl("show", "runs", "--json").json["state"] == "processing", what="the job to run")
    reported = queuectl("doctor", "--json", check=0).json
    assert [seen["check"] for seen in reported["checks"]] == CHECKS
    assert {seen["status"] for seen in reported["checks"] if seen["check"] != "disk-space"} == {"ok"}
    assert (reported["home"], reported["store"]) == (str(queuectl.home), str(queuectl.home / "queue.db"))
    assert (reported["problems"], reported["fixed"]) == (0, [])
    queuectl("cancel", "runs", check=0)


def test_an_idle_data_directory_is_healthy_with_a_line_per_check(queuectl: Program) -> None:
    queuectl("enqueue", "true", check=0)
    done = queuectl("doctor", check=0)
    assert [line.split()[1] for line in done.lines if line.startswith("✓")] == CHECKS
    assert "\x1b" not in done.out


def test_colors_are_for_terminals_only(queuectl: Program) -> None:
    queuectl("enqueue", "true", check=0)
    terminal = Terminal(queuectl.home, "doctor", columns=200)
    assert terminal.end() == 0
    assert "\x1b[32m✓\x1b[0m" in terminal.shown
    assert "✓ home " in plain(terminal.shown)


def test_another_program_of_this_name_is_reported(queuectl: Program, tmp_path: Path) -> None:
    info = tmp_path / "site" / "queuectl-2.0.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.4\nName: queuectl\nVersion: 2.0.0\n")
    reported = queuectl("doctor", "--json", check=1, env={"PYTHONPATH": str(info.parent)}).json["checks"][0]
    (found,) = reported["findings"]
    assert (found["code"], found["severity"]) == ("other-distribution", "problem")
    assert "queuectl 2.0.0, a different program" in found["message"]
    assert "pip uninstall --yes queuectl && " in found["hint"]


# ── database ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_damaged_database_is_reported_and_not_changed(queuectl: Program) -> None:
    queuectl("enqueue", "--file", "-", input="true\n" * 200, check=0)
    sqlite(queuectl, "pragma wal_checkpoint(truncate)")
    file = queuectl.home / "queue.db"
    with file.open("r+b") as damaged:
        damaged.seek(file.stat().st_size - 16 * 4096)
        damaged.write(b"\xab" * 8 * 4096)
    before = file.read_bytes()
    found = findings(queuectl, "--fix", check=1)
    assert found["store-damaged"]["severity"] == "problem"
    assert not found["store-damaged"]["fixable"]
    assert file.read_bytes() == before


def test_rows_that_belong_to_no_job_are_named(queuectl: Program) -> None:
    queuectl("enqueue", "true", check=0)
    sqlite(queuectl, "insert into job_tags (tag, job) values ('t', 99)")
    assert (
        "1 rows of job_tags belong to jobs that are not there"
        in findings(queuectl, check=1)["store-damaged"]["message"]
    )


def test_an_inconsistent_index_is_reported(queuectl: Program) -> None:
    queuectl("enqueue", "--file", "-", input="true\n" * 9, check=0)
    sqlite(queuectl, "drop index jobs_ready")
    sqlite(queuectl, "create index jobs_ready on jobs (queue, rank, seq) where ready = 0")
    with closing(sqlite3.connect(queuectl.home / "queue.db", isolation_level=None)) as db:
        db.execute("pragma writable_schema = on")
        db.execute("update sqlite_master set sql = replace(sql, 'ready = 0', 'ready = 1') where name = 'jobs_ready'")
    assert "jobs_ready" in findings(queuectl, check=1)["store-damaged"]["message"]


def test_an_empty_file_does_not_pass_for_a_store(queuectl: Program) -> None:
    queuectl.home.mkdir(mode=0o700)
    file = queuectl.home / "queue.db"
    file.touch(mode=0o600)
    found = findings(queuectl, "--fix", check=1)["store-damaged"]
    assert "0 bytes" in found["message"]
    assert "if it never was a queuectl database, remove it" in found["hint"]
    assert file.stat().st_size == 0


@pytest.mark.parametrize("content", [b"hello\n" * 1000, b"x"])
def test_a_file_that_is_not_ours_is_named_and_left_alone(queuectl: Program, content: bytes) -> None:
    queuectl.home.mkdir(mode=0o700)
    file = queuectl.home / "queue.db"
    file.write_bytes(content)
    file.chmod(0o600)
    assert "is not a queuectl database" in findings(queuectl, "--fix", check=1)["store-foreign"]["message"]
    assert file.read_bytes() == content


def test_a_store_of_a_newer_queuectl_is_named(queuectl: Program) -> None:
    queuectl("enqueue", "true", check=0)
    sqlite(queuectl, "pragma user_version = 99")
    reported = queuectl("doctor", "--json", check=1).json
    seen = {one["check"]: one for one in reported["checks"]}
    assert "schema version 99" in seen["store"]["findings"][0]["message"]
    assert (seen["schema"]["status"], seen["workers"]["status"]) == ("skipped", "skipped")


def test_a_store_that_was_removed_under_a_worker_is_named(
    queuectl: Program, start_worker: StartWorker, leftovers: Leftovers
) -> None:
    running(queuectl, start_worker)
    for path in queuectl.home.glob("queue.db*"):
        path.unlink()
    assert "was removed or replaced while worker ada serves it" in findings(queuectl, check=1)["store-gone"]["message"]
    assert leftovers.end()  # the worker would wait for its running job


def test_a_clock_that_went_back_is_named(queuectl: Program) -> None:
    future = FakeClock()
    future.advance(10 * 365 * 86_400)
    with closing(open_store(str(queuectl.home), None, future)) as store:
        store.enqueue([new_job()])
    found = findings(queuectl, check=1)["clock-went-back"]
    assert "ahead of the clock" in found["message"]


# ── data directory ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_files_that_others_can_read_are_named_and_closed(queuectl: Program, start_worker: StartWorker) -> None:
    queuectl("enqueue", "--id", "j", "echo secret", check=0)
    start_worker("--drain").wait()
    opened = [queuectl.home / "queue.db", queuectl.home / "logs", queuectl.home / "logs" / "j.log"]
    for path in opened:
        path.chmod(0o777 if path.is_dir() else 0o644)
    found = findings(queuectl, check=1)["open-to-others"]
    # SQLite creates -wal and -shm with the mode of the database.
    named = found["message"].partition(": ")[2].split(", ")
    assert [name for name in named if not name.startswith("queue.db-")] == ["queue.db", "logs", "logs/j.log"]
    (done,) = queuectl("doctor", "--fix", "--json", check=0).json["fixed"]
    assert (done["check"], done["code"], done["done"]) == ("permissions", "open-to-others", True)
    assert done["message"].startswith("closed ")
    assert [path.stat().st_mode & 0o777 for path in opened] == [0o600, 0o700, 0o600]


@pytest.mark.parametrize("mode, code, status", [(0o755, "home-readable", 0), (0o777, "home-writable", 1)])
def test_a_home_that_others_can_enter_is_told_and_never_changed(
    queuectl: Program, mode: int, code: str, status: int
) -> None:
    queuectl("enqueue", "true", check=0)
    queuectl.home.chmod(mode)
    assert f"chmod 700 {queuectl.home}" in findings(queuectl, "--fix", check=status)[code]["hint"]
    assert queuectl.home.stat().st_mode & 0o777 == mode


def test_what_a_link_leads_to_is_not_ours(queuectl: Program, tmp_path: Path) -> None:
    queuectl("enqueue", "true", check=0)
    other = tmp_path / "other"
    other.write_text("x")
    other.chmod(0o644)
    (queuectl.home / "logs" / "link.log").symlink_to(other)
    assert findings(queuectl, "--fix", check=0) == {}
    assert other.stat().st_mode & 0o777 == 0o644


def test_files_of_another_user_are_named(queuectl: Program) -> None:
    require("root", IS_ROOT, "only root can give a file away")
    queuectl("enqueue", "true", check=0)
    os.chown(queuectl.home / "queue.db", 12345, -1)
    assert "queue.db" in findings(queuectl, check=1)["owner-differs"]["message"]
    os.chown(queuectl.home, 12345, -1)
    assert "belongs to user 12345" in findings(queuectl, check=1)["home-of-another"]["message"]


def test_a_home_that_is_a_file_is_named(queuectl: Program) -> None:
    queuectl.home.write_text("x")
    assert "is not a directory" in findings(queuectl, check=1)["home-unusable"]["message"]


def test_an_address_that_others_can_read_is_named_and_closed(queuectl: Program) -> None:
    queuectl("enqueue", "true", check=0)
    pointer = queuectl.home / "queuectl.toml"
    pointer.write_text(f'db = "{queuectl.home}/queue.db"\n')
    pointer.chmod(0o644)
    assert "queuectl.toml" in findings(queuectl, check=1)["open-to-others"]["message"]
    assert findings(queuectl, "--fix", check=0) == {}
    assert pointer.stat().st_mode & 0o777 == 0o600


def test_missing_logs_are_told_and_get_their_place_back(queuectl: Program) -> None:
    queuectl("enqueue", "true", check=0)
    (queuectl.home / "logs").rmdir()
    assert findings(queuectl, check=0)["logs-missing"]["severity"] == "note"
    assert findings(queuectl, "--fix", check=0) == {}
    assert (queuectl.home / "logs").stat().st_mode & 0o777 == 0o700


def test_logs_that_cannot_be_written_are_named(queuectl: Program) -> None:
    queuectl("enqueue", "true", check=0)
    (queuectl.home / "logs").rmdir()
    (queuectl.home / "logs").touch(mode=0o600)
    assert "is not a directory" in findings(queuectl, "--fix", check=1)["logs-unusable"]["message"]


@pytest.mark.parametrize(
    "options, code, status",
    [("size=20m", "disk-full", 1), ("size=500m", "disk-scarce", 0), ("size=2g,nr_inodes=12", "disk-full", 1)],
)
def test_a_full_disk_is_reported(queuectl: Program, options: str, code: str, status: int) -> None:
    queuectl.home.mkdir(mode=0o700)
    arguments = ["mount", "-t", "tmpfs", "-o", f"mode=700,{options}", "test", str(queuectl.home)]
    done = subprocess.run(arguments, capture_output=True)
    require("a small tmpfs", done.returncode == 0, done.stderr.decode())
    try:
        queuectl("enqueue", "true", check=0)
        for number in range(12) if "inodes" in options else ():
            try:
                (queuectl.home / f"file{number}").touch(mode=0o600)
            except OSError:
                break
        reported = queuectl("doctor", "--json", check=status).json
        (seen,) = [one for one in reported["checks"] if one["check"] == "disk-space"]
        assert [one["code"] for one in seen["findings"]] == [code]
        assert str(queuectl.home) in seen["findings"][0]["message"]
    finally:
        subprocess.run(["umount", "--lazy", queuectl.home], check=True)


# ── settings ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_all_settings_that_cannot_be_are_named(queuectl: Program) -> None:
    queuectl("enqueue", "true", check=0)
    sqlite(queuectl, "insert into config (key, value) values ('timeout', 'soon')")
    reported = queuectl("doctor", "--json", check=1, env={"QUEUECTL_LEASE": "x", "QUEUECTL_AGEING": "1m"}).json
    (seen,) = [one for one in reported["checks"] if one["check"] == "settings"]
    arguments = [one["message"] for one in seen["findings"]]
    assert len(arguments) == 3
    assert any("QUEUECTL_LEASE" in line for line in arguments)
    assert any("QUEUECTL_AGEING" in line for line in arguments)
    assert any("the stored timeout" in line for line in arguments)


def test_settings_that_cannot_be_together_are_named(queuectl: Program) -> None:
    found = findings(queuectl, check=1, QUEUECTL_LEASE="3s")
    assert "less than twice the heartbeat" in found["setting-invalid"]["message"]


def test_an_address_that_cannot_be_is_named(queuectl: Program) -> None:
    assert "mysql" in findings(queuectl, check=1, QUEUECTL_DB="mysql://x:secret@y/z")["store-unsupported"]["message"]
    assert "QUEUECTL_DB" in findings(queuectl, check=1, QUEUECTL_DB="")["invalid-input"]["message"]


# ── workers, jobs, processes ────────────────────────────────────────────────────────────────────────────────────────


def running(queuectl: Program, start_worker: StartWorker, *arguments: str) -> WorkerProcess:
    """A worker named ada that runs job j."""
    worker = start_worker("--name", "ada", *arguments)
    queuectl("enqueue", "--id", "j", "exec sleep 1000", check=0)
    wait_until(lambda: queuectl("show", "j", "--json").json["history"][:1], what="the job to run")
    wait_until(lambda: queuectl("show", "j", "--json").json["history"][0]["pid"], what="its process to be known")
    return worker


def test_a_dead_worker_and_its_jobs_are_named_and_taken_back(
    queuectl: Program, start_worker: StartWorker, leftovers: Leftovers
) -> None:
    running(queuectl, start_worker).crash()
    found = findings(queuectl, check=1)
    assert (found["worker-gone"]["severity"], found["worker-gone"]["fixable"]) == ("note", True)
    assert found["worker-gone"]["message"].endswith(": ada (running j)")
    assert found["job-stuck"]["message"] == "1 job (j) waits for worker ada, which is dead"
    reported = queuectl("doctor", "--fix", "--json", check=0).json
    assert [one["message"] for one in reported["fixed"]] == ["took 1 job back from ada"]
    job = queuectl("show", "j", "--json", check=0).json
    assert (job["state"], job["crashes"]) == ("pending", 1)
    leftovers.wait_until_none()
    assert list((queuectl.home / "workers").iterdir()) == []


def test_a_job_that_runs_on_without_its_worker_is_told_and_left_alone(
    queuectl: Program, start_worker: StartWorker, leftovers: Leftovers
) -> None:
    running(queuectl, start_worker).kill()
    for fix in ((), ("--fix",)):
        found = findings(queuectl, *fix, check=0)
        assert found["job-unattended"]["message"] == "1 job (j) runs on without worker ada, which is dead"
        # The hint does not mention --fix, which would not help.
        assert (found["worker-gone"]["fixable"], "--fix" in found["worker-gone"]["hint"]) == (False, False)
        assert queuectl("show", "j", "--json", check=0).json["state"] == "processing"
    queuectl("cancel", "j", check=0)
    leftovers.wait_until_none()


def test_a_worker_that_is_stopped_is_named(queuectl: Program, start_worker: StartWorker) -> None:
    env: dict[str, str | None] = {"QUEUECTL_HEARTBEAT": "100ms", "QUEUECTL_LEASE": "200ms"}
    worker = start_worker("--name", "ada", env=env)
    worker.send(signal.SIGSTOP)
    wait_until(lambda: queuectl("doctor", env=env).code == 1, what="its silence to be noticed")
    reported = queuectl("doctor", check=1, env=env).out
    assert f"its process {worker.pid} is stopped" in reported
    assert f"kill -CONT {worker.pid}" in reported


def test_a_worker_that_lives_and_does_not_reach_the_store_is_named(
    queuectl: Program, start_worker: StartWorker
) -> None:
    env: dict[str, str | None] = {"QUEUECTL_HEARTBEAT": "100ms", "QUEUECTL_LEASE": "200ms"}
    worker = start_worker("--name", "ada", env=env)
    with closing(sqlite3.connect(queuectl.home / "queue.db", isolation_level=None)) as other:
        other.execute("begin immediate")
        wait_until(lambda: queuectl("doctor", env=env).code == 1, what="its silence to be noticed")
        reported = queuectl("doctor", check=1, env=env).out
        assert f"its process {worker.pid} lives, but does not reach the database" in reported


def test_a_worker_of_another_machine_that_is_silent_is_named(queuectl: Program) -> None:
    with closing(open_store(str(queuectl.home), None, FakeClock())) as store:
        store.claims.register(NewWorker("far", "elsewhere", 7, str(queuectl.home), 1, None, "another")).close()
    found = findings(queuectl, check=1)["worker-silent"]
    assert "worker far at elsewhere has had no heartbeat for " in found["message"]


def test_a_job_of_an_unknown_worker_is_reported_and_requeued(
    queuectl: Program, start_worker: StartWorker, leftovers: Leftovers
) -> None:
    running(queuectl, start_worker).crash()
    sqlite(queuectl, "delete from workers")
    found = findings(queuectl, check=1)["job-stuck"]
    assert found["message"] == "1 job (j) waits for worker ada, which the database does not know"
    assert "leftovers" not in findings(queuectl, "--fix", check=0)
    assert queuectl("show", "j", "--json", check=0).json["state"] == "pending"
    leftovers.wait_until_none()


def test_a_queue_that_no_live_worker_serves_is_told(queuectl: Program, start_worker: StartWorker) -> None:
    queuectl("enqueue", "--queue", "mail", "true", check=0)
    assert findings(queuectl, check=0) == {}
    start_worker("--queue", "video")
    found = findings(queuectl, check=0)["queue-not-served"]
    assert found["message"] == "jobs wait in mail, and no live worker serves it"


def test_a_process_that_outlives_its_run_is_told_and_left_alone(
    queuectl: Program, start_worker: StartWorker, leftovers: Leftovers
) -> None:
    queuectl("enqueue", "--id", "j", "sleep 1000 >/dev/null 2>&1 & echo $!", check=0)
    assert start_worker("--drain").wait() == 0
    pid = queuectl("logs", "j", "--no-markers", check=0).out.strip()
    found = findings(queuectl, "--fix", check=0)["orphans"]
    assert found["message"] == f"1 process outlives the run that started it: {pid} of j (sleep 1000)"
    assert (found["severity"], found["fixable"]) == ("note", False)
    assert leftovers.end()


def test_files_of_a_worker_that_is_gone_are_told_and_swept(queuectl: Program, start_worker: StartWorker) -> None:
    start_worker("--name", "ada")
    folder = queuectl.home / "workers"
    for name in ("old.lock", "old.runs", "lost.bell", "kept.log"):
        (folder / name).touch(mode=0o600)
    found = findings(queuectl, check=0)["leftovers"]
    assert "files of 2 workers that are gone: lost, old" in found["message"]
    assert findings(queuectl, "--fix", check=0) == {}
    assert sorted(path.name for path in folder.iterdir()) == ["ada.bell", "ada.lock", "ada.runs", "kept.log"]


# ── PostgreSQL ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def shared(home: Path, leftovers: Leftovers) -> Iterator[Program]:
    with postgres.server().store() as url:
        yield Program(home, {"QUEUECTL_DB": url})


def test_a_store_on_a_server_is_healthy(shared: Program) -> None:
    shared("enqueue", "true", check=0)
    reported = shared("doctor", "--json", check=0).json
    assert {seen["status"] for seen in reported["checks"] if seen["check"] != "disk-space"} == {"ok"}
    (seen,) = [one for one in reported["checks"] if one["check"] == "store"]
    assert seen["message"].startswith("sound, PostgreSQL ")


@pytest.mark.parametrize(
    "statement, arguments",
    [
        ("drop table queuectl.job_tags", "the table queuectl.job_tags is missing"),
        ("insert into queuectl.job_tags values ('t', 99)", "1 rows of job_tags belong to jobs that are not there"),
    ],
)
def test_what_is_wrong_on_a_server_is_named(shared: Program, statement: str, arguments: str) -> None:
    shared("enqueue", "true", check=0)
    postgres.server().execute(statement, shared.env["QUEUECTL_DB"])
    assert arguments in findings(shared, check=1)["store-damaged"]["message"]


def test_the_schema_of_a_newer_queuectl_on_a_server_is_named(shared: Program) -> None:
    shared("enqueue", "true", check=0)
    postgres.server().execute("update queuectl.meta set version = 99", shared.env["QUEUECTL_DB"])
    assert "schema version 99" in findings(shared, check=1)["store-too-new"]["message"]


def test_a_server_that_does_not_answer_is_named_without_its_password(queuectl: Program) -> None:
    url = "postgresql://me:s3cret@127.0.0.1:1/work"
    for arguments in (["doctor"], ["doctor", "--json"]):
        done = queuectl(*arguments, check=1, env={"QUEUECTL_DB": url})
        assert "postgresql://me:***@127.0.0.1:1/work" in done.out
        assert "s3cret" not in done.out + done.err


def test_a_dead_worker_of_a_server_is_named_and_its_jobs_taken_back(shared: Program, tmp_path: Path) -> None:
    worker = WorkerProcess(shared, tmp_path / "worker.log", "--name", "ada").wait_until_ready()
    shared("enqueue", "--id", "j", "exec sleep 1000", check=0)
    wait_until(lambda: shared("show", "j", "--json").json["state"] == "processing", what="the job to run")
    worker.crash()
    assert {"worker-gone", "job-stuck"} <= findings(shared, check=1).keys()
    assert findings(shared, "--fix", check=0) == {}
    assert shared("show", "j", "--json", check=0).json["state"] == "pending"
