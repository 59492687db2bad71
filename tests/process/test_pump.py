"""What jobs print, on its way into their logs, through a keeper."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from queuectl.job.outcome import Exited
from queuectl.output.bounds import gone_line
from queuectl.output.writing import Writing
from queuectl.process.ledger import read_ledger
from queuectl.process.protocol import CannotSpawn
from queuectl.process.pump import Pump
from queuectl.process.spawn import SystemProcesses
from queuectl.process.watch import Child, is_there
from tests.e2e.processes import descriptors
from tests.process.test_spawn import begin, bury, end_of, open_processes, order, spawn
from tests.wait import wait_until

LIMIT = 64 * 1024


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[SystemProcesses]:
    with open_processes(tmp_path) as made:
        made.limit_logs(LIMIT)
        yield made


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "job.log"
    path.write_bytes(b"--- START ---\n")
    return path


def shell(words: str) -> list[bytes]:
    return [b"/bin/sh", b"-c", words.encode()]


def test_all_that_was_printed_is_in_the_log_when_the_end_is_told(processes: SystemProcesses, log: Path) -> None:
    for number in range(30):
        child = spawn(processes, shell(f"echo out {number}; echo err {number} >&2"), str(log))
        assert end_of(processes, child) == Exited(0)
        assert log.read_text().endswith(f"---\nout {number}\nerr {number}\n" if not number else f"\nerr {number}\n")
        bury(processes, child)


def test_a_job_that_prints_more_than_a_pipe_holds_is_not_held_up(processes: SystemProcesses, log: Path) -> None:
    child = spawn(processes, [b"/usr/bin/head", b"-c", b"40000", b"/dev/zero"], str(log))
    assert end_of(processes, child) == Exited(0)
    assert log.read_bytes() == b"--- START ---\n" + bytes(40000)
    more = spawn(processes, [b"/usr/bin/head", b"-c", b"5000000", b"/dev/zero"], str(log))
    assert end_of(processes, more) == Exited(0)
    assert log.stat().st_size <= LIMIT


def test_a_job_without_stdout_ends_as_any_other(processes: SystemProcesses, log: Path) -> None:
    child = spawn(processes, shell("exec >&- 2>&-; exit 3"), str(log))
    assert end_of(processes, child) == Exited(3)


def test_a_log_that_is_gone_or_no_file_costs_its_output_only(processes: SystemProcesses, tmp_path: Path) -> None:
    place = tmp_path / "folder"
    place.mkdir()
    for path in (tmp_path / "missing.log", place):
        child = spawn(processes, shell("echo said; exit 4"), str(path))
        assert end_of(processes, child) == Exited(4)
    assert not (tmp_path / "missing.log").exists()


def test_a_log_that_somebody_has_emptied_begins_with_a_line_of_ours(processes: SystemProcesses, log: Path) -> None:
    log.write_bytes(b"")
    forged = gone_line(10**9, b"1KiB").decode().strip()
    end_of(processes, spawn(processes, shell(f"echo '{forged}'"), str(log)))
    assert log.read_bytes().splitlines() == [gone_line(0, b"64KiB").strip(), forged.encode()]


def test_a_keeper_with_nothing_to_do_goes_with_its_worker(tmp_path: Path, log: Path) -> None:
    with open_processes(tmp_path) as processes:
        bury(processes, spawn(processes, [b"/bin/true"], str(log)))
        keeper = read_ledger(str(tmp_path / "runs")).keeper
    assert keeper is not None
    assert not is_there(keeper)


def test_a_keeper_stays_for_those_who_may_print_and_is_not_waited_for(tmp_path: Path, log: Path) -> None:
    go = tmp_path / "go"
    with open_processes(tmp_path) as processes:
        processes.limit_logs(LIMIT)
        left = f"until [ -e '{go}' ]; do /bin/sleep 0.02; done; echo late"
        child = spawn(processes, shell(f"({left}) & echo first"), str(log), path=b"/bin")
        bury(processes, child)
        keeper = read_ledger(str(tmp_path / "runs")).keeper
    assert keeper is not None
    assert is_there(keeper)
    go.touch()
    wait_until(lambda: not is_there(keeper), what="the keeper to go with the last who could print")
    assert log.read_text() == "--- START ---\nfirst\nlate\n"


def test_more_jobs_at_a_time_than_a_process_may_have_descriptors(tmp_path: Path, log: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (90, hard))
    try:
        with open_processes(tmp_path) as processes:
            processes.limit_logs(LIMIT)
            go = tmp_path / "go"
            words = shell(f"until [ -e '{go}' ]; do /bin/sleep 0.05; done; echo $0")
            children = []
            for row in range(10):
                children += begin(processes, *[order(words, str(log), slot=10 * row + slot) for slot in range(10)])
            go.touch()
            for child in children:
                assert isinstance(child, Child)
                assert end_of(processes, child) == Exited(0)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert log.read_text().count("/bin/sh\n") == 100


def test_where_no_descriptor_can_be_had_the_job_cannot_be_started_and_the_keeper_goes_on(
    tmp_path: Path, log: Path
) -> None:
    with open_processes(tmp_path) as processes:
        processes.limit_logs(LIMIT)
        spawn(processes, [b"/bin/true"], str(log))
        keeper = read_ledger(str(tmp_path / "runs")).keeper
        assert keeper is not None
        before = resource.prlimit(keeper.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(keeper.pid, resource.RLIMIT_NOFILE, (len(descriptors(keeper.pid)), before[1]))
        with pytest.raises(CannotSpawn, match="too many open files"):
            spawn(processes, [b"/bin/true"], str(log))
        resource.prlimit(keeper.pid, resource.RLIMIT_NOFILE, before)
        assert end_of(processes, spawn(processes, [b"/bin/true"], str(log))) == Exited(0)


def test_a_log_that_takes_long_to_cut_is_cut_in_several_turns_and_loses_nothing(tmp_path: Path) -> None:
    path, limit = tmp_path / "job.log", 16 * 1024**2
    with Writing(str(path), limit=limit, create=True) as log:
        log.append_line(b"--- START ---\n")
        log.append(bytes(limit - 1000))
    pump = Pump(limit)
    pipe, out = pump.open(str(path))
    assert pipe is not None
    wait_until(lambda: pump.patience() == 0, what="it to be watched")
    pump.turn()
    os.write(out, b"y" * 40_000)
    turns = 0
    while not path.read_bytes().endswith(b"y"):
        pump.turn()
        turns += 1
        assert turns < 100
    assert turns > 1
    os.write(out, b"the end")
    os.close(out)
    pump.finish(pipe)
    assert path.read_bytes().endswith(b"\0" + b"y" * 40_000 + b"the end")
    assert not pump
