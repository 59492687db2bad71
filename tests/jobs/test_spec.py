from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import IntEnum
from types import MappingProxyType
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuectl.config import load_settings
from queuectl.errors import InvalidInput, UnknownName, UsageError
from queuectl.jobs.model import NewJob
from queuectl.jobs.spec import (
    _FIELDS,
    NO_URLS,
    Defaults,
    check_field,
    command_variants,
    merge_fields,
    readers,
    validate,
)
from queuectl.text import short_repr
from tests.messages import assert_readable

DEFAULTS = Defaults(priority=4, max_retries=3, first_is_free=True, backoff_base=2.0, timeout_ms=9_000, cwd="/here")


def job(**fields: object) -> NewJob:
    """A job with these fields, and a command if they name none."""
    what = {} if "command" in fields or "argv" in fields else {"command": "true"}
    return validate({**what, **fields}, DEFAULTS)


def refusal(fields: object) -> UsageError:
    with pytest.raises(UsageError) as caught:
        validate(cast("Mapping[str, object]", fields), DEFAULTS)
    assert_readable(caught.value)
    return caught.value


# ── what is taken ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_defaults_of_a_queue_override_the_settings_and_not_the_job() -> None:
    here = DEFAULTS._replace(by_queue={"mail": (7, 1, 0, NO_URLS, None), "bare": (None, None, None, NO_URLS, None)})
    said = validate({"command": "true", "queue": "mail"}, here)
    assert (said.priority, said.max_retries, said.timeout_ms) == (7, 1, None)
    own = {"priority": 2, "max_attempts": 5, "timeout_ms": 100}
    for queue in ("mail", "bare", "other"):
        told = validate({"command": "true", "queue": queue, **own}, here)
        assert (told.priority, told.max_retries, told.timeout_ms) == (2, 5, 100)
    plain = validate({"command": "true", "queue": "bare"}, here)
    assert (plain.priority, plain.max_retries, plain.timeout_ms) == (4, 3, 9_000)


@pytest.mark.parametrize("name", ["", "a b", 3, "x" * 65])
def test_the_name_of_a_batch_has_the_syntax_of_a_queue(name: object) -> None:
    assert job(batch="nightly").batch == "nightly"
    assert "not the name of a batch" in refusal({"command": "true", "batch": name}).message


def test_a_key_is_any_short_text() -> None:
    assert job(key="customer 7, ü").key == "customer 7, ü"
    assert job(key=None).key is None


def test_a_job_with_only_a_command_gets_the_defaults() -> None:
    assert validate({"command": "echo hi"}, DEFAULTS) == NewJob(
        command="echo hi",
        argv=None,
        id=None,
        queue="default",
        priority=4,
        max_retries=3,
        first_is_free=True,
        backoff_base=2.0,
        timeout_ms=9_000,
        run_at_ms=None,
        delay_ms=None,
        cwd="/here",
        env=None,
        tags=(),
        unique_key=None,
    )


def test_the_defaults_come_from_the_settings() -> None:
    settings = load_settings({"priority": "7", "timeout": "1m", "first-attempt-is-free": "true"}, {})
    assert Defaults.of(settings, cwd="/tmp") == Defaults(
        priority=7, max_retries=3, first_is_free=True, backoff_base=2.0, timeout_ms=60_000, cwd="/tmp", queue="default"
    )


def test_null_means_not_given_for_every_field() -> None:
    everything = dict.fromkeys(_FIELDS)
    assert validate({**everything, "command": "true"}, DEFAULTS) == job()


def test_a_full_record_of_the_seeds_is_a_new_job() -> None:
    record = {
        "id": "unique-job-id",
        "command": "echo 'Hello World'",
        "state": "pending",
        "attempts": 0,
        "max_retries": 5,
        "base_backoff": 3.0,
        "priority": 0,
        "timeout_seconds": None,
        "created_at": "2025-11-04T10:30:00Z",
        "updated_at": "2025-11-04T10:30:00Z",
        "available_at": "2025-11-04T10:30:00Z",
        "stdout_log": "logs/job_unique-job-id.log",
        "waiting_time": 7,
    }
    taken = validate(record, DEFAULTS)
    assert (taken.id, taken.max_retries, taken.backoff_base, taken.priority) == ("unique-job-id", 5, 3.0, 0)
    assert taken.run_at_ms == 1_762_252_200_000


