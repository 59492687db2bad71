"""Whether workers are alive, by their locks on this host and by their heartbeats elsewhere, and whether they are stopped."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from queuectl.config import Here
from queuectl.filelock import mark_of, take_lock
from queuectl.jobs.model import Worker
from queuectl.maintenance.liveness import (
    SilenceDetector,
    continue_stopped,
    is_alive,
    is_serving,
    is_stopped,
    kill,
    take_lock_of_dead,
)
from queuectl.maintenance.rescuer import dead_workers
from queuectl.paths import lock_file
from queuectl.process.tree import find
from queuectl.units import from_ms
from tests.wait import wait_until

HERE = Here("here", "here")
NO_SUCH_PID = 2**22 + 1  # beyond what the kernel gives out


@pytest.fixture
def worker(tmp_path: Path) -> Worker:
    (tmp_path / "workers").mkdir()
    return Worker(
        id="w1",
        host="here",
        machine="here",
        pid=NO_SUCH_PID,
        home=str(tmp_path),
        state="running",
        slots=1,
        busy=0,
        queues=None,
        started_at=from_ms(0),
        heartbeat_at=from_ms(0),
        beats=0,
        jobs_done=0,
    )


def locked(worker: Worker) -> Worker:
    """As it is known once it has created its lock file."""
    return replace(worker, lock=mark_of(lock_file(worker.home, worker.id)) or "")


HOLD = """
import sys
from queuectl.filelock import mark_of, take_lock
assert take_lock(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def held(worker: Worker) -> Iterator[subprocess.Popen[bytes]]:
    """Another process holds its lock."""
    words = [sys.executable, "-c", HOLD, lock_file(worker.home, worker.id)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()


def test_a_worker_that_holds_its_lock_is_alive_whatever_its_pid_is(worker: Worker) -> None:
    with held(worker):
        worker = locked(worker)
        for known in (worker, replace(worker, machine="a container of this host")):
            assert is_alive(known, here=HERE)
            assert take_lock_of_dead(known, here=HERE) is None
            assert list(dead_workers([known], here=HERE)) == []


def test_a_free_lock_proves_that_the_worker_is_dead_whatever_has_its_pid(worker: Worker) -> None:
    with held(worker):
        pass
    reused = replace(locked(worker), pid=os.getpid())
    for known in (reused, replace(reused, machine="this one before its last boot")):
        assert not is_alive(known, here=HERE)
        ((dead, lock),) = dead_workers([known], here=HERE)
        assert dead == known
        assert lock is not None
        assert list(dead_workers([known], here=HERE)) == []  # only one process rescues
        lock.release()


def test_the_lock_of_a_namesake_in_another_home_of_the_same_path_proves_nothing(worker: Worker) -> None:
    with held(worker):
        pass
    elsewhere = replace(worker, machine="a machine of the same name", lock="1.1")
    assert is_alive(elsewhere, here=HERE)
    assert list(dead_workers([elsewhere], here=HERE)) == []
    with held(worker):
        assert not is_alive(replace(worker, lock="1.1"), here=HERE)  # of this machine, and its pid is gone


def test_without_its_lock_file_a_worker_is_known_by_its_pid(worker: Worker) -> None:
    assert not is_alive(worker, here=HERE)
    assert is_alive(replace(worker, pid=os.getpid()), here=HERE)
    ((dead, lock),) = dead_workers([worker], here=HERE)
    assert dead == worker
    assert lock is not None
    # A worker that starts with its name now has to wait, or both would rescue.
    assert take_lock(lock_file(worker.home, worker.id)) is None
    lock.remove()
    assert list(dead_workers([replace(worker, pid=os.getpid())], here=HERE)) == []


def test_a_zombie_is_not_alive(worker: Worker) -> None:
    with subprocess.Popen(["true"]) as zombie:
        wait_until(lambda: " Z " in Path(f"/proc/{zombie.pid}/stat").read_text(), what="it to end")
        assert not is_alive(replace(worker, pid=zombie.pid), here=HERE)


def test_a_worker_of_another_host_counts_as_alive(worker: Worker) -> None:
    assert is_alive(replace(worker, host="elsewhere", machine="elsewhere"), here=HERE)
    assert list(dead_workers([replace(worker, host="elsewhere", machine="elsewhere")], here=HERE)) == []


def test_several_processes_may_check_a_lock_at_the_same_time(worker: Worker) -> None:
    lock = take_lock(lock_file(worker.home, worker.id))
    assert lock is not None
    lock.release()
    asking = (
        "import sys; from queuectl.filelock import is_held; sys.exit(any(is_held(sys.argv[1]) for _ in range(20000)))"
    )
    words = [sys.executable, "-c", asking, lock_file(worker.home, worker.id)]
    asked = [subprocess.Popen(words) for _ in range(2)]
    assert [process.wait(30) for process in asked] == [0, 0]


@contextlib.contextmanager
def unprivileged() -> Iterator[None]:
    """As a user without access to the data directories of others."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_worker_in_the_home_of_another_user_is_known_by_its_pid_and_not_rescued(worker: Worker) -> None:
    with held(worker):
        pass
    folder = Path(worker.home, "workers")
    folder.chmod(0)
    try:
        with unprivileged():
            assert take_lock_of_dead(worker, here=HERE) is None
            assert is_alive(replace(worker, pid=1), here=HERE)
            assert list(dead_workers([replace(worker, pid=1)], here=HERE)) == []
    finally:
        folder.chmod(0o700)


# ── missing heartbeats ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_worker_without_a_heartbeat_for_a_lease_is_silent(worker: Worker) -> None:
    me, detector = replace(worker, id="me"), SilenceDetector("me")
    found = [detector.silent([replace(me, beats=second), worker], now=float(second), lease=3.0) for second in range(4)]
    assert found == [[], [], [], [worker]]


def test_a_worker_with_heartbeats_is_never_silent(worker: Worker) -> None:
    detector = SilenceDetector("me")
    for second in range(20):
        both = [replace(worker, id="me", beats=second), replace(worker, beats=second // 2)]
        assert detector.silent(both, now=float(second), lease=3.0) == []


def test_a_worker_that_was_stopped_itself_starts_to_count_again(worker: Worker) -> None:
    # Stopped for an hour, or kept from the store: the others may have been, too.
    me, detector = replace(worker, id="me"), SilenceDetector("me")
    assert detector.silent([me, worker], now=0.0, lease=3.0) == []
    assert detector.silent([me, worker], now=3600.0, lease=3.0) == []
    assert detector.silent([replace(me, beats=1), worker], now=3602.0, lease=3.0) == []
    assert detector.silent([replace(me, beats=2), worker], now=3603.0, lease=3.0) == [worker]


def test_a_store_that_was_unreachable_makes_no_worker_silent(worker: Worker) -> None:
    me, detector = replace(worker, id="me"), SilenceDetector("me")
    for second in range(10):
        both = [replace(me, beats=second), replace(worker, beats=second)]
        assert detector.silent(both, now=float(second), lease=6.0) == []
    # The server was down for 40 seconds. We have sent a heartbeat already, the other has not come back yet.
    back = replace(me, beats=10)
    assert detector.silent([back, replace(worker, beats=9)], now=50.0, lease=6.0) == []
    found = []
    for second in range(51, 57):
        found = detector.silent([replace(me, beats=second), replace(worker, beats=9)], now=float(second), lease=6.0)
        assert bool(found) is (second == 56)
    assert [silent.id for silent in found] == ["w1"]


def test_a_worker_that_was_stopped_and_sent_a_heartbeat_since_starts_to_count_again(worker: Worker) -> None:
    # It sent a heartbeat first, so it is not silent any more; whether the others were, it has not seen.
    me, detector = replace(worker, id="me"), SilenceDetector("me")
    assert detector.silent([me, worker], now=0.0, lease=3.0) == []
    assert detector.silent([replace(me, beats=1), worker], now=60.0, lease=3.0) == []
    assert detector.silent([replace(me, beats=2), worker], now=61.0, lease=3.0) == []


def test_another_worker_of_the_same_name_is_watched_from_its_own_start(worker: Worker) -> None:
    detector = SilenceDetector("me")
    for second in range(4):
        began = worker.started_at + timedelta(seconds=second // 2)
        both = [replace(worker, id="me", beats=second), replace(worker, started_at=began)]
        assert detector.silent(both, now=float(second), lease=2.0) == []


def test_a_worker_never_finds_itself_silent(worker: Worker) -> None:
    detector = SilenceDetector("w1")
    assert detector.silent([worker], now=0.0, lease=3.0) == []
    assert detector.silent([worker], now=100.0, lease=3.0) == []


# ── stopped workers ─────────────────────────────────────────────────────────────────────────────────────────────────

LEASE_MS = 30_000
HOLD_OR_WAIT = """
import sys
from queuectl.filelock import take_lock
lock = take_lock(sys.argv[1]) if len(sys.argv) > 1 else None
print("ready", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def process(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    """Holds the lock with this name, if any."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD_OR_WAIT, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
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
    found = find(child.pid)
    return None if found is None else found.state


def test_a_stopped_worker_is_detected_and_can_be_continued(worker: Worker) -> None:
    with process(lock_file(worker.home, worker.id)) as child:
        worker = replace(worker, pid=child.pid)
        assert not is_stopped(worker, here=HERE)
        stop(child)
        assert is_stopped(worker, here=HERE)
        assert not is_stopped(worker, here=Here("elsewhere", "elsewhere"))
        continue_stopped(worker, here=HERE)
        wait_until(lambda: state(child) == "S", what="it to continue")


def test_a_stopped_worker_can_be_killed(worker: Worker) -> None:
    with process(lock_file(worker.home, worker.id)) as child:
        stop(child)
        kill(replace(worker, pid=child.pid), here=HERE)
        assert child.wait(20) == -signal.SIGKILL


def test_a_process_with_the_pid_of_a_worker_and_not_its_lock_is_left_alone(worker: Worker) -> None:
    with process(lock_file(worker.home, worker.id)), process() as stranger:
        worker = replace(worker, pid=stranger.pid)
        stop(stranger)
        assert not is_stopped(worker, here=HERE)
        continue_stopped(worker, here=HERE)
        kill(worker, here=HERE)
        assert state(stranger) == "T"


def test_only_a_worker_that_is_stopped_past_its_lease_serves_no_longer(worker: Worker) -> None:
    def serves(at_ms: int) -> bool:
        return is_serving(worker, here=HERE, now_ms=at_ms, lease_ms=lambda: LEASE_MS)

    with process(lock_file(worker.home, worker.id)) as child:
        worker = replace(worker, pid=child.pid)
        assert serves(LEASE_MS * 100)  # the wall clock may have jumped: its process runs
        stop(child)
        assert serves(LEASE_MS - 1)
        assert not serves(LEASE_MS)


def test_a_worker_of_another_host_serves_until_its_last_heartbeat_is_too_old(worker: Worker) -> None:
    worker = replace(worker, host="elsewhere", machine="elsewhere")
    assert is_serving(worker, here=HERE, now_ms=LEASE_MS - 1, lease_ms=lambda: LEASE_MS)
    assert not is_serving(worker, here=HERE, now_ms=LEASE_MS, lease_ms=lambda: LEASE_MS)
