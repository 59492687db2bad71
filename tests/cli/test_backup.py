from __future__ import annotations

import json
import resource
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from queuectl.store.statements import LATEST
from tests.program import Leftovers, Program, WorkerProcess
from tests.terminal import Terminal
from tests.wait import wait_until

StartWorker = Callable[..., WorkerProcess]


def refused(done: object) -> tuple[str, str]:
    out, err = done.out, done.err  # type: ignore[attr-defined]
    assert out == ""
    message, hint = err.splitlines()
    return message.removeprefix("error: "), hint.removeprefix("hint: ")


def names(queuectl: Program) -> list[str]:
    return sorted(queuectl("list", "--quiet", check=0).lines)


@pytest.fixture
def saved(queuectl: Program, start_worker: StartWorker, tmp_path: Path) -> Path:
    """A backup of a database with a setting, an ended and a waiting job."""
    queuectl("config", "set", "max-retries", "7", check=0)
    queuectl("enqueue", "--id", "ran", "--tag", "t", "echo hi", check=0)
    assert start_worker("--drain").wait() == 0
    queuectl("enqueue", "--id", "waits", "--delay", "1h", "true", check=0)
    file = tmp_path / "saved.db"
    queuectl("backup", file, check=0)
    return file


# ── backup ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_backup_is_a_private_database_made_while_workers_run(
    queuectl: Program, start_worker: StartWorker, tmp_path: Path
) -> None:
    start_worker("--count", "2")
    queuectl("enqueue", "--file", "-", "--quiet", input="true\n" * 300, check=0)
    file = tmp_path / "copy of it.db"
    answer = queuectl("backup", file, "--json", check=0).json
    assert answer == {"file": str(file), "bytes": file.stat().st_size}
    assert file.stat().st_mode & 0o777 == 0o600
    assert queuectl("--db", file, "status", "--json", check=0).json["total"] == 300
    with closing(sqlite3.connect(file)) as db:
        assert db.execute("pragma integrity_check").fetchone() == ("ok",)
    assert [path.name for path in tmp_path.glob("copy*") if path.suffix == ".partial"] == []


def test_a_backup_path_is_relative_to_the_current_directory(queuectl: Program, tmp_path: Path) -> None:
    queuectl("enqueue", "true", check=0)
    assert queuectl("backup", "b.db", cwd=tmp_path, check=0).out.startswith(f"backed up to {tmp_path}/b.db, ")


def test_a_backup_replaces_no_file(queuectl: Program, tmp_path: Path) -> None:
    queuectl("enqueue", "true", check=0)
    there = tmp_path / "there"
    there.write_text("precious")
    message, _ = refused(queuectl("backup", there, check=1))
    assert message == f"there is a file {there} already"
    assert there.read_text() == "precious"
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert "already" in refused(queuectl("backup", tmp_path / "link", check=1))[0]


def test_a_failed_backup_reports_its_reason(queuectl: Program, home: Path, tmp_path: Path) -> None:
    message, hint = refused(queuectl("backup", tmp_path / "b.db", check=1))
    assert (message, hint) == (f"there is no queuectl database at {home}/queue.db", "there is nothing to back up")
    assert not home.exists()
    queuectl("enqueue", "true", check=0)
    assert "no such directory" in refused(queuectl("backup", tmp_path / "no" / "b.db", check=1))[0]
    assert "FILE" in queuectl("backup", check=2).err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home"]


def test_leftovers_of_a_killed_backup_do_no_harm(queuectl: Program, tmp_path: Path) -> None:
    queuectl("enqueue", "true", check=0)
    (tmp_path / "b.db.partial").write_text("half")
    queuectl("backup", tmp_path / "b.db", check=0)
    assert not (tmp_path / "b.db.partial").exists()


def test_a_full_disk_leaves_no_partial_backup(queuectl: Program, tmp_path: Path) -> None:
    queuectl("enqueue", "--file", "-", "--quiet", input=f"true {'x' * 500}\n" * 1000, check=0)
    done = queuectl.start(
        "backup",
        tmp_path / "b.db",
        stderr=subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, 65_536)),
    )
    _, printed = done.communicate()
    assert done.returncode == 1
    assert len(printed.splitlines()) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home"]


