"""Making processes: what is known of them, and that nothing of them stays."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from queuectl.job.outcome import Exited, Signalled
from queuectl.process.spawn import CannotSpawn, SystemProcesses
from queuectl.process.table import started
from tests.wait import wait_until


@pytest.fixture(autouse=True)
def back_again() -> Iterator[None]:
    """Making processes moves us about."""
    before = os.getcwd()
    yield
    os.chdir(before)


@pytest.fixture
def out() -> Iterator[int]:
    fd = os.open(os.devnull, os.O_WRONLY)
    yield fd
    os.close(fd)


def test_a_child_is_known_by_the_start_time_that_the_table_says(out: int) -> None:
    processes = SystemProcesses()
    for _ in range(300):  # some of them while the clock ticks
        child = processes.spawn([b"/bin/true"], cwd="/", env={}, out=out)
        assert child.started == started(child.pid)
        processes.reap(child)
        assert started(child.pid) is None


@pytest.mark.parametrize("command, how", [(b"exit 3", Exited(3)), (b"kill -9 $$", Signalled(9)), (b":", Exited(0))])
def test_a_child_that_ended_can_be_looked_at_until_it_is_buried(
    out: int, command: bytes, how: Exited | Signalled
) -> None:
    processes = SystemProcesses()
    child = processes.spawn([b"/bin/sh", b"-c", command], cwd="/", env={}, out=out)
    wait_until(lambda: processes.peek(child), what="it to end")
    assert processes.peek(child) == how
    assert started(child.pid) == child.started
    processes.reap(child)
    assert started(child.pid) is None


def test_spawning_leaves_no_descriptor_and_comes_back_to_rest(out: int) -> None:
    processes = SystemProcesses()
    before, place = sorted(os.listdir("/proc/self/fd")), os.getcwd()
    processes.reap(processes.spawn([b"/bin/true"], cwd="/", env={}, out=out))
    for argv, cwd in (([b"/no/such"], "/"), ([b"/bin/true"], "/no/such"), ([b"/bin/true\0"], "/"), ([b"x"], "/\0")):
        with pytest.raises(CannotSpawn):
            processes.spawn(argv, cwd=cwd, env={}, out=out)
    processes.rest()
    assert (sorted(os.listdir("/proc/self/fd")), os.getcwd()) == (before, place)


def test_a_program_is_looked_for_on_the_path_of_the_job(out: int, tmp_path: os.PathLike[str]) -> None:
    processes = SystemProcesses()
    first, second = (os.path.join(tmp_path, name) for name in ("first", "second"))
    for folder, mode in ((first, 0o644), (second, 0o755)):
        os.mkdir(folder)
        with open(os.path.join(folder, "tool"), "w", opener=lambda p, f, mode=mode: os.open(p, f, mode)) as file:
            file.write("#!/bin/sh\nexit 7\n")
    path = os.fsencode(f"/no/such:{first}/tool:{first}:{second}")
    child = processes.spawn([b"tool"], cwd="/", env={b"PATH": path}, out=out)
    wait_until(lambda: processes.peek(child), what="it to end")
    assert processes.peek(child) == Exited(7)  # the first one that may be run
    processes.reap(child)
    with pytest.raises(CannotSpawn, match="not executable: tool"):
        processes.spawn([b"tool"], cwd="/", env={b"PATH": os.fsencode(first)}, out=out)
    with pytest.raises(CannotSpawn, match="no such program: tool"):
        processes.spawn([b"tool"], cwd="/", env={b"PATH": b"/no/such"}, out=out)
