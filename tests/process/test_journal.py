"""The journal: what a worker that dies leaves about its runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from queuectl.jobs.outcome import Exited, Signalled
from queuectl.jobs.resources import ResourceReport, Usage
from queuectl.process import tree
from queuectl.process.journal import (
    LOST,
    RECORD_BYTES,
    Entries,
    Exit,
    Journal,
    Record,
    Termination,
    append_closed,
    append_terminations,
    read_journal,
)
from queuectl.process.model import Identity
from queuectl.process.system import IS_PORTABLE

LARGEST = Exit(
    Signalled(64), 2**60, 2**60, 2**60, ResourceReport(Usage(2**50, 2**50, 2**60, 2**60, 2**60, 2**60), True), "release"
)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "runs")


def test_a_record_replaces_the_last_one_of_its_place(path: str) -> None:
    journal = Journal(path)
    journal.write(0, "a" * 32, Record(1, 2, 3))
    journal.write(7, "b" * 32, Record(4_194_304, 2**60, 2**50))  # the places between them were never used
    journal.write(0, "c" * 32, Record(5, 6))
    journal.close()
    journal = Journal(path, create=False)
    journal.sign(Identity(8, 9))
    journal.write(8, "d" * 32, Record(0, 0))
    journal.write(9, "e" * 32, Record(0, 0))
    journal.clear(9)
    journal.close()
    runs = {"b" * 32: Record(4_194_304, 2**60, 2**50), "c" * 32: Record(5, 6), "d" * 32: Record(0, 0)}
    assert read_journal(path) == Entries(Identity(8, 9), runs)
    assert read_journal(path).runs["d" * 32].is_starting


def test_a_termination_is_kept_whatever_is_written_later(path: str) -> None:
    journal = Journal(path)
    journal.write_termination(999, "a" * 32, Termination("release", 2**60))
    journal.write(0, "b" * 32, Record(1, 2, 3))
    append_terminations(path, ["b" * 32, "c" * 32], Termination(LOST, 7), create=False)
    append_terminations(path, ["a" * 32], Termination(LOST, 9), create=False)
    record = Record(4, 5, 6, Exit(Signalled(15), 8))
    for place in range(1000):
        journal.write(place, "c" * 32, record)
    journal.close()
    found = read_journal(path)
    assert found.runs == {"c" * 32: record}
    assert found.terminations == {
        "a" * 32: [Termination("release", 2**60), Termination(LOST, 9)],
        "b" * 32: [Termination(LOST, 7)],
        "c" * 32: [Termination(LOST, 7)],
    }


def test_what_other_workers_append_is_read_by_its_supervisor(path: str) -> None:
    journal = Journal(path)
    journal.write(0, "a" * 32, Record(1, 2, 3))
    assert journal.appended() == ({}, set())
    append_terminations(path, ["b" * 32], Termination(LOST, 7), create=False)
    append_closed(path, ["a" * 32, "c" * 32])
    assert journal.appended() == ({"b" * 32: LOST}, {"a" * 32, "c" * 32})
    journal.close()
    assert read_journal(path).closed == {"a" * 32, "c" * 32}


def test_what_a_signed_journal_does_not_have_was_not_started(path: str) -> None:
    ordered, cleared, unknown = "a" * 32, "b" * 32, "c" * 32
    assert read_journal(path).may_have_begun(unknown), "there is no journal"
    journal = Journal(path)
    for place, token in enumerate((ordered, cleared)):
        journal.write(place, token, Record(0, 0))
    journal.clear(1)
    assert read_journal(path).may_have_begun(unknown), "its supervisor could not sign it"
    journal.sign(tree.identity_of(os.getpid()))
    journal.close()
    assert [read_journal(path).may_have_begun(token) for token in (ordered, cleared, unknown)] == [True, False, False]


def test_a_journal_of_another_boot_says_nothing_about_processes(path: str) -> None:
    if IS_PORTABLE:
        pytest.skip("there are no boot IDs in portable mode")
    journal = Journal(path)
    journal.write(0, "a" * 32, Record(os.getpid(), tree.started(os.getpid()) or 0, 3, Exit(Exited(0), 4)))
    me = tree.identity_of(os.getpid())
    journal.sign(me)
    assert read_journal(path).supervisor == me
    journal.sign(me._replace(boot="another"))
    assert read_journal(path) == Entries(runs={"a" * 32: Record(0, 0, 3)})
    assert read_journal(path).may_have_begun("b" * 32), "its last records may not have reached the disk"
    assert tree.orphans(read_journal(path).runs) == []
    journal.close()


@pytest.mark.parametrize("ended", [None, Exit(Exited(255), 2**60), Exit(Signalled(9), 0, 5, 6, reason=LOST), LARGEST])
def test_a_record_has_room_for_every_exit_and_the_journal_of_its_supervisor(path: str, ended: Exit | None) -> None:
    journal = Journal(path)
    record = Record(4_194_304, 2**60, 2**60, ended, "w" * 64 + ".4194304.kept")
    journal.write(999, "a" * 32, record)
    journal.write_termination(999, "a" * 32, Termination("release", 2**60))
    journal.close()
    assert read_journal(path).runs == {"a" * 32: record}
    assert len(read_journal(path).terminations["a" * 32]) == 1


@pytest.mark.parametrize("size", [0, 1, 40, 2 * RECORD_BYTES + 3])
def test_a_journal_that_was_cut_is_read_as_far_as_it_goes(path: str, size: int) -> None:
    journal = Journal(path)
    for place in range(2):
        journal.write(place, f"token-{place}", Record(place + 1, 2, 3))
    journal.close()
    os.truncate(path, size)
    assert set(read_journal(path).runs) <= {"token-0"}


def test_a_missing_journal_is_empty(path: str) -> None:
    assert read_journal(path) == Entries()


def test_a_journal_is_never_opened_through_a_link(path: str, tmp_path: Path) -> None:
    os.symlink(tmp_path / "elsewhere", path)
    for use in (lambda: Journal(path), lambda: read_journal(path), lambda: append_closed(path, ["a"])):
        with pytest.raises(OSError):
            use()
    assert not (tmp_path / "elsewhere").exists()
