from __future__ import annotations

import json
from pathlib import Path

import pytest

from queuectl import errors, read_env_file
from tests.program import Program


def env_of(queuectl: Program, *arguments: str, input: str | None = None) -> dict[str, str]:
    """The environment of the single job that these arguments add."""
    job_id = queuectl("enqueue", *arguments, input=input, check=0).out.strip()
    env: dict[str, str] = queuectl("show", job_id, "--json", "--show-env", check=0).json["env"]
    return env


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "app.env"
    path.write_text("# of the app\nexport A=1\nB='two words'\n")
    return str(path)


def test_the_variables_of_a_file_are_those_of_the_job(queuectl: Program, file: str) -> None:
    assert env_of(queuectl, "true", "--env-file", file) == {"A": "1", "B": "two words"}


def test_env_overrides_the_file_and_the_file_overrides_json(queuectl: Program, file: str) -> None:
    given = json.dumps({"command": "true", "env": {"A": "json", "C": "3"}})
    assert env_of(queuectl, given, "--env-file", file, "--env", "B=x") == {"A": "1", "B": "x", "C": "3"}


def test_of_two_files_the_later_one_counts(queuectl: Program, file: str, tmp_path: Path) -> None:
    (tmp_path / "more.env").write_text("A=more\n")
    more = str(tmp_path / "more.env")
    assert env_of(queuectl, "true", "--env-file", file, "--env-file", more) == {"A": "more", "B": "two words"}


def test_stdin_may_be_the_file(queuectl: Program) -> None:
    assert env_of(queuectl, "true", "--env-file", "-", input="A=1\n") == {"A": "1"}


@pytest.mark.parametrize("arguments", [("--file", "-"), ("--for-each", "-", "echo {}"), ("-",), ("--stream",)])
def test_stdin_cannot_be_read_twice(queuectl: Program, arguments: tuple[str, ...]) -> None:
    printed = queuectl("enqueue", "--env-file", "-", *arguments, input="A=1\n", check=2).err
    assert "both read stdin" in printed
    assert not queuectl.home.exists()


@pytest.mark.parametrize("arguments", [("--file", "-"), ("-",)])
def test_run_cannot_read_stdin_twice_either(queuectl: Program, arguments: tuple[str, ...]) -> None:
    assert "both read stdin" in queuectl("run", "--env-file", "-", *arguments, input="A=1\n", check=2).err


def test_an_invalid_line_is_named_and_nothing_is_created(queuectl: Program, tmp_path: Path) -> None:
    (tmp_path / "app.env").write_text("A=1\nhunter2\n")
    printed = queuectl("enqueue", "true", "--env-file", str(tmp_path / "app.env"), check=2).err
    assert f"{tmp_path / 'app.env'}, line 2: " in printed
    assert "hunter2" not in printed
    assert not queuectl.home.exists()


def test_a_file_that_is_not_there_is_named(queuectl: Program) -> None:
    assert "/nowhere.env" in queuectl("enqueue", "true", "--env-file", "/nowhere.env", check=1).err
    assert "empty" in queuectl("enqueue", "true", "--env-file", "", check=2).err


def test_a_schedule_and_a_clone_take_it_too(queuectl: Program, file: str) -> None:
    queuectl("cron", "add", "nightly", "0 2 * * *", "true", "--env-file", file, check=0)
    assert queuectl("cron", "show", "nightly", "--json", check=0).json["job"]["env"] == {"A": "***", "B": "***"}
    first = queuectl("enqueue", "true", "--env", "A=0", check=0).out.strip()
    copy = queuectl("clone", first, "--env-file", file, check=0).out.strip()
    assert queuectl("show", copy, "--json", "--show-env", check=0).json["env"] == {"A": "1", "B": "two words"}


def test_python_reads_such_a_file(file: str) -> None:
    assert read_env_file(Path(file)) == {"A": "1", "B": "two words"}
    with pytest.raises(errors.FileUnreadable):
        read_env_file("/nowhere\0")