class Level(IntEnum):
    HIGH = 9


@pytest.mark.parametrize(
    "fields, kept",
    [
        ({"command": " echo  hi\n"}, {"command": " echo  hi\n"}),
        ({"command": "é" * 65_535}, {"command": "é" * 65_535}),
        ({"command": "x" * 131_071}, {"command": "x" * 131_071}),
        ({"argv": ["echo", "", "é"]}, {"argv": ("echo", "", "é"), "command": None}),
        ({"argv": ("x" * 131_071,) * 8}, {"argv": ("x" * 131_071,) * 8}),
        ({"id": "A.b_c:d-7"}, {"id": "A.b_c:d-7"}),
        ({"queue": "mail"}, {"queue": "mail"}),
        ({"priority": -1_000_000}, {"priority": -1_000_000}),
        ({"priority": 3.0}, {"priority": 3}),
        ({"priority": Level.HIGH}, {"priority": 9}),
        ({"max_retries": 0}, {"max_retries": 0, "first_is_free": True}),
        ({"max_attempts": 5}, {"max_retries": 5, "first_is_free": False}),
        ({"max_retries": 5, "max_attempts": 5.0}, {"max_retries": 5, "first_is_free": False}),
        ({"backoff_base": 1}, {"backoff_base": 1.0}),
        ({"base_backoff": 1.5}, {"backoff_base": 1.5}),
        ({"timeout": 0}, {"timeout_ms": None}),
        ({"timeout": "0s"}, {"timeout_ms": None}),
        ({"timeout": "1m30s"}, {"timeout_ms": 90_000}),
        ({"timeout_seconds": 1.5}, {"timeout_ms": 1_500}),
        ({"timeout_sec": 2}, {"timeout_ms": 2_000}),
        ({"timeout_ms": 250}, {"timeout_ms": 250}),
        ({"timeout_ms": 0.5}, {"timeout_ms": 1}),
        ({"timeout_ms": 0}, {"timeout_ms": None}),
        ({"timeout": "2s", "timeout_seconds": 2, "timeout_ms": 2000}, {"timeout_ms": 2_000}),
        ({"run_at": "2026-01-02T03:04:05Z"}, {"run_at_ms": 1_767_323_045_000}),
        ({"run_after": "2026-01-02 03:04:05Z"}, {"run_at_ms": 1_767_323_045_000}),
        ({"next_run_at": "2026-01-02T04:04:05+01:00"}, {"run_at_ms": 1_767_323_045_000}),
        ({"run_at": "2026-01-02 00:00Z", "available_at": "2026-01-02T00:00Z"}, {"run_at_ms": 1_767_312_000_000}),
        ({"delay": "10s"}, {"delay_ms": 10_000}),
        ({"delay": 0}, {"delay_ms": 0}),
        ({"delay": timedelta(minutes=1)}, {"delay_ms": 60_000}),
        ({"delay": 5, "run_at": None}, {"delay_ms": 5_000}),
        ({"cwd": "/a/b/../c/"}, {"cwd": "/a/c"}),
        ({"cwd": "sub dir/é"}, {"cwd": "/here/sub dir/é"}),
        ({"cwd": ".."}, {"cwd": "/"}),
        ({"env": {"A": "1", "B": ""}}, {"env": {"A": "1", "B": ""}}),
        ({"env": {}}, {"env": None}),
        ({"tags": ["b", "a", "b"]}, {"tags": ("a", "b")}),
        ({"tags": [f"t{n}" for n in range(32)] * 2}, {"tags": tuple(sorted(f"t{n}" for n in range(32)))}),
        ({"depends_on": [], "after": []}, {}),
        ({"state": "PENDING", "attempts": 0.0}, {}),
    ],
    ids=short_repr,
)
def test_a_field_is_stored_in_canonical_form(fields: dict[str, object], kept: dict[str, object]) -> None:
    taken = job(**fields)._asdict()
    assert {name: taken[name] for name in kept} == kept
    assert {name: type(taken[name]) for name in kept} == {name: type(value) for name, value in kept.items()}


