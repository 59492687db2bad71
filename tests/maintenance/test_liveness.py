"""Who lives: by its lock where we can see it, by its silence where we cannot."""

from __future__ import annotations

import contextlib
import os
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
from queuectl.maintenance.liveness import Silence, is_alive, lock_of_the_dead
from queuectl.maintenance.rescue import dead_workers
from queuectl.paths import lock_file
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
    """As it is known once it has made its lock file."""
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


def test_whoever_holds_its_lock_is_alive_whatever_its_pid_is(worker: Worker) -> None:
    with held(worker):
        worker = locked(worker)
        for known in (worker, replace(worker, machine="a container of this host")):
            assert is_alive(known, here=HERE)
            assert lock_of_the_dead(known, here=HERE) is None
            assert list(dead_workers([known], here=HERE)) == []


def test_a_lock_that_nobody_holds_proves_that_the_worker_is_gone_whoever_has_its_pid(worker: Worker) -> None:
    with held(worker):
        pass
    reused = replace(locked(worker), pid=os.getpid())
    for known in (reused, replace(reused, machine="this one before it was started anew")):
        assert not is_alive(known, here=HERE)
        ((dead, lock),) = dead_workers([known], here=HERE)
        assert dead == known
        assert lock is not None
        assert list(dead_workers([known], here=HERE)) == []  # there is one heir only
        lock.release()


def test_the_lock_of_a_namesake_in_another_home_of_the_same_path_proves_nothing(worker: Worker) -> None:
    with held(worker):
        pass
    elsewhere = replace(worker, machine="a machine of the same name", lock="1.1")
    assert is_alive(elsewhere, here=HERE)
    assert list(dead_workers([elsewhere], here=HERE)) == []
    with held(worker):
        assert not is_alive(replace(worker, lock="1.1"), here=HERE)  # of this machine, and its pid is gone


def test_where_the_lock_file_was_removed_the_pid_has_to_do(worker: Worker) -> None:
    assert not is_alive(worker, here=HERE)
    assert is_alive(replace(worker, pid=os.getpid()), here=HERE)
    ((dead, lock),) = dead_workers([worker], here=HERE)
    assert dead == worker
    assert lock is not None
    # Who comes under its name now has to wait, or there would be two heirs.
    assert take_lock(lock_file(worker.home, worker.id)) is None
    lock.remove()
    assert list(dead_workers([replace(worker, pid=os.getpid())], here=HERE)) == []


def test_a_zombie_is_not_alive(worker: Worker) -> None:
    with subprocess.Popen(["true"]) as zombie:
        wait_until(lambda: " Z " in Path(f"/proc/{zombie.pid}/stat").read_text(), what="it to end")
        assert not is_alive(replace(worker, pid=zombie.pid), here=HERE)


def test_of_another_host_nobody_here_can_tell(worker: Worker) -> None:
    assert is_alive(replace(worker, host="elsewhere", machine="elsewhere"), here=HERE)
    assert list(dead_workers([replace(worker, host="elsewhere", machine="elsewhere")], here=HERE)) == []


def test_any_number_may_ask_at_once_without_taking_each_other_for_the_worker(worker: Worker) -> None:
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
def nobody() -> Iterator[None]:
    """As a user who may not look into the homes of others."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_home_of_another_user_is_told_by_pid_and_never_taken_from_it(worker: Worker) -> None:
    with held(worker):
        pass
    folder = Path(worker.home, "workers")
    folder.chmod(0)
    try:
        with nobody():
            assert lock_of_the_dead(worker, here=HERE) is None
            assert is_alive(replace(worker, pid=1), here=HERE)
            assert list(dead_workers([replace(worker, pid=1)], here=HERE)) == []
    finally:
        folder.chmod(0o700)


# ── silence ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_worker_that_gives_no_sign_for_a_lease_is_silent(worker: Worker) -> None:
    me, silence = replace(worker, id="me"), Silence("me")
    found = [silence.silent([replace(me, beats=second), worker], now=float(second), lease=3.0) for second in range(4)]
    assert found == [[], [], [], [worker]]


def test_a_worker_that_beats_is_never_silent(worker: Worker) -> None:
    silence = Silence("me")
    for second in range(20):
        both = [replace(worker, id="me", beats=second), replace(worker, beats=second // 2)]
        assert silence.silent(both, now=float(second), lease=3.0) == []


def test_who_was_away_itself_begins_to_count_anew(worker: Worker) -> None:
    # Stopped for an hour, or kept from the store: the others may have been, too.
    me, silence = replace(worker, id="me"), Silence("me")
    assert silence.silent([me, worker], now=0.0, lease=3.0) == []
    assert silence.silent([me, worker], now=3600.0, lease=3.0) == []
    assert silence.silent([replace(me, beats=1), worker], now=3602.0, lease=3.0) == []
    assert silence.silent([replace(me, beats=2), worker], now=3603.0, lease=3.0) == [worker]


def test_a_store_that_was_away_makes_nobody_silent_whoever_is_back_first(worker: Worker) -> None:
    me, silence = replace(worker, id="me"), Silence("me")
    for second in range(10):
        both = [replace(me, beats=second), replace(worker, beats=second)]
        assert silence.silent(both, now=float(second), lease=6.0) == []
    # The server was down for 40 seconds. We have beaten already, the other has not come back yet.
    back = replace(me, beats=10)
    assert silence.silent([back, replace(worker, beats=9)], now=50.0, lease=6.0) == []
    found = []
    for second in range(51, 57):
        found = silence.silent([replace(me, beats=second), replace(worker, beats=9)], now=float(second), lease=6.0)
        assert bool(found) is (second == 56)
    assert [silent.id for silent in found] == ["w1"]


def test_who_was_stopped_and_has_beaten_since_begins_to_count_anew(worker: Worker) -> None:
    # Its first act was a beat, so its own silence is over; that of the others it has not seen.
    me, silence = replace(worker, id="me"), Silence("me")
    assert silence.silent([me, worker], now=0.0, lease=3.0) == []
    assert silence.silent([replace(me, beats=1), worker], now=60.0, lease=3.0) == []
    assert silence.silent([replace(me, beats=2), worker], now=61.0, lease=3.0) == []


def test_another_worker_of_the_same_name_is_watched_from_its_own_beginning(worker: Worker) -> None:
    silence = Silence("me")
    for second in range(4):
        began = worker.started_at + timedelta(seconds=second // 2)
        both = [replace(worker, id="me", beats=second), replace(worker, started_at=began)]
        assert silence.silent(both, now=float(second), lease=2.0) == []


def test_nobody_finds_itself_silent(worker: Worker) -> None:
    silence = Silence("w1")
    assert silence.silent([worker], now=0.0, lease=3.0) == []
    assert silence.silent([worker], now=100.0, lease=3.0) == []
