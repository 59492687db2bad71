"""Making processes: what is known of them, and that nothing of them stays."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from queuectl import errors
from queuectl.filelock import is_held, take_lock
from queuectl.jobs.outcome import Exited, Signalled
from queuectl.process.ledger import Footprint, Ledger, read_ledger
from queuectl.process.libc import Words
from queuectl.process.orders import CannotLog
from queuectl.process.protocol import Begun, CannotSpawn, Order
from queuectl.process.spawn import SystemProcesses
from queuectl.process.table import started
from queuectl.process.watch import Child, Untold, Watch, is_readable, is_there
from tests.wait import wait_until

HEAD = b"--- START ---\n"


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[SystemProcesses]:
    with open_processes(tmp_path) as made:
        yield made


@contextlib.contextmanager
def open_processes(folder: Path) -> Iterator[SystemProcesses]:
    """With a keeper of their own, which writes into `runs` and holds `lock`."""
    ledger = str(folder / "runs")
    Ledger(ledger).close()
    lock = take_lock(str(folder / "lock"))
    assert lock is not None
    made = SystemProcesses()
    made.open(ledger, lock=lock.fileno(), environment={})
    lock.release()
    yield made
    made.close()


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "job.log"
    path.touch()
    return str(path)


def order(argv: Sequence[bytes], log: str, *, cwd: str = "/", path: bytes = b"", slot: int = 0) -> Order:
    return Order(argv, cwd, Words([b"A=b"]), [b"PATH=" + path], log, HEAD, False, True, slot, f"token-{slot}")


def begin(processes: SystemProcesses, *orders: Order) -> list[Child | CannotSpawn | CannotLog]:
    processes.begin(orders)
    return [begun.child for begun in processes.begun(wait=True)]


def spawn(processes: SystemProcesses, argv: Sequence[bytes], log: str, *, cwd: str = "/", path: bytes = b"") -> Child:
    (child,) = begin(processes, order(argv, log, cwd=cwd, path=path))
    if isinstance(child, Exception):
        raise child
    return child


def end_of(processes: SystemProcesses, child: Child) -> Exited | Signalled | Untold:
    """Wait for it; it is not buried."""

    def ended() -> Exited | Signalled | Untold | None:
        processes.begun()
        return processes.peek(child)

    return wait_until(ended, what="it to end")


def bury(processes: SystemProcesses, child: Child) -> None:
    end_of(processes, child)
    processes.reap(child)
    processes.rest()
    wait_until(lambda: started(child.pid) is None, what="it to be buried")


def test_a_child_is_known_by_the_start_time_that_the_table_says(processes: SystemProcesses, log: str) -> None:
    for _ in range(100):  # some of them while the clock ticks
        child = spawn(processes, [b"/bin/true"], log)
        assert child.started == started(child.pid)
        bury(processes, child)


@pytest.mark.parametrize("command, how", [(b"exit 3", Exited(3)), (b"kill -9 $$", Signalled(9)), (b":", Exited(0))])
def test_a_child_that_ended_can_be_looked_at_until_it_is_buried(
    processes: SystemProcesses, log: str, command: bytes, how: Exited | Signalled
) -> None:
    child = spawn(processes, [b"/bin/sh", b"-c", command], log)
    assert end_of(processes, child) == how
    assert started(child.pid) == child.started
    bury(processes, child)


def test_orders_are_told_of_in_their_order_those_that_failed_among_them(
    processes: SystemProcesses, log: str, tmp_path: Path
) -> None:
    good, bad = [b"/bin/sh", b"-c", b"pwd -P >> where"], [b"/no/such"]
    places = [tmp_path / f"{number}" for number in range(12)]
    orders = []
    for number, place in enumerate(places):
        place.mkdir()
        orders.append(order(bad if number % 5 == 2 else good, f"{log}{number}", cwd=str(place), slot=number))
    found = begin(processes, *orders)
    records = read_ledger(str(tmp_path / "runs"))
    for number, (child, place) in enumerate(zip(found, places, strict=True)):
        if number % 5 == 2:
            assert str(child) == "no such program: /no/such"
            assert f"token-{number}" not in records.runs
        else:
            assert isinstance(child, Child)
            assert records.runs[f"token-{number}"] == Footprint(*child, len(HEAD))
            bury(processes, child)
            assert (place / "where").read_text().strip() == str(place.resolve())


def test_who_waits_is_told_of_what_begins_and_ends(processes: SystemProcesses, log: str) -> None:
    processes.begin([order([b"/bin/true"], log)] * 2)
    found: list[Begun] = []
    children: list[Child] = []
    while len(found) < 2 or not all(processes.peek(child) for child in children):
        assert processes.look_again() is not None or select.select([processes], [], [], 30)[0]
        found += processes.begun()
        children = [begun.child for begun in found if isinstance(begun.child, Child)]
    assert not processes.begun()
    assert not processes.begun(wait=True)


def test_an_end_that_came_in_while_starts_were_noted_is_looked_at_without_another_sign(
    processes: SystemProcesses, log: str
) -> None:
    children = begin(processes, *[order([b"/bin/true"], log, slot=slot) for slot in range(8)])
    wait_until(lambda: processes.begun() or processes.look_again() == 0.0, what="an end to come in")
    wait_until(lambda: not processes.begun() and not is_readable(processes.fileno()), what="all to be told")
    assert processes.look_again() == 0.0
    for child in children:
        assert isinstance(child, Child)
        end_of(processes, child)
    assert processes.look_again() is None


def test_spawning_leaves_no_descriptor_and_us_where_we_were(processes: SystemProcesses, log: str) -> None:
    before, place = sorted(os.listdir("/proc/self/fd")), os.getcwd()
    bury(processes, spawn(processes, [b"/bin/true"], log))
    for argv, cwd in (([b"/no/such"], "/"), ([b"/bin/true"], "/no/such"), ([b"/bin/true\0"], "/"), ([b"x"], "/\0")):
        with pytest.raises(CannotSpawn):
            spawn(processes, argv, log, cwd=cwd)
    assert (sorted(os.listdir("/proc/self/fd")), os.getcwd()) == (before, place)


def test_a_program_is_looked_for_on_the_path_of_the_job(processes: SystemProcesses, log: str, tmp_path: Path) -> None:
    first, second = (os.path.join(tmp_path, name) for name in ("first", "second"))
    for folder, mode in ((first, 0o644), (second, 0o755)):
        os.mkdir(folder)
        with open(os.path.join(folder, "tool"), "w", opener=lambda p, f, mode=mode: os.open(p, f, mode)) as file:
            file.write("#!/bin/sh\nexit 7\n")
    path = os.fsencode(f"/no/such:{first}/tool:{first}:{second}")
    child = spawn(processes, [b"tool"], log, path=path)
    assert end_of(processes, child) == Exited(7)  # the first one that may be run
    with pytest.raises(CannotSpawn, match="not executable: tool"):
        spawn(processes, [b"tool"], log, path=os.fsencode(first))
    with pytest.raises(CannotSpawn, match="no such program: tool"):
        spawn(processes, [b"tool"], log, path=b"/no/such")


@pytest.mark.parametrize("cwd, why", [("/no/such", "no such file"), ("/bin/sh", "not a dir"), ("/\0", "null ")])
def test_a_directory_that_cannot_be_entered_is_told_from_a_program_that_is_not_there(
    processes: SystemProcesses, log: str, cwd: str, why: str
) -> None:
    with pytest.raises(CannotSpawn, match=f"the working directory .* cannot be entered: .*{why}"):
        spawn(processes, [b"/bin/true"], log, cwd=cwd)


@pytest.mark.parametrize("knows", [True, False], ids=["told", "goes there"])
def test_a_process_is_made_in_its_directory_also_where_the_c_library_cannot_be_told(
    tmp_path: Path, knows: bool
) -> None:
    script = (
        "import os, sys; from queuectl.process.making import Making; from queuectl.process.libc import Words\n"
        "argv = [b'/bin/sh', b'-c', b'pwd -P']\n"
        f"made = Making(argv[:1], argv, Words([]), [], cwd=os.fsencode(sys.argv[1]), descriptors=(0, 1, 2), "
        f"knows_directories={knows}).run()\n"
        "assert os.waitpid(made.pid, 0)[1] == 0, made"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(tmp_path.resolve())


def test_a_keeper_that_is_gone_is_said_so(processes: SystemProcesses, log: str, tmp_path: Path) -> None:
    spawn(processes, [b"/bin/true"], log)
    keeper = read_ledger(str(tmp_path / "runs")).keeper
    assert keeper is not None
    os.kill(keeper.pid, signal.SIGKILL)
    wait_until(lambda: not is_there(keeper), what="it to be gone")
    with pytest.raises(errors.SupervisorGone):
        spawn(processes, [b"/bin/true"], log)


def test_a_keeper_ignores_what_ends_its_worker(processes: SystemProcesses, log: str, tmp_path: Path) -> None:
    spawn(processes, [b"/bin/true"], log)
    keeper = read_ledger(str(tmp_path / "runs")).keeper
    assert keeper is not None
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(keeper.pid, number)
    assert end_of(processes, spawn(processes, [b"/bin/true"], log)) == Exited(0)


# ── after the end of the worker ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("command, how", [(b"exit 3", Exited(3)), (b"kill -9 $$", Signalled(9))])
def test_a_keeper_outlives_its_worker_and_writes_down_how_its_children_end(
    tmp_path: Path, log: str, command: bytes, how: Exited | Signalled
) -> None:
    go, ledger = tmp_path / "go", str(tmp_path / "runs")
    with open_processes(tmp_path) as processes:
        script = b"while ! [ -e '%b' ]; do sleep 0.01; done; %b" % (os.fsencode(go), command)
        child = spawn(processes, [b"/bin/sh", b"-c", script], log, path=os.fsencode(os.environ["PATH"]))
        assert is_held(str(tmp_path / "lock"))
    # Nobody waits for the end of the job to know that the worker is gone.
    wait_until(lambda: not is_held(str(tmp_path / "lock")), what="the lock to be let go")
    with closing_watch() as heir:
        assert heir.adopt(child, "token-0", ledger) >= 0
        assert heir.peek(child) is None
        assert not heir.is_restless
        go.touch()
        wait_until(lambda: select.select([heir], [], [], 0)[0], what="the heir to hear of it")
        assert wait_until(lambda: heir.peek(child), what="the end to be written") == how
        assert heir.lasted(child) is not None
    keeper = read_ledger(ledger).keeper
    assert keeper is not None
    wait_until(
        lambda: started(keeper.pid) is None or not is_there(keeper), what="the keeper to go with the last of them"
    )


def test_of_a_child_whose_keeper_is_gone_nobody_can_say_how_it_ended(tmp_path: Path, log: str) -> None:
    ledger = str(tmp_path / "runs")
    with open_processes(tmp_path) as processes:
        child = spawn(processes, [b"/bin/sleep", b"1000"], log)
        keeper = read_ledger(ledger).keeper
        assert keeper is not None
        os.kill(keeper.pid, signal.SIGKILL)
        os.waitpid(keeper.pid, 0)
    with closing_watch() as heir:
        heir.adopt(child, "token-0", ledger)
        assert heir.peek(child) is None
        os.kill(child.pid, signal.SIGKILL)
        assert isinstance(wait_until(lambda: heir.peek(child), what="it to end"), Untold)


@contextlib.contextmanager
def closing_watch() -> Iterator[Watch]:
    watch = Watch()
    yield watch
    watch.close()