def test_any_mapping_is_accepted() -> None:
    fields: Mapping[str, object] = MappingProxyType({"command": "true", "env": MappingProxyType({"A": "1"})})
    assert validate(fields, DEFAULTS).env == {"A": "1"}


# ── what is refused ─────────────────────────────────────────────────────────────────────────────────────────────────

LONG = "x" * 131_072


@pytest.mark.parametrize(
    "fields, message",
    [
        ([], "job: expected an object, got a list"),
        ("echo", "job: expected an object, got 'echo'"),
        ({}, "command: missing"),
        ({"command": None}, "command: missing"),
        ({"command": "true", "argv": ["true"]}, "argv: not together with command"),
        ({"command": ""}, "command: blank"),
        ({"command": " \t\n"}, "command: blank"),
        ({"command": 5}, "command: expected a string, got 5"),
        ({"command": ["echo"]}, "command: expected a string, got a list"),
        ({"command": "a\0b"}, "command: holds a NUL character"),
        ({"command": "a\ud800"}, r"command: holds a lone surrogate: 'a\ud800'"),
        ({"command": LONG}, "command: 131072 bytes, and the system takes 131071"),
        ({"command": "é" * 65_536}, "command: 131072 bytes, and the system takes 131071"),
        ({"argv": []}, "argv: expected a list of strings, not empty, got a list"),
        ({"argv": "echo hi"}, "argv: expected a list of strings, not empty, got 'echo hi'"),
        ({"argv": ["echo", 1]}, "argv[1]: expected a string, got 1"),
        ({"argv": ["echo", None]}, "argv[1]: expected a string, got null"),
        ({"argv": ["echo", "\0"]}, "argv[1]: holds a NUL character"),
        ({"argv": ["echo", "\udc80"]}, r"argv[1]: holds a lone surrogate: '\udc80'"),
        ({"argv": ["", "a"]}, "argv[0]: the name of the program is empty"),
        ({"argv": ["echo", LONG]}, "argv[1]: 131072 bytes, and the system takes 131071"),
        ({"argv": ["x" * 131_071] * 9}, "argv: 1179639 bytes in all, over 1048576"),
        ({"id": "last"}, "id: 'last' means the job enqueued last"),
        ({"id": ""}, "id: not an id: ''"),
        ({"id": 7}, "id: not an id: 7"),
        ({"id": "a b"}, "id: not an id: 'a b'"),
        ({"queue": "a:b"}, "queue: not the name of a queue: 'a:b'"),
        ({"queue": True}, "queue: not the name of a queue: true"),
        ({"priority": True}, "priority: expected an integer from -1000000 to 1000000, got true"),
        ({"priority": "3"}, "priority: expected an integer from -1000000 to 1000000, got '3'"),
        ({"priority": 3.5}, "priority: expected an integer from -1000000 to 1000000, got 3.5"),
        ({"priority": 1_000_001}, "priority: expected an integer from -1000000 to 1000000, got 1000001"),
        (
            {"priority": 1e300},
            "priority: expected an integer from -1000000 to 1000000, got an integer of absurd length",
        ),
        ({"priority": float("nan")}, "priority: expected an integer from -1000000 to 1000000, got nan"),
        ({"max_retries": -1}, "max_retries: expected an integer from 0 to 1000000, got -1"),
        ({"max_attempts": 10**30}, f"max_attempts: expected an integer from 0 to 1000000, got {10**30}"),
        ({"max_retries": 3, "max_attempts": 4}, "max_attempts: 4 contradicts max_retries: 3"),
        ({"backoff_base": 0.5}, "backoff_base: expected a number of at least 1, got 0.5"),
        ({"backoff_base": True}, "backoff_base: expected a number of at least 1, got true"),
        ({"backoff_base": "2"}, "backoff_base: expected a number of at least 1, got '2'"),
        ({"backoff_base": float("inf")}, "backoff_base: expected a number of at least 1, got inf"),
        ({"backoff_base": float("nan")}, "backoff_base: expected a number of at least 1, got nan"),
        ({"base_backoff": 10**400}, "base_backoff: expected a number of at least 1, got an integer of absurd length"),
        ({"backoff_base": 2, "base_backoff": 3}, "base_backoff: 3 contradicts backoff_base: 2"),
        ({"timeout": -1}, "timeout: a duration cannot be negative: -1"),
        ({"timeout": False}, "timeout: expected a duration, got false"),
        ({"timeout_ms": "5s"}, "timeout_ms: expected a number of milliseconds, got '5s'"),
        ({"timeout_ms": -0.5}, "timeout_ms: expected an integer from 0 to 3155760000000, got -0.5"),
        ({"timeout_ms": True}, "timeout_ms: expected an integer from 0 to 3155760000000, got true"),
        ({"timeout": 2, "timeout_ms": 2}, "timeout_ms: 2 contradicts timeout: 2"),
        ({"timeout": 2, "timeout_sec": 0}, "timeout_sec: 0 contradicts timeout: 2"),
        ({"timeout": 0, "timeout_sec": 2}, "timeout_sec: 2 contradicts timeout: 0"),
        ({"run_at": 1767323045}, "run_at: expected a time, got 1767323045"),
        ({"available_at": "2026-02-30"}, "available_at: there is no such time: '2026-02-30' (day is out of range"),
        (
            {"run_at": "2026-01-01", "run_after": "2026-01-02"},
            "run_after: '2026-01-02' contradicts run_at: '2026-01-01'",
        ),
        ({"delay": "soon"}, "delay: expected a duration, got 'soon'"),
        ({"delay": 0, "available_at": "2026-01-01"}, "delay: not together with available_at"),
        ({"cwd": ""}, "cwd: empty"),
        ({"cwd": 1}, "cwd: expected a string, got 1"),
        ({"cwd": "/a\0"}, "cwd: holds a NUL character"),
        ({"env": ["A=1"]}, "env: expected an object of strings, got a list"),
        ({"env": {"A": 1}}, "env.A: expected a string, got 1"),
        ({"env": {"A": None}}, "env.A: expected a string, got null"),
        ({"env": {"A": "\0"}}, "env.A: holds a NUL character"),
        ({"env": {"A": "\ud800"}}, r"env.A: holds a lone surrogate: '\ud800'"),
        ({"env": {"": "1"}}, "env: not the name of a variable: ''"),
        ({"env": {"A=B": "1"}}, "env: not the name of a variable: 'A=B'"),
        ({"env": {"A\0": "1"}}, "a name in env: holds a NUL character"),
        ({"env": {"\ud800": "1"}}, r"a name in env: holds a lone surrogate: '\ud800'"),
        ({"env": {1: "1"}}, "a name in env: expected a string, got 1"),
        ({"tags": "a"}, "tags: expected a list of names, got 'a'"),
        ({"tags": ["a", 1]}, "tags: not a tag: 1"),
        ({"tags": ["a b"]}, "tags: not a tag: 'a b'"),
        ({"tags": [f"t{n}" for n in range(33)]}, "tags: 33 tags, over 32"),
        ({"depends_on": [3]}, "depends_on: expected an id or an object, got 3"),
        ({"depends_on": ["a b"]}, "depends_on: not an id: 'a b'"),
        ({"depends_on": ["last"]}, "depends_on: 'last' means the job enqueued last"),
        ({"after": [{"when": "ended"}]}, "after: a parent without an id"),
        ({"after": [{"id": "a", "then": 1}]}, "after: unknown field 'then' of a parent"),
        ({"after": [{"id": "a", "when": "dead"}]}, "after.when: unknown value: 'dead'"),
        ({"after": [{"id": "a", "when": 3}]}, "after.when: unknown value: 3"),
        ({"after": [{"id": "a", "else": []}]}, "after.else: unknown value: a list"),
        ({"after": ["a", {"id": "a", "when": "ended"}]}, "after: waits for 'a' in two ways"),
        ({"after": [f"p{n}" for n in range(1001)]}, "after: 1,001 parents, over 1,000"),
        ({"after": ["a"], "depends_on": ["b"]}, "depends_on: a list contradicts after: a list"),
        ({"depends_on": "a"}, "depends_on: expected a list of ids, got 'a'"),
        ({"batch": "a b"}, "batch: not the name of a batch: 'a b'"),
        ({"unique_key": 1}, "unique_key: expected a string, got 1"),
        ({"unique_key": ""}, "unique_key: empty"),
        ({"unique_key": "ü" * 128 + "a"}, "unique_key: 257 bytes, over 256"),
        ({"key": 7}, "key: expected a string, got 7"),
        ({"key": ""}, "key: empty"),
        ({"key": "x" * 257}, "key: 257 bytes, over 256"),
        ({"key": "k", "places": 0}, "places: expected an integer from 1"),
        ({"places": 1}, "places: there is no key"),
        ({"unique_key": "a", "if_exists": "ignore"}, "if_exists: not known: 'ignore'"),
        ({"unique_key": "a", "if_exists": 1}, "if_exists: not known: 1"),
        ({"if_exists": "error"}, "if_exists: there is no unique_key"),
        ({"unique_for": "1h", "if_exists": "error"}, "unique_for: there is no unique_key"),
        ({"state": "completed"}, "state: expected 'pending', got 'completed'"),
        ({"state": 1}, "state: expected 'pending', got 1"),
        ({"attempts": 2}, "attempts: expected 0, got 2"),
        ({"attempts": -1}, "attempts: expected an integer from 0 to 9223372036854775807, got -1"),
        ({"attempts": False}, "attempts: expected an integer from 0 to 9223372036854775807, got false"),
    ],
    ids=short_repr,
)
def test_an_invalid_field_is_rejected_by_name_with_what_was_expected(fields: object, message: str) -> None:
    what = (
        {"command": "true"} if isinstance(fields, dict) and fields and not fields.keys() & {"command", "argv"} else None
    )
    refused = refusal({**what, **cast("dict[str, Any]", fields)} if what else fields)
    assert isinstance(refused, InvalidInput)
    assert refused.message.startswith(message)


