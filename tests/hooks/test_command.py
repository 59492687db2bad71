from __future__ import annotations

from pathlib import Path

import pytest

from queuectl.errors import CommandFailed
from queuectl.hooks.command import run
from tests.e2e.processes import wait_until_gone


def test_a_command_is_run_where_and_with_what_it_is_to_be(tmp_path: Path) -> None:
    assert run("pwd; echo $A", alert="a", cwd=str(tmp_path), env={"A": "b"}) == "b"
    assert run("pwd >&2", alert="a", cwd=str(tmp_path), env={}) == str(tmp_path)
    assert run("true", alert="a", cwd="/", env={}) == ""


@pytest.mark.parametrize(
    "command, problem",
    [
        ("echo first; echo why; exit 3", "exit code 3: why"),
        ("exit 3", "exit code 3"),
        ("kill -9 $$", "killed by signal 9"),
        ("-no-such-program-of-ours", "exit code 127"),
    ],
)
def test_one_that_fails_says_how(command: str, problem: str) -> None:
    with pytest.raises(CommandFailed, match=problem) as failed:
        run(command, alert="deaths", cwd="/", env={"PATH": "/bin:/usr/bin"})
    assert "deaths" in failed.value.message


def test_one_that_does_not_end_or_cannot_begin_is_given_up(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match=r"more than 0\.05 s"):
        run("exec sleep 60", alert="a", cwd="/", env={"PATH": "/bin:/usr/bin"}, seconds=0.05)
    with pytest.raises(CommandFailed, match="cannot be run"):
        run("true", alert="a", cwd=str(tmp_path / "gone"), env={})


def test_what_takes_too_long_is_ended_with_all_that_it_has_started(tmp_path: Path) -> None:
    child = tmp_path / "child"
    with pytest.raises(CommandFailed, match="took more than"):
        run(
            f"sleep 600 & echo $! > {child}.new; mv {child}.new {child}; wait",
            alert="a",
            cwd=str(tmp_path),
            env={"PATH": "/usr/bin:/bin"},
            seconds=2,
        )
    assert child.exists(), "it had no time to begin"
    wait_until_gone([int(child.read_text())])
