"""What jobs print, on its way into their logs, through a keeper."""

from __future__ import annotations

import errno
import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from queuectl.jobs.outcome import Exited, Signalled
from queuectl.logs.bounds import gone_line
from queuectl.logs.writing import Writing
from queuectl.process.ledger import read_ledger
from queuectl.process.orders import CannotLog
from queuectl.process.protocol import CannotSpawn
from queuectl.process.pump import Pump
from queuectl.process.spawn import SystemProcesses
from queuectl.process.watch import Child, is_there
from tests.e2e.processes import descriptors
from tests.process.test_spawn import HEAD, begin, bury, end_of, open_processes, order, spawn
from tests.wait import wait_until

LIMIT = 64 * 1024


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[SystemProcesses]:
    with open_processes(tmp_path) as made:
        made.limit_logs(LIMIT)
        yield made


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "job.log"


def printed(log: Path) -> bytes:
    """What is in a log without our lines."""
    return b"".join(line for line in log.read_bytes().splitlines(keepends=True) if not line.startswith(b"--- "))


def shell(words: str) -> list[bytes]:
    return [b"/bin/sh", b"-c", words.encode()]


def test_all_that_was_printed_is_in_the_log_when_the_end_is_told(processes: SystemProcesses, log: Path) -> None:
    for number in range(30):
        child = spawn(processes, shell(f"echo out {number}; echo err {number} >&2"), str(log))
        assert end_of(processes, child) == Exited(0)
        assert printed(log).decode().endswith(f"out {number}\nerr {number}\n")
        bury(processes, child)


def test_the_frame_of_a_run_that_ends_by_itself_is_whole_when_the_end_is_told(
    processes: SystemProcesses, log: Path
) -> None:
    for words, how in (("echo said", b"rc=0"), ("printf open; exit 3", b"rc=3"), ("kill -9 $$", b"signal=9")):
        log.unlink(missing_ok=True)
        child = spawn(processes, shell(words), str(log))
        end_of(processes, child)
        first, *between, last = log.read_bytes().splitlines(keepends=True)
        assert first == HEAD
        assert last.startswith(b"--- END ")
        assert how in last
        assert b" duration=" in last
        log_to = processes.log_to(child)
        assert log_to is not None
        assert b"".join(between)[: log_to - len(HEAD)].strip() == printed(log).strip()
        bury(processes, child)


def test_the_end_of_a_run_that_we_end_is_ours_to_write(processes: SystemProcesses, log: Path) -> None:
    child = spawn(processes, shell("echo said; exec sleep 60"), str(log), path=b"/bin:/usr/bin")
    wait_until(lambda: printed(log) == b"said\n", what="it to be in the log")
    processes.leave_ends([child])
    processes.kill_group(child)
    assert end_of(processes, child) == Signalled(9)
    assert processes.log_to(child) is None
    assert log.read_bytes() == HEAD + b"said\n"


def test_word_that_we_end_a_run_is_heard_before_its_end_is_seen(
    processes: SystemProcesses, log: Path, tmp_path: Path
) -> None:
    child = spawn(processes, shell("exec sleep 60"), str(log), path=b"/bin:/usr/bin")
    keeper = read_ledger(str(tmp_path / "runs")).keeper
    assert keeper is not None
    os.kill(keeper.pid, signal.SIGSTOP)  # so that both have come when it looks
    processes.leave_ends([child])
    os.kill(child.pid, signal.SIGTERM)
    wait_until(lambda: not is_there(child), what="it to end")
    os.kill(keeper.pid, signal.SIGCONT)
    assert end_of(processes, child) == Signalled(15)
    assert processes.log_to(child) is None
    assert log.read_bytes() == HEAD


def test_how_a_run_ended_is_in_its_log_once_if_the_worker_goes_before_it_can_settle(tmp_path: Path, log: Path) -> None:
    with open_processes(tmp_path) as processes:
        child = spawn(processes, shell("exit 5"), str(log))
        end_of(processes, child)  # and is not buried
    ledger = str(tmp_path / "runs")
    finish = wait_until(lambda: read_ledger(ledger).runs["token-0"].finish, what="the keeper to write it down")
    assert finish.how == Exited(5)
    assert finish.log_to == len(HEAD)
    assert log.read_bytes().count(b"--- END") == 1


def test_a_job_that_prints_more_than_a_pipe_holds_is_not_held_up(processes: SystemProcesses, log: Path) -> None:
    child = spawn(processes, [b"/usr/bin/head", b"-c", b"40000", b"/dev/zero"], str(log))
    assert end_of(processes, child) == Exited(0)
    assert log.read_bytes().startswith(HEAD + bytes(40000) + b"\n--- END ")
    more = spawn(processes, [b"/usr/bin/head", b"-c", b"5000000", b"/dev/zero"], str(log))
    assert end_of(processes, more) == Exited(0)
    assert log.stat().st_size <= LIMIT + LIMIT // 16


def test_a_job_without_stdout_ends_as_any_other(processes: SystemProcesses, log: Path) -> None:
    child = spawn(processes, shell("exec >&- 2>&-; exit 3"), str(log))
    assert end_of(processes, child) == Exited(3)


def test_where_the_log_cannot_be_begun_nothing_runs(processes: SystemProcesses, tmp_path: Path) -> None:
    place, mark = tmp_path / "folder", tmp_path / "mark"
    place.mkdir()
    words = shell(f"echo > '{mark}'")
    refused, fine = begin(processes, order(words, str(place)), order([b"/bin/true"], str(tmp_path / "new" / "a.log")))
    assert isinstance(refused, CannotLog)
    assert refused.errno == errno.EISDIR
    assert isinstance(fine, Child)
    assert end_of(processes, fine) == Exited(0)
    assert not mark.exists()


def test_a_log_that_somebody_removes_or_replaces_costs_its_output_only(processes: SystemProcesses, log: Path) -> None:
    for replace in (False, True):
        go = log.with_name("go")
        go.unlink(missing_ok=True)
        waits = shell(f"until [ -e '{go}' ]; do /bin/sleep 0.02; done; echo said; exit 4")
        child = spawn(processes, waits, str(log))
        log.unlink()
        if replace:
            log.mkdir()
        go.touch()
        assert end_of(processes, child) == Exited(4)
        assert processes.log_to(child) is None


def test_a_log_that_somebody_has_emptied_begins_with_a_line_of_ours(processes: SystemProcesses, log: Path) -> None:
    forged = gone_line(10**9, b"1KiB").decode().strip()
    go = log.with_name("go")
    child = spawn(processes, shell(f"until [ -e '{go}' ]; do /bin/sleep 0.02; done; echo '{forged}'"), str(log))
    log.write_bytes(b"")
    go.touch()
    end_of(processes, child)
    assert log.read_bytes().splitlines()[:2] == [gone_line(0, b"64KiB").strip(), forged.encode()]


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
    assert printed(log) == b"first\nlate\n"


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
        end_of(processes, spawn(processes, [b"/bin/true"], str(log)))
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
        log.append(bytes(limit - 1000) + b"\n")
    pump = Pump(limit)
    pipe, out = pump.open(str(path), HEAD, is_first=False)
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
    pump.finish(pipe, b"--- END ---\n")
    assert path.read_bytes().endswith(b"y" * 40_000 + b"the end\n--- END ---\n")
    assert not pump
