from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.program import Program
from tests.terminal import Terminal, plain
from tests.wait import wait_until


@pytest.fixture
def waiting(queuectl: Program) -> Program:
    """A data directory with two waiting jobs."""
    jobs = [
        {"id": "a", "command": "echo 'one'\necho \"two\" \\ 日本", "delay": "1h", "timeout": "90s"},
        {"id": "b", "argv": ["echo", "x y"], "queue": "mail", "delay": "1h"},
    ]
    queuectl("enqueue", json.dumps(jobs), check=0)
    return queuectl


def show(queuectl: Program, job_id: str) -> dict[str, Any]:
    shown: dict[str, Any] = queuectl("show", job_id, "--json", check=0).json
    return shown


def editor(tmp_path: Path, script: str) -> dict[str, str | None]:
    """An editor that runs this script on its file, `$1`."""
    path = tmp_path / "editor.sh"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
    return {"EDITOR": str(path), "VISUAL": None}


def test_a_waiting_job_is_changed_by_options(waiting: Program) -> None:
    arguments = ["--command", "make", "--priority", "-5", "--max-retries", "9", "--timeout", "0", "--delay", "0"]
    assert waiting("edit", "a", *arguments, check=0).out == "changed a\n"
    job = show(waiting, "a")
    assert (job["command"], job["priority"], job["max_retries"], job["timeout"]) == ("make", -5, 9, None)
    assert job["reason"] == "no live worker serves its queue"
    assert waiting("edit", "a", "--run-at", "2100-01-01T00:00Z", "--json", check=0).json == {
        "done": ["a"],
        "refused": [],
    }
    assert show(waiting, "a")["run_at"] == "2100-01-01T00:00:00.000Z"


def test_with_ids_queue_is_the_new_queue_and_otherwise_a_filter(waiting: Program) -> None:
    waiting("edit", "a", "--queue", "slow", check=0)
    assert show(waiting, "a")["queue"] == "slow"
    printed = waiting("edit", "--queue", "slow", "--queue", "mail", "--move-to", "fast", check=2).err
    assert printed.startswith("error: Edit 2 jobs (2 pending)? ")
    waiting("edit", "--queue", "slow", "--queue", "mail", "--move-to", "fast", "--yes", check=0)
    assert [show(waiting, job_id)["queue"] for job_id in ("a", "b")] == ["fast", "fast"]
    waiting("edit", "a", "--tag", "x", "--priority", "1", check=2)


@pytest.mark.parametrize(
    "arguments, printed",
    [
        (["--priority", "5000000"], "--priority: expected an integer"),
        (["--timeout", "x"], "--timeout: expected a duration"),
        (["--command", ""], "--command: blank"),
        (["--delay", "1s", "--run-at", "2100-01-01"], "--delay: not together with --run-at"),
        (["--move-to", "no good"], "--move-to: not the name of a queue"),
        (["--queue", "no good"], "--queue: not the name of a queue"),
        ([], "nothing to change"),
    ],
)
def test_an_invalid_change_is_refused_before_the_database_is_read(
    queuectl: Program, arguments: list[str], printed: str
) -> None:
    done = queuectl("edit", "a", *arguments, check=2)
    assert done.err.startswith(f"error: {printed}")
    assert done.out == ""
    assert not queuectl.home.exists()


