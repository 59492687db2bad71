"""A process that is stopped while it holds the write lock is killed after a lease; any other holder is only named."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from queuectl import errors
from queuectl.maintenance.lock_breaker import Killed, LockBreaker
from queuectl.store.open import open_store
from queuectl.store.store import Store
from tests.clock import FakeClock
from tests.e2e.processes import is_running, process
from tests.factories import new_job
from tests.locks import holds_write_lock
from tests.users import other
from tests.wait import wait_until

LEASE = 20.0
HOLD = """
import os, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("begin immediate")
if len(sys.argv) > 2:
    os.setresuid(*[int(sys.argv[2])] * 3)
print("ready", flush=True)
sys.stdin.read()
"""


class Waiting:
    """A store that waits for the lock under a clock of its own, with a lock breaker."""

    def __init__(self, home: Path) -> None:
        self.clock = FakeClock()
        self.killed: list[Killed] = []
        self.breaker = LockBreaker({"QUEUECTL_LEASE": f"{LEASE}s"}, self.clock, on_kill=self.killed.append)
        self.database = home / "queue.db"
        self.home = home

    def open(self, *, patience: float = 30.0) -> Store:
        return open_store(
            str(self.home),
            None,
            self.clock,
            patience=patience,
            on_wait=lambda path, _, stored: self.breaker(path, stored),
        )


@pytest.fixture
def waiting(home: Path) -> Waiting:
    made = Waiting(home)
    made.open().close()
    return made


@contextlib.contextmanager
def holder(waiting: Waiting, program: str, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process with this name that holds the write lock."""
    script = waiting.home.parent / program
    script.write_text(HOLD)
    command = [sys.executable, str(script), str(waiting.database), *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        assert holds_write_lock(child.pid, waiting.database)
        try:
            yield child
        finally:
            child.send_signal(signal.SIGCONT)


def stop(child: subprocess.Popen[bytes]) -> None:
    child.send_signal(signal.SIGSTOP)
    wait_until(lambda: (found := process(child.pid)) and found.state == "T", what="it to be stopped")


def test_a_stopped_holder_is_killed_after_the_lease_and_the_write_succeeds(waiting: Waiting) -> None:
    store = waiting.open()
    with holder(waiting, "queuectl") as child:
        stop(child)
        begun = waiting.clock.monotonic()
        store.enqueue([new_job("a")])
        assert child.wait(20) == -signal.SIGKILL
    assert waiting.clock.monotonic() - begun >= LEASE
    assert [(killed.pid, killed.seconds >= LEASE) for killed in waiting.killed] == [(child.pid, True)]
    assert store.get("a").id == "a"
    store.close()


def test_a_worker_that_waits_in_short_steps_kills_it_too(waiting: Waiting) -> None:
    store = waiting.open(patience=0.25)
    with holder(waiting, "queuectl") as child:
        stop(child)
        for _ in range(200):
            with contextlib.suppress(errors.StoreBusy):
                store.enqueue([new_job("a")])
                break
            waiting.clock.advance(0.1)
        assert child.wait(20) == -signal.SIGKILL
    assert store.get("a").id == "a"
    store.close()


def test_a_command_that_gives_up_before_the_lease_names_the_stopped_process(waiting: Waiting) -> None:
    store = waiting.open(patience=LEASE / 2)
    with holder(waiting, "queuectl") as child:
        stop(child)
        with pytest.raises(errors.StoreBusy) as refused:
            store.enqueue([new_job("a")])
        assert refused.value.hint == (
            f"process {child.pid} (queuectl) is stopped:"
            f" resume it with kill -CONT {child.pid}, or end it with kill -9 {child.pid}"
        )
        assert is_running(child.pid)
    store.close()


def test_a_holder_that_runs_is_never_killed(waiting: Waiting) -> None:
    store = waiting.open(patience=10 * LEASE)
    with holder(waiting, "queuectl") as child:
        with pytest.raises(errors.StoreBusy) as refused:
            store.enqueue([new_job("a")])
        assert refused.value.hint == f"process {child.pid} (queuectl) uses it; try again later"
        assert is_running(child.pid)
    store.close()


def test_a_holder_that_has_run_in_between_is_watched_from_the_beginning(waiting: Waiting) -> None:
    with holder(waiting, "queuectl") as child:
        for _ in range(4):  # as cpulimit does: stopped at every look, and yet it makes progress
            stop(child)
            waiting.breaker(str(waiting.database), dict)
            waiting.clock.advance(LEASE / 2)
            child.send_signal(signal.SIGCONT)
            wait_until(lambda: (found := process(child.pid)) and found.state == "S", what="it to run")
        assert not waiting.killed
        assert is_running(child.pid)


def test_another_program_is_named_and_not_killed(waiting: Waiting) -> None:
    store = waiting.open(patience=10 * LEASE)
    with holder(waiting, "backup-script") as child:
        stop(child)
        with pytest.raises(errors.StoreBusy) as refused:
            store.enqueue([new_job("a")])
        assert f"kill -CONT {child.pid}" in refused.value.hint
        assert is_running(child.pid)
    store.close()


def test_a_process_of_another_user_is_not_killed(waiting: Waiting) -> None:
    store = waiting.open(patience=10 * LEASE)
    with holder(waiting, "queuectl", str(other().pw_uid)) as child:
        stop(child)
        with pytest.raises(errors.StoreBusy):
            store.enqueue([new_job("a")])
        assert is_running(child.pid)
    store.close()
