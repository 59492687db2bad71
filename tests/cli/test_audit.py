"""`queuectl audit`: who changed what, and whether that is what was written."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.program import Program


def change_by_hand(home: Path, *statements: str) -> None:
    """As whoever may write the file can: triggers keep nobody out."""
    with closing(sqlite3.connect(home / "queue.db")) as db, db:
        for trigger in ("audit_stays", "audit_is_kept"):
            db.execute(f"drop trigger {trigger}")
        for statement in statements:
            db.execute(statement)


def test_it_says_who_did_what_to_what(queuectl: Program) -> None:
    job = queuectl("enqueue", "echo hi", check=0).out.strip()
    queuectl("edit", job, "--priority", "7", check=0)
    edited, added = queuectl("audit", "--json", check=0).json
    assert (added["what"], added["subjects"]) == ("enqueue", [job])
    assert (edited["what"], edited["before"], edited["after"]) == ("edit", {"priority": 0}, {"priority": 7})
    assert edited["who"]["uid"] == os.getuid()
    assert "priority 0 → 7" in queuectl("audit", check=0).out


def test_what_is_taken_away_reads_otherwise_than_what_is_set(queuectl: Program) -> None:
    job = queuectl("enqueue", "true", check=0).out.strip()
    for words in (
        ("config", "set", "priority", "3"),
        ("config", "unset", "priority"),
        ("queue", "set", "mail", "--rate", "5/m", "--on-dead", "http://127.0.0.1/x"),
        ("queue", "set", "mail", "--rate", "none", "--on-dead", "none"),
        ("hold", job),
    ):
        queuectl(*words, check=0)
    hold, unruled, ruled, unset, set_, _ = queuectl("audit", check=0).lines[1:]
    assert set_.endswith(" priority 3")
    assert "config unset" in unset
    assert unset.endswith(" priority 3 → none")
    assert ruled.endswith(" rate 5/m, on_dead http://127.0.0.1/…")
    assert unruled.endswith(" rate 5/m → none, on_dead http://127.0.0.1/… → none")
    assert hold.endswith(" held no → yes")


def test_it_is_asked_for_by_job_by_person_and_by_time(queuectl: Program) -> None:
    jobs = [queuectl("enqueue", f"echo {number}", check=0).out.strip() for number in range(3)]
    queuectl("config", "set", "retain-dead", "30d", check=0)
    assert [one["subjects"] for one in queuectl("audit", "--id", jobs[1][:6], "--json").json] == [[jobs[1]]]
    assert [one["what"] for one in queuectl("audit", "--id", "retain-dead", "--json").json] == ["config set"]
    assert len(queuectl("audit", "--who", str(os.getuid()), "--json").json) == 4
    assert queuectl("audit", "--who", "nobody-like-that", "--json").json == []
    assert len(queuectl("audit", "--since", "1h", "--limit", "2", "--json").json) == 2
    assert queuectl("audit", "--since", "2999-01-01", "--json").json == []


def test_a_home_without_a_store_has_nothing_to_tell(queuectl: Program, home: Path) -> None:
    assert queuectl("audit", "--json", check=0).json == []
    assert queuectl("audit", "verify", check=0).out.startswith("0 records")
    assert not (home / "queue.db").exists()


def test_a_chain_that_was_left_alone_is_whole_and_says_its_end(queuectl: Program) -> None:
    queuectl("enqueue", "true", check=0)
    noted = queuectl("audit", "verify", "--json", check=0).json["head"]
    queuectl("enqueue", "true", check=0)
    place = f"{noted['seq']}:{noted['hash']}"
    assert "2 records, as they were written" in queuectl("audit", "verify", "--head", place, check=0).out


@pytest.mark.parametrize(
    "harm, said",
    [
        ("update audit set record = replace(record, 'echo', 'true') where seq = 2", "record 2 is not the one"),
        ("delete from audit where seq = 2", "record 2 was removed"),
        ("delete from audit where seq = 3", "the newest records, up to 3, were removed"),
        ("update audit set record = 'what?' where seq = 1", "record 1 is not the one"),
        ("update audit_ends set base = 1, base_hash = (select hash from audit where seq = 1)", "not by retention"),
    ],
)
def test_what_was_changed_by_hand_is_found(queuectl: Program, home: Path, harm: str, said: str) -> None:
    for number in range(3):
        queuectl("enqueue", f"echo {number}", check=0)
    change_by_hand(home, harm, "delete from audit where seq <= (select base from audit_ends)")
    found = queuectl("audit", "verify", check=1)
    assert said in found.out
    assert "; the last should be 3:" in found.out
    assert queuectl("audit", check=0).out


def test_a_chain_that_was_made_anew_is_not_the_one_that_was_noted(queuectl: Program, home: Path) -> None:
    queuectl("enqueue", "true", check=0)
    noted = queuectl("audit", "verify", "--json", check=0).json["head"]
    change_by_hand(home, "delete from audit", "delete from audit_ends")
    queuectl("enqueue", "false", check=0)
    queuectl("audit", "verify", check=0)
    found = queuectl("audit", "verify", "--head", f"{noted['seq']}:{noted['hash']}", check=1)
    assert "the place that was noted, 1, is not in this chain" in found.out


@pytest.mark.parametrize(
    "words",
    [("verify", "--since", "1h"), ("--head", "1:ab"), ("verify", "--head", "1:ab"), ("check",), ("--since", "soon")],
)
def test_what_makes_no_sense_is_refused(queuectl: Program, words: tuple[str, ...]) -> None:
    refused = queuectl("audit", *words, check=2)
    assert refused.out == ""
    assert "hint: " in refused.err


def test_a_slip_of_the_hand_is_told_what_was_meant(queuectl: Program) -> None:
    assert "did you mean 'verify'?" in queuectl("audit", "verfy", check=2).err
    assert "known: verify" in queuectl("audit", "look", check=2).err


def test_a_restore_and_an_import_are_recorded(queuectl: Program, home: Path) -> None:
    queuectl("enqueue", "true", check=0)
    queuectl("export", "--output", str(home / "jobs.json"))
    queuectl("backup", str(home / "b.db"), check=0)
    queuectl("enqueue", "false", check=0)
    queuectl("restore", str(home / "b.db"), "--yes", check=0)
    found = queuectl("audit", "--json", check=0).json
    assert [one["what"] for one in found] == ["restore", "enqueue"]
    assert found[0]["subjects"] == [str(home / "b.db")]  # as it was named, not what was made of it on the way
    queuectl("audit", "verify", check=0)
