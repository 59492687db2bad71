"""Control groups of runs."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from queuectl.jobs.outcome import Signalled
from queuectl.process import tree
from queuectl.process.client import SupervisorClient
from queuectl.process.system import IS_PORTABLE
from tests.groups import ESCAPE, group_of, groups_of, require_groups
from tests.process.supervised import exit_of, open_client, record, shell, start, supervisor
from tests.wait import wait_until


@pytest.fixture
def client(tmp_path: Path) -> Iterator[SupervisorClient]:
    if IS_PORTABLE:
        pytest.skip("there are no control groups in portable mode")
    require_groups()
    with open_client(tmp_path) as made:
        yield made


def test_each_run_is_alone_in_its_group_and_cannot_leave_it(client: SupervisorClient, tmp_path: Path) -> None:
    command = f"{ESCAPE} 'echo $$ > {tmp_path}/escaped; exec sleep 1000'; exec sleep 1000"
    child = start(client, shell(command), tmp_path / "log")
    other = start(client, shell("exec sleep 1000"), tmp_path / "log", place=1)
    escaped = wait_until(lambda: _number(tmp_path / "escaped"), what="it to escape")
    assert group_of(child.pid) == group_of(escaped)
    assert group_of(other.pid) not in (group_of(child.pid), group_of(supervisor(tmp_path).pid))
    assert {one.pid for one in tree.members({"token-0": child})["token-0"]} == {child.pid, escaped}
    for one in (child, other):
        client.terminating({one: "cancel"})
        client.kill_group(one)
        wait_until(lambda one=one: client.started() or client.has_exited(one), what="it to end")  # type: ignore[misc]
        client.finish(one)
        exit_of(client, one)
    wait_until(lambda: not tree.is_alive(escaped), what="all of it to end")


def test_an_empty_group_is_used_again_unless_its_run_was_killed(client: SupervisorClient, tmp_path: Path) -> None:
    names = []
    for command in (
        "true",
        "kill -9 $$",
        "true",
        "true",
    ):  # each starts in the group that was free at the start before it
        log = tmp_path / f"{len(names)}.log"
        shown = shell(f"tail -1 /proc/self/cgroup; {command}")
        record(client, start(client, shown, log, token=f"token-{len(names)}"))
        names.append(next(line for line in log.read_text().splitlines() if line.startswith("0::")))
    assert names[2] == names[0]
    assert names[3] != names[1]


def test_a_supervisor_removes_its_groups_and_those_of_dead_ones(tmp_path: Path, client: SupervisorClient) -> None:
    pids = []
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        with open_client(folder) as other:
            record(other, start(other, [b"/bin/true"], folder / "log"))
            pids.append(supervisor(folder).pid)
            assert groups_of(pids[-1])
            if number == 0:
                os.kill(pids[0], signal.SIGKILL)
                wait_until(lambda: other.started() or not other.has_supervisor, what="its death")
    assert not [group for pid in pids for group in groups_of(pid)]


def test_the_supervisor_has_left_the_group_of_a_run_when_it_reports_the_start(
    client: SupervisorClient, tmp_path: Path
) -> None:
    for place in range(3):
        child = start(client, shell("exec sleep 1000"), tmp_path / f"{place}.log", place=place, token=f"token-{place}")
        client.kill_group(child)
        assert exit_of(client, child).how == Signalled(9)
    assert client.has_supervisor


def test_a_run_does_not_count_the_time_of_its_supervisor(client: SupervisorClient, tmp_path: Path) -> None:
    """The supervisor waits in the group of the next run, and collects the output of others meanwhile."""
    noisy = start(client, shell("yes | head -c 200000000"), tmp_path / "noisy.log", place=0)
    exit_of(client, noisy)
    later = start(client, shell("sleep 0.1"), tmp_path / "later.log", place=1, token="token-later")
    usage = exit_of(client, later).report.usage
    assert usage is not None
    assert usage.cpu_user_ms + usage.cpu_system_ms < 50


def _number(path: Path) -> int:
    return int(path.read_text() or 0) if path.exists() else 0
