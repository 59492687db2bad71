"""--json with a list of fields."""

from __future__ import annotations

import json

import pytest

from queuectl.cli.command import JOB_FIELDS
from tests.program import Program


@pytest.fixture
def job(queuectl: Program) -> str:
    return queuectl("enqueue", "--id", "a", "--queue", "mail", "true", check=0).out.strip()


@pytest.mark.parametrize(
    "arguments",
    [
        ("--json", "id,state"),
        ("--json", "id, state"),
        ("--json=id,state",),
        ("--queue", "mail", "--json", "id,state"),
        ("a", "--json=id,state"),
    ],
    ids=" ".join,
)
def test_list_prints_the_named_fields_only(queuectl: Program, job: str, arguments: tuple[str, ...]) -> None:
    assert queuectl("list", *arguments, check=0).json == [{"id": job, "state": "pending"}]


def test_the_fields_are_in_the_order_given(queuectl: Program, job: str) -> None:
    (found,) = queuectl("list", "--json", "state,queue,id", check=0).json
    assert list(found) == ["state", "queue", "id"]


def test_one_field_is_a_list_too(queuectl: Program, job: str) -> None:
    assert queuectl("list", "--json", "id", check=0).json == [{"id": job}]
    assert queuectl("show", "a", "--json", "id", check=0).json == {"id": job}
    assert queuectl("enqueue", "true", "--json", "queue", check=0).json == {"queue": "default"}


def test_show_dlq_and_enqueue_print_the_named_fields_only(queuectl: Program, job: str) -> None:
    assert queuectl("show", "--json", "id,queue", "a", check=0).json == {"id": job, "queue": "mail"}
    assert queuectl("show", "a", "--json=history,output", check=0).json == {"history": [], "output": None}
    assert queuectl("dlq", "list", "--json", "id,error", check=0).json == []
    added = queuectl("enqueue", "--json", "id,duplicate", "--id", "b", "true", check=0).json
    assert added == {"id": "b", "duplicate": False}
    listed = queuectl("enqueue", "--file", "-", "--json", "id,queue", input='[{"id": "c", "command": "true"}]', check=0)
    assert listed.json == [{"id": "c", "queue": "default"}]


def test_plain_json_prints_all_fields(queuectl: Program, job: str) -> None:
    shown = queuectl("show", "a", "--json", check=0).json
    assert set(shown) | {"duplicate"} == JOB_FIELDS
    assert queuectl("--json", "show", "a", check=0).json == shown
    assert queuectl("show", "--json", "a", check=0).json == shown
    assert queuectl("list", "--json", "a", check=0).json[0]["id"] == job


@pytest.mark.parametrize("command", ["env", "id", "nice"])
def test_a_command_with_the_name_of_a_field_is_still_a_command(queuectl: Program, command: str) -> None:
    added = queuectl("enqueue", "--json", command, check=0).json
    assert added["command"] == command
    assert "state" in added
    assert queuectl("enqueue", "--json", "--", "env", "A=1", check=0).json["argv"] == ["env", "A=1"]
    assert queuectl("enqueue", "--queue", "mail", "--json", command, check=0).json["command"] == command
    argv = queuectl("enqueue", "--", "curl", "--json", "id,state", check=0).out.strip()
    assert queuectl("show", argv, "--json", check=0).json["argv"] == ["curl", "--json", "id,state"]


def test_a_job_with_the_name_of_a_field_can_be_shown(queuectl: Program) -> None:
    queuectl("enqueue", "--id", "state", "true", check=0)
    assert queuectl("show", "--json", "state", check=0).json["id"] == "state"


@pytest.mark.parametrize(
    "arguments", [("list", "--json", "id,stat"), ("show", "a", "--json=stat"), ("list", "--json=")]
)
def test_an_unknown_field_is_invalid_and_suggests_the_nearest(
    queuectl: Program, job: str, arguments: tuple[str, ...]
) -> None:
    refused = queuectl(*arguments, check=2)
    assert refused.out == ""
    error = json.loads(refused.err)["error"]
    assert error["message"].startswith("unknown field")
    assert "state" in error["hint"]


def test_other_commands_take_json_without_fields(queuectl: Program) -> None:
    assert queuectl("status", "--json=id,state").code == 2
