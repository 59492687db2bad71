from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from queuectl.config import (
    change_settings,
    db_address,
    environ,
    here,
    home_path,
    job_environment_base,
    load_settings,
    user_directory,
    working_directory,
)
from queuectl.errors import InvalidInput, UnknownName
from queuectl.jobs.priority import ByEnqueues, ByTime, Strict
from queuectl.settings import KEYS, Key, Settings, Value, resolve_key
from tests.messages import assert_readable
from tests.needs import require

# ── what is in force ────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_defaults_are_those_of_the_contract() -> None:
    texts = {entry.key: entry.text for entry in load_settings({}, {}).entries()}
    assert texts == {
        "max-retries": "3",
        "backoff-base": "2",
        "backoff-max": "1h",
        "backoff-jitter": "0",
        "first-attempt-is-free": "false",
        "max-crashes": "3",
        "timeout": "none",
        "kill-grace": "5s",
        "priority": "0",
        "ageing": "off",
        "worker-count": "1",
        "poll-interval": "1s",
        "heartbeat": "5s",
        "lease": "30s",
        "log-limit": "64MiB",
        "output-limit": "64KiB",
        "retain-completed": "30d",
        "retain-dead": "forever",
        "retain-audit": "365d",
        "webhook-success": "none",
        "webhook-failure": "none",
        "webhook-dead": "none",
        "webhook-secret": "none",
        "webhook-allow-private": "false",
    }


def test_the_settings_have_types_for_programs() -> None:
    typed = {entry.key: entry.value for entry in load_settings({}, {}).entries()}
    assert [typed[key] for key in ("max-retries", "backoff-base", "backoff-max")] == [3, 2.0, "1h"]
    assert [typed[key] for key in ("timeout", "retain-dead", "first-attempt-is-free")] == [None, None, False]
    assert [typed[key] for key in ("ageing", "log-limit")] == ["off", "64MiB"]
    assert isinstance(typed["backoff-base"], float)


def test_the_environment_wins_over_stored_values_over_defaults() -> None:
    settings = load_settings({"max-retries": "5", "priority": "5"}, {"QUEUECTL_PRIORITY": "6"})
    assert (settings.max_crashes, settings.max_retries, settings.priority) == (3, 5, 6)
    sources = {entry.key: entry.source for entry in settings.entries()}
    assert [sources[key] for key in ("max-crashes", "max-retries", "priority")] == ["default", "stored", "env"]


def test_stored_values_are_read_as_they_were_written() -> None:
    stored = {"ageing": "10m", "retain-completed": "forever", "timeout": "1m30s", "log-limit": "10MB"}
    settings = load_settings(stored, {})
    assert (settings.ageing, settings.retain_completed_ms) == (ByTime(600_000), None)
    assert (settings.timeout_ms, settings.log_limit) == (90_000, 10_000_000)


def test_stored_keys_of_a_newer_version_are_ignored() -> None:
    assert load_settings({"colour": "blue"}, {}) == load_settings({}, {})


def test_an_invalid_stored_value_is_reported_with_a_hint() -> None:
    with pytest.raises(InvalidInput, match="the stored lease: expected a duration, got 'bla'") as caught:
        load_settings({"lease": "bla"}, {})
    assert "queuectl config unset lease" in caught.value.hint


# ── the environment ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("variable", ["QUEUECTL_MAX_RETRIES", "QUEUECTL_DEFAULT_MAX_RETRIES", "QUEUECTL_MAX_ATTEMPTS"])
def test_every_name_of_a_key_is_a_variable(variable: str) -> None:
    assert load_settings({}, {variable: "8"}).max_retries == 8


@pytest.mark.parametrize("value", ["off", "enqueues", "nonsense", ""])
def test_ageing_from_the_environment_is_rejected(value: str) -> None:
    with pytest.raises(InvalidInput, match=r"^QUEUECTL_AGEING: ") as caught:
        load_settings({}, {"QUEUECTL_AGEING": value})
    assert "config set ageing" in caught.value.hint


def test_reserved_and_unknown_variables_are_ignored() -> None:
    env = {"QUEUECTL_HOME": "/h", "QUEUECTL_ATTEMPT": "x", "QUEUECTL_COLOUR": "x", "MAX_RETRIES": "x"}
    assert load_settings({}, env) == load_settings({}, {})


