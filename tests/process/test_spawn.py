"""Making processes: what is known of them, and that nothing of them stays."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from queuectl.clock import SystemClock
from queuectl.job.outcome import Exited, Signalled
from queuectl.process.libc import Words
from queuectl.process.spawn import Begun, CannotSpawn, Child, Order, SystemProcesses
from queuectl.process.table import started
from tests.wait import wait_until

ENTERS = pytest.mark.parametrize("processes", [True, False], indirect=True, ids=["told", "goes there"])


@pytest.fixture
def processes(request: pytest.FixtureRequest) -> Iterator[SystemProcesses]:
    """Of a C library that can be told the working directory, or of one that cannot."""
    made = SystemProcesses(SystemClock(), knows_directories=getattr(request, "param", True))
    yield made
    made.close()


@pytest.fixture
def out() -> Iterator[int]:
    fd = os.open(os.devnull, os.O_WRONLY)
    yield fd
    os.close(fd)


def begin(processes: SystemProcesses, *orders: Order) -> list[Child | CannotSpawn]:
    processes.begin(orders)
    return [begun.child for begun in processes.begun(wait=True)]


def spawn(processes: SystemProcesses, argv: Sequence[bytes], out: int, *, cwd: str = "/", path: bytes = b"") -> Child:
    (child,) = begin(processes, Order(argv, cwd, Words([b"A=b"]), [b"PATH=" + path], out))
    if isinstance(child, CannotSpawn):
        raise child
    return child


def test_a_child_is_known_by_the_start_time_that_the_table_says(processes: SystemProcesses, out: int) -> None:
    for _ in range(300):  # some of them while the clock ticks
        child = spawn(processes, [b"/bin/true"], out)
        assert child.started == started(child.pid)
        processes.reap(child)
        assert started(child.pid) is None


@pytest.mark.parametrize("command, how", [(b"exit 3", Exited(3)), (b"kill -9 $$", Signalled(9)), (b":", Exited(0))])
def test_a_child_that_ended_can_be_looked_at_until_it_is_buried(
    processes: SystemProcesses, out: int, command: bytes, how: Exited | Signalled
) -> None:
    child = spawn(processes, [b"/bin/sh", b"-c", command], out)
    wait_until(lambda: processes.peek(child), what="it to end")
    assert processes.peek(child) == how
    assert started(child.pid) == child.started
    processes.reap(child)
    assert started(child.pid) is None


@ENTERS
def test_orders_are_told_of_in_their_order_those_that_failed_among_them(
    processes: SystemProcesses, out: int, tmp_path: Path
) -> None:
    good, bad = [b"/bin/sh", b"-c", b"pwd -P >> where"], [b"/no/such"]
    places = [tmp_path / f"{number}" for number in range(12)]
    orders = []
    for number, place in enumerate(places):
        place.mkdir()
        orders.append(Order(bad if number % 5 == 2 else good, str(place), Words([]), [], out))
    found = begin(processes, *orders)
    for number, (child, place) in enumerate(zip(found, places, strict=True)):
        if number % 5 == 2:
            assert str(child) == "no such program: /no/such"
        else:
            assert isinstance(child, Child)
            processes.reap(child)
            assert (place / "where").read_text().strip() == str(place.resolve())


def test_who_waits_is_told_when_the_last_order_is_begun(processes: SystemProcesses, out: int) -> None:
    processes.begin([Order([b"/bin/true"], "/", Words([]), [], out)] * 2)
    found: list[Begun] = []
    while len(found) < 2:
        assert select.select([processes], [], [], 30)[0]
        found += processes.begun()
    for begun in found:
        assert isinstance(begun.child, Child)
        processes.reap(begun.child)
    assert not processes.begun()
    assert not processes.begun(wait=True)


@ENTERS
def test_spawning_leaves_no_descriptor_and_us_where_we_were(processes: SystemProcesses, out: int) -> None:
    before, place = sorted(os.listdir("/proc/self/fd")), os.getcwd()
    processes.reap(spawn(processes, [b"/bin/true"], out))
    for argv, cwd in (([b"/no/such"], "/"), ([b"/bin/true"], "/no/such"), ([b"/bin/true\0"], "/"), ([b"x"], "/\0")):
        with pytest.raises(CannotSpawn):
            spawn(processes, argv, out, cwd=cwd)
    assert (sorted(os.listdir("/proc/self/fd")), os.getcwd()) == (before, place)


@ENTERS
def test_a_program_is_looked_for_on_the_path_of_the_job(processes: SystemProcesses, out: int, tmp_path: Path) -> None:
    first, second = (os.path.join(tmp_path, name) for name in ("first", "second"))
    for folder, mode in ((first, 0o644), (second, 0o755)):
        os.mkdir(folder)
        with open(os.path.join(folder, "tool"), "w", opener=lambda p, f, mode=mode: os.open(p, f, mode)) as file:
            file.write("#!/bin/sh\nexit 7\n")
    path = os.fsencode(f"/no/such:{first}/tool:{first}:{second}")
    child = spawn(processes, [b"tool"], out, path=path)
    wait_until(lambda: processes.peek(child), what="it to end")
    assert processes.peek(child) == Exited(7)  # the first one that may be run
    processes.reap(child)
    with pytest.raises(CannotSpawn, match="not executable: tool"):
        spawn(processes, [b"tool"], out, path=os.fsencode(first))
    with pytest.raises(CannotSpawn, match="no such program: tool"):
        spawn(processes, [b"tool"], out, path=b"/no/such")


@ENTERS
@pytest.mark.parametrize("cwd, why", [("/no/such", "no such file"), ("/bin/sh", "not a dir"), ("/\0", "null ")])
def test_a_directory_that_cannot_be_entered_is_told_from_a_program_that_is_not_there(
    processes: SystemProcesses, out: int, cwd: str, why: str
) -> None:
    with pytest.raises(CannotSpawn, match=f"the working directory .* cannot be entered: .*{why}"):
        spawn(processes, [b"/bin/true"], out, cwd=cwd)
