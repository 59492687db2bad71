"""Which processes belong to a run, and that no other process is ever signalled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from queuectl.process import tree
from queuectl.process.model import TOKEN_VARIABLE, Child, ProcessInfo
from queuectl.process.system import system
from tests.e2e.processes import is_running
from tests.wait import wait_until

UNUSED_PID = 2**22 + 1


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    environment = {**os.environ, TOKEN_VARIABLE: "its-token"}
    with subprocess.Popen(["sleep", "1000"], env=environment, start_new_session=True) as process:
        wait_until(lambda: system.tokens(process.pid) == ["its-token"], what="it to be started")
        yield process
        process.kill()


def test_a_name_with_parentheses_and_spaces_is_no_problem(tmp_path: Path) -> None:
    program = tmp_path / ") Z 1 (a b"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([program, "1000"], start_new_session=True) as process:
        wait_until(lambda: Path(f"/proc/{process.pid}/comm").read_text().startswith(") Z"), what="its name")
        found = tree.find(process.pid)
        assert found is not None
        assert (found.pid, found.group, found.session) == (process.pid,) * 3
        assert not found.is_zombie
        process.kill()


def test_zombies_are_not_alive() -> None:
    with subprocess.Popen(["true"]) as process:
        wait_until(lambda: not tree.is_alive(process.pid), what="it to end")
        assert tree.find(process.pid) is not None
        assert process.pid not in {found.pid for found in system.processes()}


def test_an_unused_pid_is_no_process() -> None:
    assert tree.find(UNUSED_PID) is None
    assert not tree.is_alive(UNUSED_PID)
    assert tree.started(UNUSED_PID) is None
    assert not tree.is_running(Child(UNUSED_PID, 1))


def test_the_token_is_read_from_the_environment_only(sleeper: subprocess.Popen[bytes]) -> None:
    assert system.tokens(sleeper.pid) == ["its-token"]
    assert system.tokens(os.getpid()) == []
    assert system.tokens(UNUSED_PID) == []
    environment = {**os.environ, "OTHER": f"{TOKEN_VARIABLE}=its-token", f"X{TOKEN_VARIABLE}": "its-token"}
    with subprocess.Popen(["sleep", "1000"], env=environment) as process:
        wait_until(lambda: Path(f"/proc/{process.pid}/comm").read_text() == "sleep\n", what="it to be started")
        assert system.tokens(process.pid) == []
        process.kill()


def test_a_process_that_has_reused_a_pid_is_not_signalled(sleeper: subprocess.Popen[bytes]) -> None:
    found = tree.find(sleeper.pid)
    assert found is not None
    other = found._replace(started=found.started - 1000)
    tree.send(signal.SIGKILL, [other, ProcessInfo(UNUSED_PID, 1, 1, 1)])
    tree.kill_groups({"a": Child(other.pid, other.started), "b": None, "c": Child(0, 0)})
    assert is_running(sleeper.pid)
    tree.send(signal.SIGKILL, [found])
    assert sleeper.wait(20) == -9


@pytest.mark.parametrize(
    "token, shift, is_member",
    [
        ("its-token", 0, True),  # by token and PID
        ("its-token", 1000, True),  # the token is proof enough
        ("another", 0, True),  # the PID with its start time, too
        ("another", 1000, False),  # the PID alone is not
    ],
)
def test_a_process_of_a_run_is_identified_by_token_or_by_pid_and_start_time(
    sleeper: subprocess.Popen[bytes], token: str, shift: int, is_member: bool
) -> None:
    child = Child(sleeper.pid, (tree.started(sleeper.pid) or 0) + shift)
    assert (sleeper.pid in {found.pid for found in tree.orphans({token: child})}) is is_member


def test_members_of_many_runs_are_found_in_one_pass(sleeper: subprocess.Popen[bytes]) -> None:
    with subprocess.Popen(["sh", "-c", "sleep 1000 & exec sleep 1000"], start_new_session=True) as other:
        wait_until(
            lambda: len(tree.members({"b": Child(other.pid, tree.started(other.pid) or 0)})["b"]) == 2, what="both"
        )
        runs = {"its-token": None, "b": Child(other.pid, tree.started(other.pid) or 0), "c": Child(0, 0)}
        found = tree.members(runs)
        assert [one.pid for one in found["its-token"]] == [sleeper.pid]
        assert other.pid in {one.pid for one in found["b"]}
        assert found["c"] == []
        tree.kill_groups({"b": runs["b"]})
        assert other.wait(20) == -9
        wait_until(lambda: not tree.members({"b": runs["b"]})["b"], what="all of it to end")


BLIND = """
import errno, os
from queuectl.process import tree
from queuectl.process.model import Child
from queuectl.process.system import system
own = os.getpid()
ways = [
    lambda: tree.find(own), lambda: tree.is_alive(own), lambda: system.tokens(own), lambda: list(system.processes()),
    lambda: tree.orphans({"token": None}), lambda: tree.members({"token": Child(own, tree.started(own) or 1)}),
]
for way in ways:
    way()
try:
    while True:
        os.dup(0)
except OSError:
    pass
for number, way in enumerate(ways):
    try:
        way()
    except OSError as exc:
        assert exc.errno == errno.EMFILE, exc
    else:
        raise AssertionError(f"{number} has found no process instead of an error")
assert tree.started(own) is None
"""


def test_without_descriptors_no_process_is_taken_for_dead() -> None:
    done = subprocess.run([sys.executable, "-c", BLIND], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
