from __future__ import annotations

import pytest

from queuectl.errors import InvalidInput
from queuectl.jobs.edit import parse_edit
from queuectl.jobs.import_record import parse_record
from queuectl.jobs.spec import Defaults, merge_fields, validate
from queuectl.secrets.rules import MAX_SECRETS, SecretRequest, merge_secrets, parse_entry, parse_secrets, parse_stored

DEFAULTS = Defaults(priority=0, max_retries=3, first_is_free=False, backoff_base=2.0, timeout_ms=None, cwd="/here")


def kept(value: object) -> tuple[str, ...]:
    return validate({"command": "true", "secrets": value}, DEFAULTS).secrets


def test_names_of_secrets_are_stored_sorted_and_each_once() -> None:
    assert kept(["TOKEN=api-token", "DB_PASSWORD", "TOKEN=api-token", "A=A"]) == ("A", "DB_PASSWORD", "TOKEN=api-token")
    assert kept([]) == kept(None) == ()


def test_the_stored_form_has_the_variable_and_the_entry() -> None:
    assert parse_stored(("A", "TOKEN=api-token")) == [SecretRequest("A", "A"), SecretRequest("TOKEN", "api-token")]


@pytest.mark.parametrize(
    "value, problem",
    [
        ("TOKEN", "expected a list of names"),
        ([1], "expected a name"),
        (["db-password"], "not the name of a variable"),
        (["/etc/passwd"], "not the name of a variable"),
        (["=x"], "not the name of a variable"),
        (["A="], "not the name of a secret"),
        (["A=../../etc/shadow"], "not the name of a secret"),
        (["A=-rf"], "not the name of a secret"),
        (["A=.hidden"], "not the name of a secret"),
        (["A=x\n"], "not the name of a secret"),
        (["QUEUECTL_JOB_ID=x"], "is reserved"),
        (["A=x", "A=y"], "requested twice"),
        ([f"A{number}" for number in range(MAX_SECRETS + 1)], f"over {MAX_SECRETS}"),
    ],
)
def test_an_invalid_name_is_refused(value: object, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        kept(value)


def test_an_error_suggests_another_variable_for_an_entry() -> None:
    with pytest.raises(InvalidInput) as found:
        parse_secrets(["db-password"], "--secret")
    assert "MY_SECRET=db-password" in found.value.hint
    with pytest.raises(InvalidInput) as found:
        parse_secrets(["a b"], "secrets")
    assert "MY_SECRET" not in found.value.hint


def test_a_secret_of_a_host_has_the_name_of_a_file() -> None:
    assert parse_entry("db-password.2", "NAME") == "db-password.2"
    for name in ("a/b", "..", "", "-x", "a b", "a\0", 7):
        with pytest.raises(InvalidInput):
            parse_entry(name, "NAME")


def test_options_override_the_json_for_each_variable() -> None:
    given = {"command": "true", "secrets": ["A=one", "B"]}
    assert validate(merge_fields(given, {"secrets": ["A=two", "C"]}), DEFAULTS).secrets == ("A=two", "B", "C")
    assert merge_secrets("wrong", ["A"]) == ["A"]
    assert merge_secrets(["A"], "wrong") == "wrong"


def test_an_edit_replaces_secrets_and_an_import_keeps_them() -> None:
    assert parse_edit({"secrets": ["B", "A"]}).secrets == ("A", "B")
    assert parse_edit({"secrets": []}).secrets == ()
    record = {"id": "a", "command": "true", "state": "pending", "created_at": "2026-01-02T03:04:05Z"}
    assert parse_record({**record, "secrets": ["A=b"]}, DEFAULTS).secrets == ("A=b",)