@pytest.mark.parametrize("value", ["", "many", "-1", "3.5", "1000001", "9" * 5000], ids=len)
def test_an_invalid_variable_is_rejected_by_name(value: str) -> None:
    with pytest.raises(InvalidInput, match=r"^QUEUECTL_MAX_RETRIES: ") as caught:
        load_settings({}, {"QUEUECTL_MAX_RETRIES": value})
    assert "an integer from 0 to 1000000" in caught.value.hint


def test_two_variables_of_one_key_may_agree_but_not_differ() -> None:
    assert load_settings({}, {"QUEUECTL_TIMEOUT": "5s", "QUEUECTL_JOB_TIMEOUT": "5s"}).timeout_ms == 5_000
    with pytest.raises(InvalidInput, match="QUEUECTL_JOB_TIMEOUT: is an alias of QUEUECTL_TIMEOUT"):
        load_settings({}, {"QUEUECTL_TIMEOUT": "5s", "QUEUECTL_JOB_TIMEOUT": "6s"})


# ── changes ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "name, written, kept",
    [
        ("max-retries", "5", ("max-retries", "5")),
        ("max_retries", " +5 ", ("max-retries", "5")),
        ("default-max-retries", "0", ("max-retries", "0")),
        ("MAX-ATTEMPTS", "1", ("max-retries", "1")),
        ("base_backoff", "1.50", ("backoff-base", "1.5")),
        ("backoff-base", "3.0", ("backoff-base", "3")),
        ("backoff-max", "90", ("backoff-max", "1m30s")),
        ("backoff-max", "0", ("backoff-max", "0s")),
        ("backoff-jitter", ".25", ("backoff-jitter", "0.25")),
        ("backoff-jitter", "1", ("backoff-jitter", "1")),
        ("first-attempt-is-free", "Yes", ("first-attempt-is-free", "true")),
        ("first_attempt_is_free", "off", ("first-attempt-is-free", "false")),
        ("job-timeout", "60", ("timeout", "1m")),
        ("default-timeout", "0", ("timeout", "none")),
        ("timeout", "None", ("timeout", "none")),
        ("priority", "-5", ("priority", "-5")),
        ("ageing", "600", ("ageing", "10m")),
        ("ageing", "Enqueues", ("ageing", "enqueues")),
        ("log-limit", "65536", ("log-limit", "64KiB")),
        ("retain-dead", "2w", ("retain-dead", "14d")),
        ("retain-dead", "forever", ("retain-dead", "forever")),
        ("retain-completed", "0", ("retain-completed", "0s")),
        ("lease", "10s", ("lease", "10s")),
    ],
)
def test_a_value_is_stored_in_canonical_form(name: str, written: str, kept: tuple[str, str]) -> None:
    assert change_settings({}, {name: written}) == dict([kept])


def test_a_setting_can_be_unset() -> None:
    assert change_settings({"priority": "5"}, {"Priority": None}) == {"priority": None}


