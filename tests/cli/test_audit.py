"""queuectl audit: list changes and their actors."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.program import Program


def test_the_audit_log_shows_actor_action_and_target(queuectl: Program) -> None:
    job = queuectl("enqueue", "echo hi", check=0).out.strip()
    queuectl("edit", job, "--priority", "7", check=0)
    edited, added = queuectl("audit", "--json", check=0).json
    assert (added["what"], added["subjects"]) == ("enqueue", [job])
    assert (edited["what"], edited["before"], edited["after"]) == ("edit", {"priority": 0}, {"priority": 7})
    assert edited["who"]["uid"] == os.getuid()
    assert "priority 0 → 7" in queuectl("audit", check=0).out


def test_a_removed_value_is_shown_differently_from_a_set_one(queuectl: Program) -> None:
    job = queuectl("enqueue", "true", check=0).out.strip()
    for arguments in (
        ("config", "set", "priority", "3"),
        ("config", "unset", "priority"),
        ("queue", "set", "mail", "--rate", "5/m", "--on-dead", "http://127.0.0.1/x"),
        ("queue", "set", "mail", "--rate", "none", "--on-dead", "none"),
        ("hold", job),
    ):
        queuectl(*arguments, check=0)
    hold, unruled, ruled, unset, set_, _ = queuectl("audit", check=0).lines[1:]
    assert set_.endswith(" priority 3")
    assert "config unset" in unset
    assert unset.endswith(" priority 3 → none")
    assert ruled.endswith(" rate 5/m, on_dead http://127.0.0.1/…")
    assert unruled.endswith(" rate 5/m → none, on_dead http://127.0.0.1/… → none")
    assert hold.endswith(" held no → yes")


def test_the_audit_log_is_filtered_by_job_actor_and_time(queuectl: Program) -> None:
    jobs = [queuectl("enqueue", f"echo {number}", check=0).out.strip() for number in range(3)]
    queuectl("config", "set", "retain-dead", "30d", check=0)
    assert [one["subjects"] for one in queuectl("audit", "--id", jobs[1][:6], "--json").json] == [[jobs[1]]]
    assert [one["what"] for one in queuectl("audit", "--id", "retain-dead", "--json").json] == ["config set"]
    assert len(queuectl("audit", "--who", str(os.getuid()), "--json").json) == 4
    assert queuectl("audit", "--who", "no-such-actor", "--json").json == []
    assert len(queuectl("audit", "--since", "1h", "--limit", "2", "--json").json) == 2
    assert queuectl("audit", "--since", "2999-01-01", "--json").json == []


def test_a_data_directory_without_a_database_has_no_records(queuectl: Program, home: Path) -> None:
    assert queuectl("audit", "--json", check=0).json == []
    assert not (home / "queue.db").exists()


@pytest.mark.parametrize(
    "arguments",
    [("verify",), ("--since", "soon")],
)
def test_invalid_options_are_refused(queuectl: Program, arguments: tuple[str, ...]) -> None:
    refused = queuectl("audit", *arguments, check=2)
    assert refused.out == ""
    assert "hint: " in refused.err


def test_a_restore_and_an_import_are_recorded(queuectl: Program, home: Path) -> None:
    queuectl("enqueue", "true", check=0)
    queuectl("export", "--output", str(home / "jobs.json"))
    queuectl("backup", str(home / "b.db"), check=0)
    queuectl("enqueue", "false", check=0)
    queuectl("restore", str(home / "b.db"), "--yes", check=0)
    found = queuectl("audit", "--json", check=0).json
    assert [one["what"] for one in found] == ["restore", "enqueue"]
    assert found[0]["subjects"] == [str(home / "b.db")]  # the path as given
