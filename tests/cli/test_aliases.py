"""Other names of commands, options and states, as users of other tools type them."""

from __future__ import annotations

from pathlib import Path

import pytest

from queuectl.cli.commands import DATABASE_COMMANDS
from tests.program import Program
from tests.terminal import Terminal, plain


def test_jobs_are_added_listed_shown_and_cancelled_by_other_names(queuectl: Program) -> None:
    job_id = queuectl("add", "echo hello", check=0).out.strip()
    assert queuectl("ls", "--quiet", check=0).lines == [job_id]
    assert queuectl("kill", job_id, check=0).out == f"cancelled {job_id}\n"
    done = queuectl("add", "--id", "done", "echo hello", check=0).out.strip()
    queuectl("worker", "start", "--drain", check=0)
    assert "hello" in queuectl("log", done, check=0).lines


def test_clear_removes_all_jobs_like_reset(queuectl: Program) -> None:
    queuectl("enqueue", "true", check=0)
    assert "removed 1 job" in queuectl("clear", "--yes", check=0).out
    assert queuectl("list", "--json", check=0).json == []


def test_schedule_is_another_name_of_cron(queuectl: Program) -> None:
    queuectl("schedule", "add", "nightly", "0 2 * * *", "make backup", check=0)
    assert [one["name"] for one in queuectl("schedule", "list", "--json", check=0).json] == ["nightly"]
    assert queuectl("cron", "remove", "nightly", check=0).out == "removed nightly\n"


def test_dlq_delete_is_another_name_of_purge(queuectl: Program) -> None:
    queuectl("enqueue", "--id", "x", "--max-attempts", "1", "false", check=0)
    queuectl("worker", "start", "--drain", check=0)
    assert queuectl("dlq", "delete", "x", "--yes", check=0).out == "purged x\n"


def test_config_delete_is_another_name_of_unset(queuectl: Program) -> None:
    queuectl("config", "set", "max-retries", "7", check=0)
    queuectl("config", "delete", "max-retries", check=0)
    assert queuectl("config", "get", "max-retries", check=0).out == "3\n"


def test_config_get_without_a_key_lists_all_settings(queuectl: Program) -> None:
    assert queuectl("config", "get", check=0) == queuectl("config", "list", check=0)
    assert queuectl("config", "get", "--json", check=0) == queuectl("config", "list", "--json", check=0)


@pytest.mark.parametrize("option", ["--count", "-c", "--concurrency", "-j"])
def test_the_number_of_slots_has_the_names_of_other_tools(queuectl: Program, option: str) -> None:
    assert queuectl("worker", "start", option, "3", "--drain", check=0).code == 0
    assert "--count" in queuectl("worker", "start", option, "0", check=2).err


@pytest.mark.parametrize(
    "name, state",
    [("queued", "pending"), ("running", "processing"), ("done", "completed"), ("Succeeded", "completed")],
)
def test_states_have_the_names_of_other_tools(queuectl: Program, name: str, state: str) -> None:
    queuectl("enqueue", "--id", "pending", "--delay", "1h", "true", check=0)
    queuectl("enqueue", "--id", "completed", "true", check=0)
    queuectl("worker", "start", "--drain", "--idle-timeout", "1s", check=0)
    expected = [state] if state != "processing" else []
    assert queuectl("list", "--state", name, "--quiet", check=0).lines == expected
    assert queuectl("list", "--state", f"dead,{name}", "--quiet", check=0).lines == expected


def test_an_unknown_state_is_refused(queuectl: Program) -> None:
    assert queuectl("list", "--state", "started", check=2).err.startswith("error: unknown state 'started'")


@pytest.mark.parametrize("option", ["--max-attempts", "--max-retries", "--retries"])
def test_the_number_of_attempts_has_three_names(queuectl: Program, option: str) -> None:
    queuectl("enqueue", "--id", "x", option, "5", "true", check=0)
    assert queuectl("show", "x", "--json", check=0).json["max_retries"] == 5


# ── db ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", DATABASE_COMMANDS)
def test_a_command_of_db_is_also_at_the_top_level(queuectl: Program, name: str) -> None:
    below = queuectl("db", name, "--help", check=0)
    above = queuectl(name, "--help", check=0)
    assert below.out.replace(f"queuectl db {name}", "queuectl") == above.out.replace(
        f"queuectl db {name}", "queuectl"
    ).replace(f"queuectl {name}", "queuectl")
    assert not any(line.startswith(f"  {name} ") for line in queuectl("--help", check=0).lines)
    assert any(line.startswith(f"  {name} ") for line in queuectl("db", "--help", check=0).lines)


def test_db_backs_up_exports_resets_imports_and_restores(queuectl: Program, tmp_path: Path) -> None:
    queuectl("enqueue", "--id", "one", "true", check=0)
    queuectl("db", "backup", tmp_path / "backup.db", check=0)
    queuectl("db", "export", tmp_path / "jobs.json", check=0)
    queuectl("db", "copy", "--from", tmp_path / "backup.db", "--to", tmp_path / "copy.db", check=0)
    assert queuectl("list", "--quiet", "--db", tmp_path / "copy.db", check=0).lines == ["one"]
    queuectl("db", "reset", "--yes", check=0)
    assert queuectl("list", check=0).out == "No jobs.\n"
    queuectl("db", "import", tmp_path / "jobs.json", check=0)
    assert queuectl("list", "--quiet", check=0).lines == ["one"]
    queuectl("db", "clear", "--yes", check=0)
    queuectl("db", "restore", tmp_path / "backup.db", "--yes", check=0)
    assert queuectl("list", "--quiet", check=0).lines == ["one"]
    assert queuectl("db", "prune", "--yes", check=0).out == "nothing to remove\n"


# ── --cwd ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_missing_working_directory_is_a_warning_on_a_terminal(queuectl: Program, home: Path, tmp_path: Path) -> None:
    terminal = Terminal(home, "enqueue", "--cwd", str(tmp_path / "none"), "true")
    assert terminal.end() == 0
    assert f"warning: {tmp_path}/none is not a directory on this host" in plain(terminal.shown).replace("\n", "")
    terminal = Terminal(home, "enqueue", "--cwd", str(tmp_path), "true")
    assert terminal.end() == 0
    assert "warning" not in terminal.shown
    assert queuectl("enqueue", "--cwd", tmp_path / "none", "true", check=0).err == ""
