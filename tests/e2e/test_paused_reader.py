"""A reader that pauses (`queuectl list --json | less`) does not keep the write-ahead log of SQLite from being reused."""

from __future__ import annotations

import array
import fcntl
import json
import subprocess
import termios
from itertools import islice
from pathlib import Path

import pytest

from queuectl import Queue
from queuectl.store.open import open_store
from tests.e2e.processes import process
from tests.factories import new_job
from tests.program import Program
from tests.wait import wait_until

JOBS = 3_000
WRITTEN = 40 * 2**20
MOST = 16 * 2**20  # bytes of the log: some checkpoints' worth, and much less than what is written


@pytest.fixture
def full(queuectl: Program) -> Program:
    """A home with more jobs than fit into a pipe."""
    store = open_store(str(queuectl.home))
    store.enqueue([new_job() for _ in range(JOBS)])
    store.close()
    return queuectl


def log_after_writing(home: Path) -> int:
    """The size of the log after far more has been written than it holds."""
    store = open_store(str(home))
    for _ in range(WRITTEN // 2**20):
        store.enqueue([new_job(command="x" * 100_000) for _ in range(10)])
    size = (home / "queue.db-wal").stat().st_size
    store.close()
    return size


def waits_for_its_reader(child: subprocess.Popen[bytes]) -> bool:
    """Whether its pipe is full, which may be less than its size since pages are not shared, and it sleeps."""
    assert child.stdout is not None
    waiting = array.array("i", [0])
    fcntl.ioctl(child.stdout, termios.FIONREAD, waiting)
    return waiting[0] >= 30_000 and (found := process(child.pid)) is not None and found.state == "S"


@pytest.mark.parametrize("words", [("list", "--json"), ("export",)], ids=" ".join)
def test_the_log_stays_small_while_a_command_waits_for_its_reader(full: Program, words: tuple[str, ...]) -> None:
    with full.start(*words, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        wait_until(lambda: waits_for_its_reader(child), what="it to wait for its reader")
        assert log_after_writing(full.home) < MOST
        printed = json.load(child.stdout)
    assert child.returncode == 0
    assert len(printed) == JOBS


def test_the_log_stays_small_while_a_python_program_takes_its_time(full: Program) -> None:
    with Queue(full.home) as queue:
        jobs = iter(queue.jobs())
        assert len(list(islice(jobs, 10))) == 10
        assert log_after_writing(full.home) < MOST
        assert len(list(jobs)) == JOBS - 10