def test_a_job_with_a_history_is_rejected_with_a_hint_to_import() -> None:
    assert "use import" in refusal({"command": "true", "state": "completed"}).hint
    assert "use import" in refusal({"command": "true", "attempts": 2}).hint


@pytest.mark.parametrize(
    "name, nearest",
    [
        ("comand", "command"),
        ("max-retries", "max_retries"),
        ("Priority", "priority"),
        ("timeout_s", "timeout"),
        ("tag", "tags"),
    ],
)
def test_an_unknown_field_is_rejected_with_the_closest_match(name: str, nearest: str) -> None:
    refused = refusal({"command": "true", name: None})
    assert isinstance(refused, UnknownName)
    assert refused.message == f"unknown field {name!r}"
    assert nearest in refused.hint


@pytest.mark.parametrize("name", ["zzz", "", "\ud800", "x" * 100_000, 7], ids=short_repr)
def test_an_unknown_field_without_a_match_is_rejected_with_all_fields(name: object) -> None:
    refused = refusal({name: 1})
    assert isinstance(refused, UnknownName)
    assert refused.hint.startswith("known: command, argv, id, ")


# ── arbitrary input ─────────────────────────────────────────────────────────────────────────────────────────────────

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters()),
    st.sampled_from(["", "last", "pending", "1h", "\ud800", "\0", "2026-01-01", 10**400, -1, 0, 1e308]),
)
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


