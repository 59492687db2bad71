"""A worker that somebody has stopped: seen, woken, ended, and never taken for anybody else."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from queuectl.config import Here
from queuectl.jobs.model import Worker
from queuectl.maintenance import stopped
from queuectl.maintenance.liveness import is_serving
from queuectl.paths import lock_file
from queuectl.process.table import entry
from queuectl.units import from_ms
from tests.wait import wait_until

HERE = Here("here", "here")
LEASE_MS = 30_000

HOLD = """
import sys
from queuectl.filelock import take_lock
lock = take_lock(sys.argv[1]) if len(sys.argv) > 1 else None
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def worker(tmp_path: Path) -> Worker:
    (tmp_path / "workers").mkdir()
    return Worker("w1", "here", 0, str(tmp_path), "running", 1, 0, None, from_ms(0), from_ms(0), 0, 0, "here")


@contextlib.contextmanager
def process(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    """It holds the lock of which it is given the name, if any."""
    with subprocess.Popen([sys.executable, "-c", HOLD, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        try:
            yield child
        finally:
            child.send_signal(signal.SIGCONT)


def stop(child: subprocess.Popen[bytes]) -> None:
    child.send_signal(signal.SIGSTOP)
    wait_until(lambda: state(child) == "T", what="it to be stopped")


def state(child: subprocess.Popen[bytes]) -> str | None:
    found = entry(child.pid)
    return None if found is None else found.state


def test_a_stopped_worker_is_seen_and_can_be_woken(worker: Worker) -> None:
    with process(lock_file(worker.home, worker.id)) as child:
        worker = replace(worker, pid=child.pid)
        assert not stopped.is_stopped(worker, here=HERE)
        stop(child)
        assert stopped.is_stopped(worker, here=HERE)
        assert not stopped.is_stopped(worker, here=Here("elsewhere", "elsewhere"))
        stopped.wake(worker, here=HERE)
        wait_until(lambda: state(child) == "S", what="it to go on")


def test_a_stopped_worker_can_be_ended(worker: Worker) -> None:
    with process(lock_file(worker.home, worker.id)) as child:
        stop(child)
        stopped.kill(replace(worker, pid=child.pid), here=HERE)
        assert child.wait(20) == -signal.SIGKILL


def test_who_has_the_number_of_a_worker_and_not_its_lock_is_left_alone(worker: Worker) -> None:
    with process(lock_file(worker.home, worker.id)), process() as stranger:
        worker = replace(worker, pid=stranger.pid)
        stop(stranger)
        assert not stopped.is_stopped(worker, here=HERE)
        stopped.wake(worker, here=HERE)
        stopped.kill(worker, here=HERE)
        assert state(stranger) == "T"


def test_only_who_is_stopped_past_its_lease_serves_no_longer(worker: Worker) -> None:
    def serves(at_ms: int) -> bool:
        return is_serving(worker, here=HERE, now_ms=at_ms, lease_ms=lambda: LEASE_MS)

    with process(lock_file(worker.home, worker.id)) as child:
        worker = replace(worker, pid=child.pid)
        assert serves(LEASE_MS * 100)  # the wall clock may have jumped: its process runs
        stop(child)
        assert serves(LEASE_MS - 1)
        assert not serves(LEASE_MS)


def test_of_another_host_its_last_sign_has_to_tell(worker: Worker) -> None:
    worker = replace(worker, host="elsewhere", machine="elsewhere")
    assert is_serving(worker, here=HERE, now_ms=LEASE_MS - 1, lease_ms=lambda: LEASE_MS)
    assert not is_serving(worker, here=HERE, now_ms=LEASE_MS, lease_ms=lambda: LEASE_MS)