# ── restore ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_restore_restores_everything_and_keeps_the_replaced_database(
    queuectl: Program, home: Path, saved: Path
) -> None:
    before = queuectl("show", "ran", "--json", check=0).json
    content = saved.read_bytes()
    queuectl("prune", "--older-than", "0", "--yes", check=0)
    queuectl("config", "set", "max-retries", "1", check=0)
    queuectl("enqueue", "--id", "new", "true", check=0)
    assert "--yes" in queuectl("restore", saved, check=2).err
    answer = queuectl("restore", saved, "--yes", "--json", check=0).json
    assert (answer["counts"]["jobs"], answer["counts"]["runs"], answer["given_back"]) == (2, 1, 0)
    assert names(queuectl) == ["ran", "waits"]
    after = queuectl("show", "ran", "--json", check=0).json
    assert {**after, "output": None} == {**before, "output": None}  # its log was pruned
    assert queuectl("config", "get", "max-retries", check=0).out == "7\n"
    kept = Path(answer["kept"])
    assert kept.parent == home / "backups"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert sorted(queuectl("--db", kept, "list", "--quiet", check=0).lines) == ["new", "waits"]
    assert saved.read_bytes() == content
    assert [path.name for path in saved.parent.glob("saved*")] == ["saved.db"]
    assert list((home / "backups").glob("restoring*")) == []
    queuectl("enqueue", "--id", "after", "true", check=0)
    assert queuectl("status", "--json", check=0).json["total"] == 3


def test_a_restore_prints_a_summary(queuectl: Program, saved: Path, home: Path) -> None:
    first, second = queuectl("restore", saved, "--yes", check=0).lines
    assert first == "restored 2 jobs with 1 run"
    assert second.startswith(f"the replaced database is kept: {home}/backups/restore-")


def test_a_restore_creates_a_missing_data_directory(queuectl: Program, saved: Path, tmp_path: Path) -> None:
    other = Program(tmp_path / "other")
    assert other("restore", saved, "--yes", "--json", check=0).json["kept"] is None
    assert names(other) == ["ran", "waits"]


def test_jobs_running_at_the_backup_are_pending_after_the_restore(
    queuectl: Program, start_worker: StartWorker, tmp_path: Path, leftovers: Leftovers
) -> None:
    worker = start_worker("--name", "bee")
    queuectl("enqueue", "--id", "long", "sleep 1000", check=0)
    wait_until(lambda: queuectl("show", "long", "--json", check=0).json["state"] == "processing")
    queuectl("backup", tmp_path / "b.db", check=0)
    message, hint = refused(queuectl("restore", tmp_path / "b.db", "--yes", check=1))
    assert (message, hint) == ("cannot restore while workers run: bee", "queuectl worker stop")
    worker.kill()
    done = queuectl("restore", tmp_path / "b.db", "--yes", check=0)
    assert done.lines[1] == "1 running job returned to pending, without an attempt counted"
    leftovers.wait_until_none()  # the run of the dead worker was stopped first
    job = queuectl("show", "long", "--json", check=0).json
    assert (job["state"], job["attempts"], job["crashes"], job["runs"]) == ("pending", 0, 0, 1)
    assert [run["outcome"] for run in job["history"]] == ["released"]
    assert queuectl("worker", "list", "--json", check=0).json == []


