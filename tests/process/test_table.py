"""Telling processes apart: a pid is no identity, a pid with its start time is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from queuectl.jobs.outcome import Exited, Signalled
from queuectl.process.ending import orphans, send
from queuectl.process.ledger import (
    LOST,
    RECORD,
    EndBegun,
    Finish,
    Footprint,
    Identity,
    Ledger,
    Records,
    add_closing,
    add_end,
    read_ledger,
)
from queuectl.process.table import MARK, Entry, boot, entries, entry, lives, marks, started
from tests.e2e.processes import is_running
from tests.wait import wait_until


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "1000"], env={**os.environ, MARK: "its-token"}, start_new_session=True) as process:
        wait_until(lambda: marks(process.pid) == ["its-token"], what="it to be started")
        yield process
        process.kill()


def test_a_name_with_brackets_and_spaces_does_not_confuse_the_table(tmp_path: Path) -> None:
    program = tmp_path / ") Z 1 (a b"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([program, "1000"], start_new_session=True) as process:
        wait_until(lambda: Path(f"/proc/{process.pid}/comm").read_text().startswith(") Z"), what="its name")
        found = entry(process.pid)
        assert found is not None
        assert (found.pid, found.group, found.session) == (process.pid,) * 3
        assert not found.is_over
        process.kill()


def test_zombies_are_not_in_the_table() -> None:
    with subprocess.Popen(["true"]) as process:
        wait_until(lambda: not lives(process.pid), what="it to end")
        assert entry(process.pid) is not None
        assert process.pid not in {found.pid for found in entries()}


def test_nobody_lives_under_a_pid_that_was_never_given_out() -> None:
    assert entry(2**22 + 1) is None
    assert not lives(2**22 + 1)


def test_a_mark_is_read_from_the_environment_and_from_nowhere_else(sleeper: subprocess.Popen[bytes]) -> None:
    assert marks(sleeper.pid) == ["its-token"]
    assert marks(os.getpid()) == []
    assert marks(2**22 + 1) == []
    env = {**os.environ, "OTHER": f"{MARK}=its-token", f"X{MARK}": "its-token"}
    with subprocess.Popen(["sleep", "1000"], env=env) as process:
        wait_until(lambda: Path(f"/proc/{process.pid}/comm").read_text() == "sleep\n", what="it to be started")
        assert marks(process.pid) == []
        process.kill()


def test_a_process_that_took_over_a_number_is_not_signalled(sleeper: subprocess.Popen[bytes]) -> None:
    found = entry(sleeper.pid)
    assert found is not None
    send(signal.SIGKILL, [found._replace(started=found.started - 1)])
    assert is_running(sleeper.pid)
    send(signal.SIGKILL, [Entry(2**22 + 1, "S", 1, 1, 1, 1)])  # nobody
    send(signal.SIGKILL, [found])
    assert sleeper.wait(20) == -9


@pytest.mark.parametrize(
    "token, shift, is_its_own",
    [
        ("its-token", 0, True),  # by its mark and its number
        ("its-token", 1, True),  # the mark is proof enough
        ("another", 0, True),  # the number with its start time, too
        ("another", 1, False),  # the number alone is not
    ],
)
def test_what_a_dead_worker_left_is_known_by_its_mark_or_by_number_and_start(
    sleeper: subprocess.Popen[bytes], token: str, shift: int, is_its_own: bool
) -> None:
    footprint = Footprint(sleeper.pid, (started(sleeper.pid) or 0) + shift, 0)
    assert (sleeper.pid in {found.pid for found in orphans({token: footprint})}) is is_its_own


# ── the ledger ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_ledger_tells_what_ran_in_each_slot_last(tmp_path: Path) -> None:
    path = str(tmp_path / "runs")
    ledger = Ledger(path)
    ledger.write(0, "a" * 32, Footprint(1, 2, 3))
    ledger.write(7, "b" * 32, Footprint(4_194_304, 2**60, 2**50))  # slots between them were never used
    ledger.write(0, "c" * 32, Footprint(5, 6, 7))
    ledger.close()
    ledger = Ledger(path, join=True)
    ledger.sign(Identity(8, 9))
    ledger.close()
    runs = {"b" * 32: Footprint(4_194_304, 2**60, 2**50), "c" * 32: Footprint(5, 6, 7)}
    assert read_ledger(path) == Records(Identity(8, 9), runs, {})


def test_a_ledger_tells_whose_end_was_begun_whoever_began_it_and_whatever_its_keeper_writes_later(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "runs")
    ledger = Ledger(path)
    ledger.note_end(999, "a" * 32, EndBegun("release", 2**60))
    ledger.write(0, "b" * 32, Footprint(1, 2, 3))
    add_end(path, ["b" * 32, "c" * 32], EndBegun(LOST, 7), create=False)
    add_end(path, ["a" * 32], EndBegun(LOST, 9), create=False)
    finished = Footprint(4, 5, 6, Finish(Signalled(15), 8))
    for slot in range(1000):
        ledger.write(slot, "c" * 32, finished)
    ledger.close()
    assert read_ledger(path) == Records(
        None,
        {"c" * 32: finished},
        {
            "a" * 32: [EndBegun("release", 2**60), EndBegun(LOST, 9)],
            "b" * 32: [EndBegun(LOST, 7)],
            "c" * 32: [EndBegun(LOST, 7)],
        },
    )


def test_a_ledger_tells_whose_log_somebody_was_about_to_close(tmp_path: Path) -> None:
    path = str(tmp_path / "runs")
    ledger = Ledger(path)
    ledger.write(0, "a" * 32, Footprint(1, 2, 3))
    assert ledger.added_ends() == set()
    add_end(path, ["b" * 32], EndBegun(LOST, 7), create=False)
    add_closing(path, ["a" * 32, "c" * 32])
    assert ledger.added_ends() == {"a" * 32, "b" * 32, "c" * 32}
    ledger.close()
    found = read_ledger(path)
    assert found.closing == {"a" * 32, "c" * 32}
    assert (found.runs, found.endings) == ({"a" * 32: Footprint(1, 2, 3)}, {"b" * 32: [EndBegun(LOST, 7)]})


def test_a_ledger_of_another_boot_says_nothing_about_processes(tmp_path: Path) -> None:
    path = str(tmp_path / "runs")
    ledger = Ledger(path)
    ledger.write(0, "a" * 32, Footprint(os.getpid(), started(os.getpid()) or 0, 3, Finish(Exited(0), 4)))
    me = Identity(os.getpid(), started(os.getpid()) or 0, boot())
    ledger.sign(me)
    assert read_ledger(path).keeper == me
    ledger.sign(me._replace(boot="another"))
    assert read_ledger(path) == Records(None, {"a" * 32: Footprint(0, 0, 3)}, {})
    assert orphans(read_ledger(path).runs) == []
    ledger.close()


@pytest.mark.parametrize("finish", [None, Finish(Exited(255), 2**60), Finish(Signalled(9), 0)])
def test_the_ledger_tells_how_a_run_ended_and_who_keeps_it(tmp_path: Path, finish: Finish | None) -> None:
    path = str(tmp_path / "runs")
    ledger = Ledger(path)
    footprint = Footprint(4_194_304, 2**60, 2**60, finish, "w" * 64 + ".4194304.kept")
    ledger.write(999, "a" * 32, footprint)
    ledger.close()
    assert read_ledger(path).runs == {"a" * 32: footprint}


@pytest.mark.parametrize("kept", [0, 1, 40, 2 * RECORD + 3])
def test_a_ledger_that_was_cut_is_read_as_far_as_it_goes(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "runs"
    ledger = Ledger(str(path))
    for slot in range(2):
        ledger.write(slot, f"token-{slot}", Footprint(slot + 1, 2, 3))
    ledger.close()
    path.write_bytes(path.read_bytes()[:kept])
    assert set(read_ledger(str(path)).runs) <= {"token-0"}


def test_no_ledger_is_an_empty_one(tmp_path: Path) -> None:
    assert read_ledger(str(tmp_path / "none")) == Records(None, {}, {})


BLIND = """
import errno, os
from queuectl.process import ending, table
own = os.getpid()
ways = [
    lambda: table.entry(own), lambda: table.lives(own), lambda: table.marks(own), lambda: list(table.entries()),
    lambda: ending.orphans({"token": None}), lambda: ending.families({"token": own}),
]
for way in ways:
    way()
try:
    while True:
        os.dup(0)
except OSError:
    pass
for number, way in enumerate(ways):
    try:
        way()
    except OSError as exc:
        assert exc.errno == errno.EMFILE
    else:
        raise AssertionError(f"{number} saw nobody, and said so")
assert table.started(own) is None
"""


def test_who_cannot_look_does_not_see_an_empty_machine() -> None:
    done = subprocess.run([sys.executable, "-c", BLIND], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
