"""Commands that this process runs itself and waits for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from queuectl.clock import SystemClock
from queuectl.process.helper_command import HelperCommand, HelperFailure, run_helper
from queuectl.process.spawn import ChildSetup
from tests.e2e.processes import wait_until_gone
from tests.users import other

ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


def run(
    command: str, *, cwd: str = "/", timeout: float = 20, max_output: int = 1000, is_log: bool = True
) -> bytes | HelperFailure:
    helper = HelperCommand(
        ["/bin/sh", "-c", command], timeout, max_output, {**ENVIRONMENT, "A": "b"}, cwd, name="it", is_log=is_log
    )
    return run_helper(helper, SystemClock())


def test_a_command_has_its_directory_and_its_environment(tmp_path: Path) -> None:
    assert run("pwd; echo $A", cwd=str(tmp_path)) == f"{tmp_path}\nb\n".encode()


def test_the_output_of_a_log_includes_stderr() -> None:
    assert run("echo out; echo error >&2") == b"out\nerror\n"
    assert run("echo out; echo error >&2", is_log=False) == b"out\n"


def test_a_log_keeps_the_end_of_too_much_output() -> None:
    assert run("seq 1 5000", max_output=10) == b"4999\n5000\n"


def test_output_that_is_too_long_is_a_failure() -> None:
    assert run("seq 1 5000", max_output=10, is_log=False) == HelperFailure("it printed more than 10 bytes")


@pytest.mark.parametrize(
    "command, problem, output",
    [
        ("echo why; exit 3", "it ended with exit code 3", b"why\n"),
        ("kill -9 $$", "it was killed by signal 9", b""),
    ],
)
def test_a_command_that_fails_reports_how_and_what_it_printed(command: str, problem: str, output: bytes) -> None:
    assert run(command) == HelperFailure(problem, output)


def test_a_command_that_cannot_start_reports_why(tmp_path: Path) -> None:
    answer = run("true", cwd=str(tmp_path / "gone"))
    assert isinstance(answer, HelperFailure)
    gone = tmp_path / "gone"
    assert (
        answer.problem == f"it cannot be run: the working directory {gone} cannot be entered: no such file or directory"
    )


def test_a_command_that_takes_too_long_is_killed_with_its_children_and_reaped(tmp_path: Path) -> None:
    child = tmp_path / "child"
    answer = run(f"sleep 600 & echo $! $$ > {child}.new; mv {child}.new {child}; wait", timeout=2)
    assert isinstance(answer, HelperFailure)
    assert answer.problem == "it did not end within 2 s"
    assert child.exists(), "it had no time to begin"
    started, shell = map(int, child.read_text().split())
    wait_until_gone([started])
    assert not os.path.exists(f"/proc/{shell}")


def test_a_command_that_prints_without_end_is_killed_at_its_time_limit() -> None:
    answer = run("exec yes", timeout=0.5)
    assert isinstance(answer, HelperFailure)
    assert answer.problem == "it did not end within 0.5 s"


def test_a_command_runs_as_the_user_that_is_named() -> None:
    user = other()
    setup = ChildSetup(user=(user.pw_uid, user.pw_gid), groups=(user.pw_gid,), umask=0o077)
    helper = HelperCommand(["/bin/sh", "-c", "id -u; id -g; umask"], 20, 1000, ENVIRONMENT, "/", setup=setup)
    assert run_helper(helper, SystemClock()) == f"{user.pw_uid}\n{user.pw_gid}\n0077\n".encode()