def test_a_file_that_is_no_backup_is_refused_and_nothing_is_created(
    queuectl: Program, saved: Path, tmp_path: Path
) -> None:
    other = Program(tmp_path / "other")
    (tmp_path / "text").write_text("hello")
    (tmp_path / "empty").write_text("")
    with closing(sqlite3.connect(tmp_path / "foreign.db")) as db:
        db.execute("create table mine (x)")
    queuectl("export", tmp_path / "jobs.json", check=0)
    for name in ("text", "empty", "foreign.db", "jobs.json"):
        what, hint = refused(other("restore", tmp_path / name, "--yes", check=1))
        assert what.endswith("is not a queuectl database"), name
        assert hint.startswith("name a file that queuectl db backup made"), name
        assert hint.endswith("queuectl db import FILE"), name
    assert refused(other("restore", tmp_path / "nothing", "--yes", check=1))[0].startswith(
        "there is no queuectl database at"
    )
    assert refused(other("restore", tmp_path, "--yes", check=1))[0].endswith("it is a directory")
    with closing(sqlite3.connect(saved)) as db:
        db.execute(f"pragma user_version = {LATEST + 1}")
    error = other("restore", saved, "--yes", "--json", check=1)
    assert json.loads(error.err)["error"]["code"] == "store-too-new"
    assert not other.home.exists()


def test_a_damaged_backup_is_refused(queuectl: Program, tmp_path: Path) -> None:
    queuectl("enqueue", "--file", "-", "--quiet", input=f"true {'x' * 500}\n" * 2000, check=0)
    file = tmp_path / "b.db"
    queuectl("backup", file, check=0)
    with file.open("r+b") as opened:
        opened.seek(file.stat().st_size // 2)
        opened.write(b"\xff" * 65536)
    assert "is damaged" in refused(queuectl("restore", file, "--yes", check=1))[0]
    assert queuectl("status", "--json", check=0).json["total"] == 2000


def test_the_database_itself_is_refused_as_a_backup(queuectl: Program, home: Path) -> None:
    queuectl("enqueue", "true", check=0)
    assert (
        refused(queuectl("restore", home / "queue.db", "--yes", check=1))[0]
        == f"{home}/queue.db is the database itself"
    )


@pytest.mark.parametrize("damage", ["beginning", "middle", "all"])
def test_a_damaged_database_is_replaced_and_kept(queuectl: Program, saved: Path, home: Path, damage: str) -> None:
    queuectl("enqueue", "--file", "-", "--quiet", input=f"true {'x' * 500}\n" * 2000, check=0)
    store = home / "queue.db"
    with closing(sqlite3.connect(store)) as db:
        db.execute("pragma wal_checkpoint(truncate)")
    size = store.stat().st_size
    at, length = {"beginning": (0, 4096), "middle": (size // 2, 65536), "all": (0, size)}[damage]
    with store.open("r+b") as file:
        file.seek(at)
        file.write(b"\0" * length)
    ruins = store.read_bytes()
    answer = queuectl("restore", saved, "--yes", "--json", check=0).json
    assert names(queuectl) == ["ran", "waits"]
    assert Path(answer["kept"]).read_bytes() == ruins
    assert Path(answer["kept"]).parent == home / "backups"


def test_a_restore_asks_on_a_terminal(queuectl: Program, saved: Path, home: Path) -> None:
    queuectl("enqueue", "--id", "new", "true", check=0)
    terminal = Terminal(home, "restore", str(saved))
    terminal.wait_for("by a backup with 2 jobs? [y/N]")
    terminal.type("n\n")
    assert terminal.end() == 1
    assert names(queuectl) == ["new", "ran", "waits"]
    assert list((home / "backups").iterdir()) == []


def test_a_restore_that_is_killed_has_changed_nothing(queuectl: Program, saved: Path, home: Path) -> None:
    """Or it has changed everything: never a part."""
    other = Program(home.parent / "other")
    other("enqueue", "--file", "-", "--quiet", input="true\n" * 20_000, check=0)
    other("backup", home.parent / "big.db", check=0)
    running = queuectl.start("restore", home.parent / "big.db", "--yes")
    wait_until(lambda: list((home / "backups").glob("restore-*.db")), every=0.001, what="the old one to be kept")
    running.kill()
    running.wait()
    assert queuectl("status", "--json", check=0).json["total"] in (2, 20_000)
    queuectl("restore", saved, "--yes", check=0)
    assert names(queuectl) == ["ran", "waits"]