@given(values)
def test_any_json_is_a_job_or_rejected(value: object) -> None:
    try:
        validate(cast("Mapping[str, object]", value), DEFAULTS)
    except UsageError as refused:
        assert_readable(refused)


@given(st.dictionaries(st.sampled_from(sorted(_FIELDS)), values, max_size=4), st.sampled_from(["true", None]))
def test_any_values_of_known_fields_are_a_job_or_rejected(fields: dict[str, object], command: str | None) -> None:
    try:
        taken = validate({**fields, **({"command": command} if command else {})}, DEFAULTS)
    except UsageError as refused:
        assert_readable(refused)
    else:
        assert (taken.command is None) is not (taken.argv is None)
        assert repr(taken).encode()
        assert "".join([taken.cwd, *taken.tags, *(taken.argv or ()), *(taken.env or ())]).encode()


# ── flags over fields ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "fields, flags, merged",
    [
        ({"command": "a", "priority": 1}, {"priority": 2}, {"command": "a", "priority": 2}),
        ({"argv": ["a"]}, {"command": "b"}, {"command": "b"}),
        ({"max_attempts": 3}, {"max_retries": 5}, {"max_retries": 5}),
        ({"base_backoff": 3}, {"backoff_base": 5}, {"backoff_base": 5}),
        ({"timeout_ms": 3, "timeout_sec": 1}, {"timeout": "5s"}, {"timeout": "5s"}),
        ({"available_at": "2026-01-01"}, {"delay": "5s"}, {"delay": "5s"}),
        ({"delay": 1, "run_after": "2026-01-01"}, {"run_at": "2026-01-02"}, {"run_at": "2026-01-02"}),
        ({"after": []}, {"depends_on": ["a"]}, {"depends_on": ["a"]}),
        ({"tags": ["a"]}, {"tags": ["b"]}, {"tags": ["b"]}),
        ({"env": {"A": "1", "B": "1"}}, {"env": {"B": "2"}}, {"env": {"A": "1", "B": "2"}}),
        ({"env": 5}, {"env": {"B": "2"}}, {"env": {"B": "2"}}),
        ({"comand": 5}, {}, {"comand": 5}),
    ],
    ids=short_repr,
)
def test_a_flag_replaces_every_name_of_its_field(
    fields: dict[str, object], flags: dict[str, object], merged: dict[str, object]
) -> None:
    before = dict(fields)
    assert merge_fields(fields, flags) == merged
    assert fields == before