@pytest.mark.parametrize(
    "name, written",
    [
        ("max-retries", "true"),
        ("max-retries", "1_000"),
        ("max-retries", "٣"),
        ("backoff-base", "0.9"),
        ("backoff-base", "inf"),
        ("backoff-base", "1" * 301),
        ("backoff-base", "1e3"),
        ("backoff-max", "-1"),
        ("backoff-jitter", "1.1"),
        ("backoff-jitter", "nan"),
        ("first-attempt-is-free", "2"),
        ("max-crashes", "0"),
        ("timeout", "forever"),
        ("kill-grace", "2d"),
        ("priority", "1000001"),
        ("ageing", "0"),
        ("worker-count", "0"),
        ("worker-count", "1001"),
        ("poll-interval", "0"),
        ("heartbeat", "1ms"),
        ("lease", "9s"),
        ("heartbeat", "16s"),
        ("log-limit", "1"),
        ("output-limit", "2GiB"),
        ("output-limit", "much"),
        ("retain-dead", "none"),
        ("retain-dead", "101w1000y"),
    ],
)
def test_an_invalid_value_is_rejected_with_the_accepted_form(name: str, written: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        change_settings({}, {name: written})
    assert_readable(caught.value)
    assert name in caught.value.message


def test_lease_and_heartbeat_are_validated_together() -> None:
    assert change_settings({}, {"heartbeat": "1m", "lease": "2m"}) == {"heartbeat": "1m", "lease": "2m"}
    with pytest.raises(InvalidInput, match="lease: 2s is less than twice the heartbeat of 5s") as caught:
        change_settings({"heartbeat": "1s", "lease": "2s"}, {"heartbeat": None})
    assert caught.value.hint == "set lease to 10s or more, or heartbeat to 1s or less"


def test_contradicting_variables_are_rejected_by_name() -> None:
    with pytest.raises(InvalidInput, match=r"lease: 30s is less than .* 20s \(QUEUECTL_HEARTBEAT\)"):
        load_settings({}, {"QUEUECTL_HEARTBEAT": "20s"})


def test_an_invalid_stored_value_can_be_replaced() -> None:
    assert change_settings({"lease": "bla", "priority": "x"}, {"lease": "1m"}) == {"lease": "1m"}


@pytest.mark.parametrize(
    "name, hint",
    [
        ("max-retires", "did you mean 'max-retries'?"),
        ("lese", "did you mean 'lease'?"),
        ("zzz", "known: max-retries, "),
    ],
)
def test_an_unknown_key_is_rejected_with_the_closest_match(name: str, hint: str) -> None:
    with pytest.raises(UnknownName, match=f"unknown key '{name}'") as caught:
        resolve_key(name)
    assert caught.value.hint.startswith(hint)


# ── the registry ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_key_is_an_attribute_of_the_settings_and_the_other_way_round() -> None:
    assert [*(key.attribute for key in KEYS), "origins"] == list(Settings._fields)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_every_default_is_a_valid_value(key: Key) -> None:
    assert key.parse(key.text(key.default), subject=key.name) == key.default
    assert key.form
    assert key.about


def key_named(name: str) -> Key:
    return next(key for key in KEYS if key.name == name)


numbers = st.floats(0, 1e15).map(lambda number: f"{number:f}")
texts = st.one_of(
    st.text(),
    st.integers().map(str),
    numbers,
    st.tuples(numbers, st.sampled_from(["ms", "s", "m", "h", "d", "w", "KiB", "MB"])).map("".join),
    st.sampled_from(["none", "forever", "off", "enqueues", "true", "no"]),
)


@given(st.sampled_from(KEYS), texts)
@example(key_named("backoff-base"), "9999999999999999")
@example(key_named("backoff-jitter"), "0.00001")
def test_any_text_is_a_value_that_is_formatted_and_parsed_unchanged_or_rejected(key: Key, text: str) -> None:
    try:
        value: Value = key.parse(text, subject=key.name)
    except InvalidInput as refused:
        assert_readable(refused)
    else:
        assert key.parse(key.text(value), subject=key.name) == value


def test_the_three_kinds_of_ageing_can_be_set() -> None:
    kinds = [load_settings({"ageing": text}, {}).ageing for text in ("off", "enqueues", "1h")]
    assert kinds == [Strict(), ByEnqueues(), ByTime(3_600_000)]


# ── where things are ────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_data_directory_is_the_flag_else_the_variable_else_in_the_user_directory(tmp_path: Path) -> None:
    env = {"QUEUECTL_HOME": "/from/env", "HOME": "/users/me"}
    assert home_path("/flag/../home", env) == "/home"
    assert home_path(tmp_path, env) == str(tmp_path)
    assert home_path(None, env) == "/from/env"
    assert home_path(None, {"HOME": "/users/me"}) == "/users/me/.queuectl"


def test_a_relative_home_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert home_path("q", {}) == str(tmp_path / "q")


def test_an_unexpanded_tilde_is_the_user_directory() -> None:
    assert home_path(None, {"QUEUECTL_HOME": "~/q", "HOME": "/users/me"}) == "/users/me/q"
    assert home_path("~", {"HOME": "/users/me"}) == "/users/me"


def test_without_a_variable_the_user_directory_is_that_of_the_system() -> None:
    assert home_path(None, {}) == f"{user_directory(os.getuid())}/.queuectl"


def test_a_user_without_a_directory_has_to_name_a_data_directory() -> None:
    with pytest.raises(InvalidInput, match="home: user 2147483641 has no directory"):
        user_directory(2_147_483_641)


@pytest.mark.parametrize(
    "flag, env, subject",
    [
        ("", {}, "--home: empty"),
        (None, {"QUEUECTL_HOME": ""}, "QUEUECTL_HOME: empty"),
        ("a\0", {}, "--home: holds a NUL"),
    ],
)
def test_an_empty_data_directory_is_rejected(flag: str | None, env: dict[str, str], subject: str) -> None:
    with pytest.raises(InvalidInput, match=subject):
        home_path(flag, env)


def test_a_data_directory_with_invalid_utf_8_is_rejected() -> None:
    with pytest.raises(InvalidInput, match="home: the path is not UTF-8"):
        home_path(os.fsdecode(b"/tmp/\xff"), {})


def test_a_removed_working_directory_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    assert working_directory() == str(gone)
    gone.rmdir()
    with pytest.raises(InvalidInput, match="the current directory: it does not exist any more"):
        working_directory()


def test_the_address_of_the_store_is_the_flag_else_the_variable_else_none() -> None:
    env = {"QUEUECTL_DB": "sqlite:///x"}
    assert (db_address("/y", env), db_address(None, env), db_address(None, {})) == ("/y", "sqlite:///x", None)


def test_the_host_is_the_variable_else_the_host_name() -> None:
    assert here({"QUEUECTL_HOST": "other"}) == ("other", "other")
    assert here({}).host == os.uname().nodename


def test_the_machine_is_the_same_for_every_process_that_sees_the_same_processes() -> None:
    ask = [sys.executable, "-c", "from queuectl.config import here; print(here({}).machine)"]
    assert subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip() == here({}).machine
    aside = ["unshare", "--pid", "--fork", "--mount-proc"]
    able = shutil.which("unshare") and subprocess.run([*aside, "true"], capture_output=True).returncode == 0
    require("unshare --pid", able, "a process namespace of its own needs privileges")
    elsewhere = subprocess.run([*aside, *ask], capture_output=True, text=True, check=True).stdout.strip()
    assert elsewhere != here({}).machine


def test_a_job_inherits_the_environment_but_not_that_of_another_job() -> None:
    env = {
        "PATH": "/bin",
        "QUEUECTL_HOME": "/h",
        "QUEUECTL_TIMEOUT": "5s",
        "QUEUECTL_JOB_ID": "a",
        "QUEUECTL_SLOT": "1",
    }
    assert job_environment_base(env) == {"PATH": "/bin", "QUEUECTL_HOME": "/h", "QUEUECTL_TIMEOUT": "5s"}


def test_without_another_the_environment_is_that_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"HOME": "/d", "DB": "/d/db", "HOST": "h", "JOB_ID": "j"}.items():
        monkeypatch.setenv(f"QUEUECTL_{name}", value)
    assert environ()["QUEUECTL_HOME"] == "/d"
    assert (home_path(), db_address(), here().host) == ("/d", "/d/db", "h")
    assert job_environment_base()["QUEUECTL_HOST"] == "h"
    assert "QUEUECTL_JOB_ID" not in job_environment_base()


