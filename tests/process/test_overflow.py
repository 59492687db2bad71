"""More jobs at a time than one process may have descriptors: what they print goes through several, and is bounded all the same."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from queuectl.jobs.outcome import Exited, Signalled
from queuectl.process.ledger import read_ledger
from queuectl.process.protocol import Order
from queuectl.process.spawn import SystemProcesses
from queuectl.process.watch import Child
from tests.e2e.processes import Process, children, is_running
from tests.process.test_pump import LIMIT, printed, shell
from tests.process.test_spawn import begin, bury, end_of, open_processes, order
from tests.wait import wait_until


@pytest.fixture
def opening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AbstractContextManager[SystemProcesses]:
    """With a keeper that may have no more than 24 descriptors, and cannot raise that."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nulimit -n 24\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(python))
    return open_processes(tmp_path)


@pytest.fixture
def processes(opening: AbstractContextManager[SystemProcesses]) -> Iterator[SystemProcesses]:
    with opening as made:
        made.limit_logs(LIMIT)
        yield made


def log_of(folder: Path, slot: int) -> Path:
    return folder / f"{slot}.log"


def orders(folder: Path, words: str, slots: range) -> list[Order]:
    """Each into a log of its own; `{slot}` is which one it is."""
    return [
        order(shell(words.replace("{slot}", str(slot))), str(log_of(folder, slot)), path=b"/bin:/usr/bin", slot=slot)
        for slot in slots
    ]


def all_of(made: list[Child | Exception]) -> list[Child]:
    found = [child for child in made if isinstance(child, Child)]
    assert len(found) == len(made)
    return found


def until(go: Path) -> str:
    return f"until [ -e '{go}' ]; do sleep 0.05; done"


def reliefs(parent: int) -> list[Process]:
    return [found for found in children(parent) if "relieve.py" in found.words]


def keeper_in(folder: Path) -> int:
    keeper = read_ledger(str(folder / "runs")).keeper
    assert keeper is not None
    return keeper.pid


def test_logs_are_whole_and_bounded_however_few_descriptors_a_process_may_have(
    processes: SystemProcesses, tmp_path: Path
) -> None:
    go, slots = tmp_path / "go", range(40)
    words = f"{until(go)}; seq {{slot}}00 30000; echo end; exit {{slot}}"  # more than a pipe holds, and than a log
    made = all_of(begin(processes, *orders(tmp_path, words, slots)))
    (first,) = reliefs(keeper_in(tmp_path))
    assert len(reliefs(first.pid)) == 1  # that one is full, too
    go.touch()
    for slot, child in zip(slots, made, strict=True):
        assert end_of(processes, child) == Exited(slot)
        assert processes.log_to(child) is not None
        log = log_of(tmp_path, slot)
        assert log.stat().st_size <= LIMIT + LIMIT // 16
        assert printed(log).endswith(b"29999\n30000\nend\n")
        assert log.read_bytes().splitlines()[-1].startswith(b"--- END ")


def test_overflows_go_with_their_keeper(opening: AbstractContextManager[SystemProcesses], tmp_path: Path) -> None:
    with opening as processes:
        go = tmp_path / "go"
        made = all_of(begin(processes, *orders(tmp_path, until(go), range(30))))
        (first,) = reliefs(keeper_in(tmp_path))
        pids = [first.pid, *(found.pid for found in reliefs(first.pid))]
        go.touch()
        for child in made:
            end_of(processes, child)
            processes.reap(child)
        processes.rest()
    wait_until(lambda: not any(map(is_running, pids)), what="all of them to go")


def test_a_limit_that_is_changed_is_told_to_all_who_pump(processes: SystemProcesses, tmp_path: Path) -> None:
    go, slots = tmp_path / "go", range(30)
    made = all_of(begin(processes, *orders(tmp_path, f"{until(go)}; seq 20000", slots)))
    processes.limit_logs(LIMIT // 4)
    go.touch()
    for slot, child in zip(slots, made, strict=True):
        end_of(processes, child)
        assert log_of(tmp_path, slot).stat().st_size <= (LIMIT + LIMIT // 16) // 4


def test_a_relief_that_is_killed_is_replaced_and_costs_what_its_jobs_print(
    processes: SystemProcesses, tmp_path: Path
) -> None:
    go, early, late = tmp_path / "go", range(8), range(8, 16)
    words = f"{until(go)}; echo said; exit 4"
    before = all_of(begin(processes, *orders(tmp_path, words, early)))
    (relief,) = reliefs(keeper_in(tmp_path))
    os.kill(relief.pid, signal.SIGKILL)
    after = all_of(begin(processes, *orders(tmp_path, words, late)))
    go.touch()
    for slot, child in zip(early, before, strict=True):
        assert end_of(processes, child) in (Exited(4), Signalled(signal.SIGPIPE))  # as if its keeper were gone
        assert b"--- END " in log_of(tmp_path, slot).read_bytes()
    for slot, child in zip(late, after, strict=True):
        assert end_of(processes, child) == Exited(4)
        assert printed(log_of(tmp_path, slot)) == b"said\n"
    assert [found.state for found in reliefs(keeper_in(tmp_path))] != ["Z"]


def test_the_next_run_of_a_job_does_not_wait_for_who_pumps_what_the_last_one_left(
    processes: SystemProcesses, tmp_path: Path
) -> None:
    # Both write into one log: the keeper its frame, the relief what comes from behind.
    left = "(while :; do echo late; done) & echo $! >> pids"
    try:
        for slot in range(12):
            (child,) = begin(processes, *orders(tmp_path, f"cd '{tmp_path}'; {left}", range(1)))
            assert isinstance(child, Child)
            assert end_of(processes, child) == Exited(0), slot
            bury(processes, child)
    finally:  # or they would go on for ever, at full speed
        for pid in (tmp_path / "pids").read_text().split():
            os.kill(int(pid), signal.SIGKILL)
    assert log_of(tmp_path, 0).stat().st_size <= LIMIT + LIMIT // 16


def test_those_whom_jobs_left_behind_are_heard_also_after_the_keeper(
    opening: AbstractContextManager[SystemProcesses], tmp_path: Path
) -> None:
    go, slots = tmp_path / "go", range(20)
    with opening as processes:
        for child in all_of(begin(processes, *orders(tmp_path, f"({until(go)}; echo late) & echo first", slots))):
            bury(processes, child)
    go.touch()
    logs = [log_of(tmp_path, slot) for slot in slots]
    wait_until(lambda: all(printed(log) == b"first\nlate\n" for log in logs), what="all of them to be heard")


def test_secrets_are_taken_out_whoever_pumps(processes: SystemProcesses, tmp_path: Path) -> None:
    go, slots = tmp_path / "go", range(30)
    words = f"{until(go)}; printf 'pw=hun'; sleep 0.1; echo 'ter2-{{slot}}.'"
    made = [
        one._replace(masks=[("db", b"hunter2-%d" % slot)])
        for slot, one in zip(slots, orders(tmp_path, words, slots), strict=True)
    ]
    begun = all_of(begin(processes, *made))
    assert len(reliefs(keeper_in(tmp_path))) == 1
    go.touch()
    for slot, child in zip(slots, begun, strict=True):
        assert end_of(processes, child) == Exited(0)
        assert printed(log_of(tmp_path, slot)) == b"pw=***.\n"