@pytest.mark.parametrize(
    "name, good, bad, spelled",
    [("priority", 5, 10**9, "--priority"), ("run_at", "2030-01-01T00:00:00Z", "someday", "--at")],
)
def test_an_invalid_option_is_rejected_by_its_name(name: str, good: object, bad: object, spelled: str) -> None:
    check_field(name, good, spelled=spelled)
    with pytest.raises(InvalidInput) as caught:
        check_field(name, bad, spelled=spelled)
    assert caught.value.message.startswith(f"{spelled}: ")


def test_command_variants_differ_only_by_their_validated_command() -> None:
    fields = {"queue": "mail", "priority": 7, "tags": ["a"], "env": {"A": "b"}}
    make = command_variants(validate({"command": "first", **fields}, DEFAULTS))
    assert make("second") == validate({"command": "second", **fields}, DEFAULTS)
    with pytest.raises(InvalidInput, match="command"):
        make(" ")


def told(fields: dict[str, object], **changes: Any) -> Any:
    return validate({"command": "true", **fields}, DEFAULTS._replace(**changes)).hooks


URLS = ("https://a.example/s", "https://a.example/f", "https://a.example/d")


def test_a_webhook_is_that_of_the_job_else_of_its_queue_else_of_the_settings() -> None:
    by_queue = {"mail": (None, None, None, ("https://q.example/", None, "https://q.example/d"), None)}
    own = {"queue": "mail", "on_success": "http://j.example/"}
    assert told(own, by_queue=by_queue, urls=URLS) == {
        "success": ["http://j.example/", "job"],
        "failure": [URLS[1], "config"],
        "dead": ["https://q.example/d", "queue"],
    }
    assert told({}) is None
    assert told({"queue": "mail"}, by_queue={"mail": (7, None, None, NO_URLS, None)}) is None


def test_a_job_can_disable_its_webhooks() -> None:
    disabled: dict[str, object] = {"on_success": "none", "on_failure": "None", "on_dead": "none"}
    assert told(disabled, urls=URLS) is None


def test_users_cannot_add_jobs_to_the_queue_of_webhook_deliveries() -> None:
    with pytest.raises(InvalidInput, match=r"^queue: queuectl\.webhooks is reserved for webhook deliveries"):
        told({"queue": "queuectl.webhooks"})


@pytest.mark.parametrize("name", ["on_success", "on_failure", "on_dead"])
def test_a_webhook_has_to_be_a_url(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{name}: not an http or https URL"):
        told({name: "ftp://example.org/"})


def test_every_stored_field_has_a_preferred_name_and_a_parser() -> None:
    found = readers()
    assert {name: preferred for name, (preferred, _) in found.items() if name != preferred}["after"] == "depends_on"
    assert found["run_at"][1]("1970-01-01T00:00:01Z", "run_at") == 1000
    assert "created_at" not in found
