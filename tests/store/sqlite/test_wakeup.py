"""The wake-up of a worker: a named pipe. A wake-up is a hint, and never fails."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from queuectl.paths import wakeup_file
from queuectl.store.sqlite.wakeup import NoWakeup, PipeWakeup, notify

ROOT = Path(__file__).parents[3]


@pytest.fixture
def place(home: Path) -> str:
    (home / "workers").mkdir(parents=True)
    return str(home)


@pytest.fixture
def bell(place: str) -> Iterator[PipeWakeup]:
    made = PipeWakeup(wakeup_file(place, "w1"))
    yield made
    made.close()


def wakes(bell: PipeWakeup | NoWakeup) -> bool:
    return bool(select.select([bell], [], [], 0)[0])


def test_a_notification_wakes_a_sleeping_worker(bell: PipeWakeup, place: str) -> None:
    assert not wakes(bell)
    notify([(place, "w1")])
    assert wakes(bell)
    assert bell.drain()
    assert not wakes(bell)


def test_a_ring_from_another_process_wakes_too(bell: PipeWakeup, place: str) -> None:
    script = "import sys; from queuectl.store.sqlite.wakeup import notify; notify([(sys.argv[1], 'w1')])"
    subprocess.run([sys.executable, "-c", script, place], cwd=ROOT, check=True)
    assert bell.drain()


def test_a_bell_is_not_at_its_end_when_the_last_ringer_has_left(bell: PipeWakeup, place: str) -> None:
    for _ in range(3):
        notify([(place, "w1")])
        assert bell.drain()
        assert not wakes(bell)


def test_every_bell_in_the_list_rings_also_after_a_dead_one(bell: PipeWakeup, place: str) -> None:
    with contextlib.closing(PipeWakeup(wakeup_file(place, "w2"))) as second:
        notify([(place, "gone"), (place + "/nowhere", "w1"), (place, "w1"), (place, "w2")])
        assert bell.drain()
        assert second.drain()


def test_a_home_with_a_long_name_has_bells_too(home: Path) -> None:
    place = home / ("x" * 120) / ("y" * 120)
    (place / "workers").mkdir(parents=True)
    with contextlib.closing(PipeWakeup(wakeup_file(str(place), "w1"))) as bell:
        notify([(str(place), "w1")])
        assert bell.drain()


def test_a_pipe_without_a_reader_is_harmless(place: str) -> None:
    os.mkfifo(wakeup_file(place, "dead"))
    notify([(place, "dead")])


def test_a_full_bell_is_harmless_and_still_wakes(bell: PipeWakeup, place: str) -> None:
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        fcntl.fcntl(bell.fileno(), fcntl.F_SETPIPE_SZ, 4096)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(bell.fileno(), b"!" * 4096)
    notify([(place, "w1")])
    assert bell.drain()
    assert not bell.drain()


def test_a_bell_is_private_and_goes_when_it_is_closed(place: str) -> None:
    path = Path(wakeup_file(place, "w1"))
    bell = PipeWakeup(str(path))
    mode = path.stat().st_mode
    assert stat.S_ISFIFO(mode)
    assert mode & 0o777 == 0o600
    bell.close()
    assert not path.exists()


def test_what_a_dead_worker_left_is_replaced(place: str) -> None:
    Path(wakeup_file(place, "w1")).write_text("left")
    with contextlib.closing(PipeWakeup(wakeup_file(place, "w1"))) as bell:
        notify([(place, "w1")])
        assert bell.drain()


def test_closing_a_bell_whose_home_is_gone_is_harmless(place: str) -> None:
    bell = PipeWakeup(wakeup_file(place, "w1"))
    Path(wakeup_file(place, "w1")).unlink()
    bell.close()


def test_a_silent_bell_can_be_slept_on_and_never_rings() -> None:
    with contextlib.closing(NoWakeup()) as bell:
        assert not wakes(bell)
        assert not bell.drain()