def test_a_job_is_edited_as_toml(waiting: Program, home: Path, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    change = """sed -i -e 's/two/three/' -e 's/^priority = .*/priority = 4/' -e '/^queue/d' "$1" """
    terminal = Terminal(home, "edit", "a", env=editor(tmp_path, f'cp "$1" {seen}\n{change}'))
    assert terminal.end() == 0
    assert plain(terminal.shown) == "changed a\n"
    job = show(waiting, "a")
    assert (job["command"], job["priority"]) == ("echo 'one'\necho \"three\" \\ 日本", 4)
    assert (job["queue"], job["timeout"], job["max_retries"]) == ("default", 90, 3)
    assert 'timeout = "1m30s"' in seen.read_text()


def test_an_argv_is_edited_as_a_list(waiting: Program, home: Path, tmp_path: Path) -> None:
    script = """sed -i 's/^argv = .*/argv = ["printf", "%s", "\\\\"q\\\\""]/' "$1" """
    assert Terminal(home, "edit", "b", env=editor(tmp_path, script)).end() == 0
    assert show(waiting, "b")["argv"] == ["printf", "%s", '"q"']


def test_an_unchanged_document_changes_nothing(waiting: Program, home: Path, tmp_path: Path) -> None:
    before = show(waiting, "a")
    terminal = Terminal(home, "edit", "a", env=editor(tmp_path, 'echo "# a remark" >> "$1"'))
    assert terminal.end() == 0
    assert plain(terminal.shown) == "nothing changed\n"
    assert show(waiting, "a") == before


@pytest.mark.parametrize(
    "line, printed",
    [
        ("priority = ", "the page: Invalid value (at line 1, column 12)"),
        ("priority = 1.5", "priority: expected an integer"),
        ("color = 1", "unknown field 'color'"),
    ],
)
def test_an_invalid_document_is_refused_and_saved(
    waiting: Program, home: Path, tmp_path: Path, line: str, printed: str
) -> None:
    env = {**editor(tmp_path, f'echo "{line}" > "$1"'), "TMPDIR": str(tmp_path)}
    terminal = Terminal(home, "edit", "a", env=env, columns=500)
    assert terminal.end() == 2
    assert f"error: {printed}" in plain(terminal.shown)
    (kept,) = tmp_path.glob("queuectl-edit-*.toml")
    assert f"your text is kept in {kept}" in plain(terminal.shown)
    assert kept.read_text() == f"{line}\n"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert show(waiting, "a")["priority"] == 0


@pytest.mark.parametrize("name", ["false", "/nowhere/vi"])
def test_an_editor_that_fails_changes_nothing(waiting: Program, home: Path, name: str) -> None:
    before = show(waiting, "a")
    terminal = Terminal(home, "edit", "a", env={"EDITOR": name, "VISUAL": None}, columns=200)
    assert terminal.end() == 1
    assert plain(terminal.shown).startswith(f"error: {name}: Editing failed")
    assert "hint: set $EDITOR to one that runs here, or use options" in plain(terminal.shown)
    assert show(waiting, "a") == before


def test_an_edit_of_a_job_changed_meanwhile_is_refused(waiting: Program, home: Path, tmp_path: Path) -> None:
    go, seen = tmp_path / "go", tmp_path / "seen"
    script = (
        f"""touch {seen}\nwhile ! test -e {go}; do sleep 0.01; done\nsed -i 's/^priority = .*/priority = 4/' "$1" """
    )
    terminal = Terminal(home, "edit", "a", env={**editor(tmp_path, script), "TMPDIR": str(tmp_path)}, columns=500)
    wait_until(seen.exists)
    waiting("priority", "9", "a", check=0)
    go.touch()
    assert terminal.end() == 1
    assert "error: job 'a' has changed since it was shown, and was not edited" in plain(terminal.shown)
    assert list(tmp_path.glob("queuectl-edit-*.toml"))
    assert show(waiting, "a")["priority"] == 9


def test_priority_takes_the_number_first_or_after_a_single_id(waiting: Program) -> None:
    assert waiting("priority", "-7", "a", "b", check=0).lines == ["priority -7: a", "priority -7: b"]
    waiting("priority", "b", "-9", check=0)
    assert [show(waiting, job_id)["priority"] for job_id in ("a", "b")] == [-7, -9]
    waiting("priority", "3", "--queue", "mail", "--yes", check=0)
    assert show(waiting, "b")["priority"] == 3
    assert waiting("priority", check=2).err.startswith("error: N: expected an integer, got nothing\n")
    assert waiting("priority", "a", "b", check=2).err.startswith("error: N: expected an integer, got 'a'\n")
    assert waiting("priority", "5", check=2).err.startswith("error: no jobs are selected\n")
    assert waiting("priority", "5000000", "a", check=2).err.startswith("error: priority: expected an integer")


def test_a_held_job_is_passed_over_until_it_is_released(queuectl: Program, start_worker: Any) -> None:
    for job_id in ("a", "b"):
        queuectl("enqueue", "--id", job_id, "true", check=0)
    assert queuectl("hold", "a", check=0).out == "held a\n"
    assert start_worker("--drain").wait() == 0
    job = show(queuectl, "a")
    assert (job["state"], job["held"], job["reason"]) == ("pending", True, "held")
    assert show(queuectl, "b")["state"] == "completed"
    assert queuectl("hold", "--match", "true", "--yes", check=0).out == ""  # it is held already
    assert queuectl("release", "--match", "true", "--yes", check=0).out == "released a\n"
    assert start_worker("--drain").wait() == 0
    assert show(queuectl, "a")["state"] == "completed"
    assert queuectl("hold", "a", check=1).err.startswith("error: job 'a' is completed: cannot hold it\n")


def test_a_held_job_is_shown_as_held_also_before_its_time(waiting: Program) -> None:
    waiting("hold", "a", check=0)
    notes = {line.split()[0]: line for line in waiting("list", check=0).lines[1:]}
    assert notes["a"].endswith(" held")
    assert " due in " in notes["b"]


def test_a_delayed_job_runs_now(waiting: Program, start_worker: Any) -> None:
    worker = start_worker()
    waiting("hold", "b", check=0)
    assert waiting("run-now", "b", check=0).out == "due now b\n"
    waiting("wait", "b", "--timeout", "20s", check=0)
    assert worker.pid
    assert waiting("run-now", "b", check=1).err.startswith("error: job 'b' is completed: cannot run it\n")


def test_a_clone_is_a_new_job_with_the_same_fields(waiting: Program, tmp_path: Path) -> None:
    (job_id,) = waiting("clone", "a", check=0).lines
    one, other = show(waiting, "a"), show(waiting, job_id)
    assert {name for name, value in one.items() if other[name] != value} <= {"id", "created_at", "updated_at"}
    made = waiting("clone", "b", "--id", "c", "--delay", "0", "--cwd", "sub", "--json", check=0, cwd=tmp_path).json
    assert (made["id"], made["argv"], made["queue"], made["duplicate"]) == ("c", ["echo", "x y"], "mail", False)
    assert made["cwd"] == str(tmp_path / "sub")
    assert waiting("clone", "nope", check=1).err.startswith("error: no job 'nope'\n")
    assert waiting("clone", "b", "--id", "c", check=1).err.startswith("error: there is a job 'c' already\n")
    assert waiting("clone", "b", "--priority", "5000000", check=2).err.startswith("error: --priority: ")