def test_a_job_does_not_get_the_token_of_the_api() -> None:
    given = {"QUEUECTL_TOKEN": "secret", "QUEUECTL_HOME": "/home", "PATH": "/bin"}
    assert job_environment_base(given) == {"QUEUECTL_HOME": "/home", "PATH": "/bin"}


def test_a_secret_setting_is_never_shown() -> None:
    stored = {"webhook-secret": "0123456789abcdef", "webhook-dead": "https://example.org/hidden?key=hidden"}
    settings = load_settings(stored, {})
    assert (settings.webhook_secret, settings.webhook_dead) == tuple(stored.values())
    shown = {entry.key: (entry.text, entry.value) for entry in settings.entries()}
    assert shown["webhook-secret"] == ("***", "***")
    assert shown["webhook-dead"] == ("https://example.org/…", "https://example.org/…")
    assert change_settings({}, stored) == stored


@pytest.mark.parametrize("secret", ["short", "0123456789abcde\x07f", "x" * 257, "ä" * 20])
def test_an_invalid_secret_is_rejected_without_printing_it(secret: str) -> None:
    with pytest.raises(InvalidInput, match="webhook-secret: expected 16 to 256 visible") as caught:
        change_settings({}, {"webhook-secret": secret})
    assert secret not in caught.value.message + caught.value.hint
    assert load_settings({"webhook-secret": "none"}, {}).webhook_secret is None
