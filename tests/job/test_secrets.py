from __future__ import annotations

from typing import Any

import pytest

from queuectl.errors import InvalidInput, UnknownName
from queuectl.job.change import read_change
from queuectl.job.past import read_record
from queuectl.job.secrets import MOST, Teller, Wanted, entry, merged, parse_teller, secrets, wanted
from queuectl.job.spec import Defaults, merge, validate

DEFAULTS = Defaults(priority=0, max_retries=3, first_is_free=False, backoff_base=2.0, timeout_ms=None, cwd="/here")


def kept(value: object) -> tuple[str, ...]:
    return validate({"command": "true", "secrets": value}, DEFAULTS).secrets


def test_a_job_keeps_the_names_of_its_secrets_sorted_and_each_once() -> None:
    assert kept(["TOKEN=api-token", "DB_PASSWORD", "TOKEN=api-token", "A=A"]) == ("A", "DB_PASSWORD", "TOKEN=api-token")
    assert kept([]) == kept(None) == ()


def test_what_is_kept_says_which_variable_and_under_which_name_the_host_has_it() -> None:
    assert wanted(("A", "TOKEN=api-token")) == [Wanted("A", "A"), Wanted("TOKEN", "api-token")]


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
        (["QUEUECTL_JOB_ID=x"], "is one of ours"),
        (["A=x", "A=y"], "asked for twice"),
        ([f"A{number}" for number in range(MOST + 1)], f"over {MOST}"),
    ],
)
def test_a_name_that_cannot_be_is_refused(value: object, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        kept(value)


def test_a_refusal_says_how_the_host_may_call_it_otherwise() -> None:
    with pytest.raises(InvalidInput) as found:
        secrets(["db-password"], "--secret")
    assert "MY_SECRET=db-password" in found.value.hint
    with pytest.raises(InvalidInput) as found:
        secrets(["a b"], "secrets")
    assert "MY_SECRET" not in found.value.hint


def test_a_secret_of_a_host_has_the_name_of_a_file() -> None:
    assert entry("db-password.2", "NAME") == "db-password.2"
    for name in ("a/b", "..", "", "-x", "a b", "a\0", 7):
        with pytest.raises(InvalidInput):
            entry(name, "NAME")


def test_of_options_and_json_each_variable_counts_for_itself() -> None:
    given = {"command": "true", "secrets": ["A=one", "B"]}
    assert validate(merge(given, {"secrets": ["A=two", "C"]}), DEFAULTS).secrets == ("A=two", "B", "C")
    assert merged("wrong", ["A"]) == ["A"]
    assert merged(["A"], "wrong") == "wrong"


def test_an_edit_replaces_them_and_an_import_brings_them_along() -> None:
    assert read_change({"secrets": ["B", "A"]}).secrets == ("A", "B")
    assert read_change({"secrets": []}).secrets == ()
    record = {"id": "a", "command": "true", "state": "pending", "created_at": "2026-01-02T03:04:05Z"}
    assert read_record({**record, "secrets": ["A=b"]}, DEFAULTS).secrets == ("A=b",)


# ── whom to ask ─────────────────────────────────────────────────────────────────────────────────────────────────────


def teller(**said: Any) -> Teller:
    return parse_teller(said, subject="secrets.toml")


def test_a_command_is_told_the_name_in_its_words() -> None:
    found = teller(command=["pass", "show", "work/{name}"])
    assert found.words("db") == ["pass", "show", "work/db"]
    assert found.timeout_ms == 10_000
    assert teller(command=["x", "{name}"], timeout="1m").timeout_ms == 60_000


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"command": "pass show {name}"},
        {"command": []},
        {"command": ["pass", 1, "{name}"]},
        {"command": ["pass", "a\0{name}"]},
        {"command": ["", "{name}"]},
        {"command": ["{name}"]},
        {"command": ["{name}", "{name}"]},
        {"command": ["pass", "show"]},
        {"command": ["pass", "{name}"], "timeout": 0},
        {"command": ["pass", "{name}"], "timeout": "6m"},
        {"command": ["pass", "{name}"], "timeout": []},
    ],
)
def test_what_cannot_be_asked_is_refused(said: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"^secrets\.toml: "):
        teller(**said)


def test_a_setting_that_there_is_not_is_refused() -> None:
    with pytest.raises(UnknownName):
        teller(comand=["pass", "{name}"])
