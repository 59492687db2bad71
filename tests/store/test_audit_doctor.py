"""What `doctor` says of the audit: the newest records, whether they are as they were written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from queuectl.clock import SystemClock
from queuectl.config import here
from queuectl.job.audit import Act, Actor
from queuectl.store.protocol import Store
from queuectl.upkeep.doctor import audit as doctor
from queuectl.upkeep.doctor.finding import Patient, Seen, Severity
from tests.clock import FakeClock
from tests.store.backends import Backend, PostgresBackend

ALICE = Actor(1000, "alice", "box", "queuectl")


@pytest.fixture
def audited(store: Store) -> Store:
    store.actor = ALICE
    for number in range(8):
        store.note(Act("test", [str(number)]))
    return store


def look(store: Store, home: Path) -> Seen:
    place = str(home)
    return doctor.audit(Patient(place, None, "", None, store, None, here({}), {}, SystemClock(), os.geteuid()))


def harm(backend: Backend, statement: str) -> None:
    where = " on audit" if isinstance(backend, PostgresBackend) else ""
    for trigger in ("audit_stays", "audit_is_kept"):
        backend.tamper(f"drop trigger {trigger}{where}")
    backend.tamper(statement)


def test_a_chain_that_was_left_alone_is_fine(audited: Store, tmp_path: Path, clock: FakeClock) -> None:
    assert look(audited, tmp_path) == Seen("8 records, as they were written")
    clock.advance(10)
    audited.forget_audit(before_ms=clock.now_ms(), rows=3, by=ALICE)
    assert look(audited, tmp_path) == Seen("6 records, as they were written")


def test_no_record_is_fine(store: Store, tmp_path: Path) -> None:
    assert look(store, tmp_path) == Seen("0 records, as they were written")


@pytest.mark.parametrize(
    "statement, said",
    [
        ("update audit set record = '{}' where seq = 5", "record 5 is not the one that was written"),
        ("update audit set at = 1 where seq = 1", "record 1 is not the one that was written"),
        ("delete from audit where seq in (4, 5)", "record 4 to 5 was removed"),
        ("delete from audit where seq = 1", "record 1 was removed"),
        ("delete from audit where seq > 6", "the newest records, up to 8, were removed"),
        ("delete from audit", "the newest records, up to 8, were removed"),
        ("delete from audit where seq in (2, 6)", "record 2 was removed, and 1 more like that"),
    ],
)
def test_what_was_changed_by_hand_is_a_problem(
    audited: Store, backend: Backend, tmp_path: Path, statement: str, said: str
) -> None:
    harm(backend, statement)
    (found,) = look(audited, tmp_path).findings
    assert (found.code, found.severity) == ("audit-changed", Severity.PROBLEM)
    assert found.message.startswith(said)
    assert "queuectl audit verify" in found.hint


def test_of_very_many_it_looks_at_the_newest(
    audited: Store, backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "MOST", 3)
    harm(backend, "update audit set record = '{}' where seq = 5")
    assert look(audited, tmp_path) == Seen("the last 3 records, as they were written")
    monkeypatch.setattr(doctor, "MOST", 4)
    assert look(audited, tmp_path).findings
