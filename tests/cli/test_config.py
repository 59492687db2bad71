from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.program import Program
from tests.terminal import Terminal, plain


def test_defaults_apply_without_a_data_directory(queuectl: Program) -> None:
    listed = {entry["key"]: entry for entry in queuectl("config", "list", "--json", check=0).json}
    assert listed["max-retries"] == {"key": "max-retries", "value": 3, "default": 3, "source": "default"}
    assert listed["backoff-base"]["value"] == 2.0
    assert listed["backoff-max"]["value"] == "1h"
    assert listed["timeout"]["value"] is None
    assert listed["first-attempt-is-free"]["value"] is False
    assert not queuectl.home.exists()


def test_in_a_pipe_a_setting_is_a_line(queuectl: Program) -> None:
    lines = queuectl("config", "list", check=0).lines
    assert "max-retries = 3" in lines
    assert all(line.count(" = ") == 1 for line in lines)
    assert queuectl("config", "show", check=0).lines == lines


def test_on_a_terminal_the_settings_are_a_table(home: Path, queuectl: Program) -> None:
    queuectl("config", "set", "max-retries", "5", check=0)
    terminal = Terminal(home, "config", "list", columns=120)
    assert terminal.end() == 0
    header, first, *_ = plain(terminal.shown).splitlines()
    assert header.split() == ["KEY", "VALUE", "FROM", "DEFAULT", "DESCRIPTION"]
    assert first.split()[:4] == ["max-retries", "5", "stored", "3"]


@pytest.mark.parametrize(
    "key, value, shown",
    [
        ("max-retries", "5", "5"),
        ("max_retries", "+5", "5"),
        ("DEFAULT_MAX_RETRIES", "5", "5"),
        ("base-backoff", "3.0", "3"),
        ("timeout", "90m", "1h30m"),
        ("job-timeout", "0", "none"),
        ("priority", "-5", "-5"),
        ("backoff-jitter", ".5", "0.5"),
        ("first-attempt-is-free", "YES", "true"),
        ("log-limit", "1MiB", "1MiB"),
        ("ageing", "enqueues", "enqueues"),
        ("retain-dead", "30d", "30d"),
    ],
)
def test_a_setting_is_printed_in_its_canonical_form(queuectl: Program, key: str, value: str, shown: str) -> None:
    assert queuectl("config", "set", key, value, check=0).out.endswith(f" = {shown}\n")
    assert queuectl("config", "get", key, check=0).out == f"{shown}\n"
    assert queuectl("config", "get", key, "--json", check=0).json["source"] == "stored"


def test_options_may_follow_a_negative_value(queuectl: Program) -> None:
    assert queuectl("config", "set", "priority", "-5", "--json", check=0).json["value"] == -5
    assert queuectl("config", "set", "priority", "--", "-6", check=0).out == "priority = -6\n"
    assert queuectl("config", "set", "--quiet", "-7").code == 2


@pytest.mark.parametrize(
    "key, value",
    [
        ("max-retries", "-1"),
        ("max-retries", "many"),
        ("backoff-base", "0.5"),
        ("backoff-base", "inf"),
        ("backoff-jitter", "1.1"),
        ("max-crashes", "0"),
        ("priority", "-1000001"),
        ("timeout", "-1h"),
        ("kill-grace", "soon"),
        ("worker-count", "1001"),
        ("heartbeat", "20s"),
        ("lease", "9s"),
        ("ageing", "fast"),
        ("log-limit", "1 potato"),
        ("first-attempt-is-free", "maybe"),
    ],
)
def test_a_bad_value_is_refused_with_the_accepted_form(queuectl: Program, key: str, value: str) -> None:
    printed = queuectl("config", "set", key, value, check=2)
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 2
    assert not queuectl.home.exists()


def test_lease_and_heartbeat_are_checked_together(queuectl: Program) -> None:
    queuectl("config", "set", "heartbeat", "15s", check=0)
    assert "twice the heartbeat" in queuectl("config", "set", "lease", "29s", check=2).err
    assert "twice the heartbeat" in queuectl("config", "list", env={"QUEUECTL_LEASE": "20s"}, check=2).err
    queuectl("config", "set", "lease", "1m", check=0)
    assert queuectl("config", "unset", "lease", check=0).out == "lease = 30s\n"


@pytest.mark.parametrize("arguments", [("get", "max-retires"), ("set", "max-retires", "1"), ("unset", "max-retires")])
def test_an_unknown_key_suggests_the_nearest(queuectl: Program, arguments: tuple[str, ...]) -> None:
    printed = queuectl("config", *arguments, "--json", check=2)
    error = json.loads(printed.err)["error"]
    assert (error["code"], error["hint"]) == ("unknown-name", "did you mean 'max-retries'?")
    assert not queuectl.home.exists()


def test_the_environment_overrides_stored_settings(queuectl: Program) -> None:
    queuectl("config", "set", "max-retries", "5", check=0)
    env = {"QUEUECTL_MAX_RETRIES": "7", "QUEUECTL_NOTHING_OF_OURS": "x", "QUEUECTL_JOB_ID": "x"}
    entry = queuectl("config", "get", "max-retries", "--json", env=env, check=0).json
    assert entry == {"key": "max-retries", "value": 7, "default": 3, "source": "env"}


def test_ageing_cannot_come_from_the_environment(queuectl: Program) -> None:
    assert "QUEUECTL_AGEING" in queuectl("config", "list", env={"QUEUECTL_AGEING": "1h"}, check=2).err


def test_unset_and_reset_restore_defaults(queuectl: Program) -> None:
    for key, value in (("max-retries", "5"), ("priority", "2"), ("ageing", "1h")):
        queuectl("config", "set", key, value, check=0)
    queuectl("config", "unset", "max_attempts", check=0)
    assert queuectl("config", "get", "max-retries", check=0).out == "3\n"
    assert queuectl("config", "reset", "--json", check=0).json == {"unset": ["ageing", "priority"]}
    assert {entry["source"] for entry in queuectl("config", "list", "--json", check=0).json} == {"default"}
    assert queuectl("config", "reset", check=0).out == "no settings are stored\n"


def test_config_reset_creates_no_data_directory(queuectl: Program) -> None:
    queuectl("config", "reset", check=0)
    assert not queuectl.home.exists()
