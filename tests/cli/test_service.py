"""queuectl service without a service manager; tests/e2e/test_service.py uses a real systemd."""

from __future__ import annotations

import json
import os
import plistlib
from pathlib import Path

import pytest

from tests.needs import require
from tests.program import Program

BOOTED = os.path.isdir("/run/systemd/system")


def printed(queuectl: Program, *arguments: str) -> list[str]:
    return queuectl("service", "install", "--print", *arguments, check=0).lines


def test_printing_a_unit_changes_nothing(queuectl: Program, home: Path, tmp_path: Path) -> None:
    lines = queuectl("service", "install", "--print", check=0, env={"HOME": str(tmp_path)}).lines
    assert f"Environment=QUEUECTL_HOME={home}" in lines
    assert list(tmp_path.iterdir()) == []


def test_the_options_of_a_worker_are_in_its_unit(queuectl: Program) -> None:
    arguments = (
        "--count",
        "4",
        "-q",
        "high=5",
        "-q",
        "low=1",
        "--name",
        "mail",
        "--idle-timeout",
        "90s",
        "--env",
        "A=b c",
    )
    lines = printed(queuectl, *arguments)
    (start,) = (line for line in lines if line.startswith("ExecStart="))
    assert start.endswith(" worker start --name mail --count 4 --queue high=5 --queue low=1 --idle-timeout 1m30s")
    assert 'Environment="A=b c"' in lines
    assert "queuectl-mail" in lines[0]


def test_the_policy_of_a_service_is_an_absolute_path(queuectl: Program, tmp_path: Path) -> None:
    reported = queuectl("service", "install", "--print", "--policy", "p.toml", check=0, cwd=tmp_path)
    assert any(
        line.startswith("ExecStart=") and line.endswith(f" --policy {tmp_path}/p.toml") for line in reported.lines
    )


def test_a_system_service_has_its_own_user_and_data_directory(queuectl: Program) -> None:
    reported = queuectl(
        "service", "install", "--print", "--system", "--json", check=0, env={"QUEUECTL_HOME": None}
    ).json
    lines = reported["text"].splitlines()
    assert reported["path"] == "/etc/systemd/system/queuectl.service"
    assert "User=queuectl" in lines
    assert "Environment=QUEUECTL_HOME=/var/lib/queuectl" in lines


def test_another_database_is_in_the_unit_but_a_password_is_refused(queuectl: Program, home: Path) -> None:
    url = "postgresql://worker@db.example.org/work"
    assert f"Environment=QUEUECTL_DB={url}" in printed(queuectl, "--db", url)
    refused = queuectl("service", "install", "--print", "--db", "postgresql://worker:secret@db.example.org/work")
    assert refused.code == 2
    assert "secret" not in refused.out + refused.err
    assert "queuectl.toml" in refused.err
    assert f"Environment=QUEUECTL_DB={home}/other.db" in printed(queuectl, "--db", f"sqlite:///{home}/other.db")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--count", "0"),
        ("--queue", "a b"),
        ("--name", "../x"),
        ("--idle-timeout", "soon"),
        ("--policy", ""),
        ("--stop-timeout", "-1"),
        ("--run-as", "queuectl"),
        ("--allow-sudo",),
        ("--system", "--run-as", "a b"),
        ("--env", "1A=b"),
        ("--env", "NOT_SET_ANYWHERE"),
    ],
    ids=" ".join,
)
def test_invalid_options_are_refused_and_nothing_is_written(
    queuectl: Program, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    refused = queuectl("service", "install", *arguments, env={"HOME": str(tmp_path)})
    assert (refused.code, refused.out) == (2, "")
    assert len(refused.err.splitlines()) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(BOOTED, reason="this system was started by systemd")
def test_without_systemd_an_error_and_a_hint_are_printed(queuectl: Program, tmp_path: Path) -> None:
    refused = queuectl("service", "install", "--json", env={"HOME": str(tmp_path)})
    assert refused.code == 1
    error = json.loads(refused.err)["error"]
    assert error["code"] == "no-service-manager"
    assert "--print" in error["hint"]
    assert list(tmp_path.iterdir()) == []


def test_status_and_uninstall_without_a_service_are_no_errors(queuectl: Program, tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    assert "there is no service queuectl" in queuectl("service", "status", check=0, env=env).out
    reported = queuectl("service", "status", "--json", "--name", "x", check=0, env=env).json
    assert (reported["unit"], reported["installed"], reported["active"]) == ("queuectl-x", False, None)
    assert queuectl("service", "uninstall", "--json", check=0, env=env).json == {"done": [], "refused": []}


LAUNCHCTL = """#!/bin/sh
# Plays launchctl: what is loaded is a file in its folder.
echo "$@" >> "$LOADED/calls"
case $1 in
  print) case $2 in */*/*) [ -e "$LOADED/$(basename "$2")" ] && echo "	pid = 42" ;; esac ;;
  bootstrap) touch "$LOADED/$(basename "$3" .plist)" ;;
  bootout) rm "$LOADED/$(basename "$2")" ;;
esac
"""


@pytest.fixture
def launchd(queuectl: Program, tmp_path: Path) -> Program:
    tools = tmp_path / "tools"
    tools.mkdir()
    script = tools / "launchctl"
    script.write_text(LAUNCHCTL)
    script.chmod(0o755)
    loaded = tmp_path / "loaded"
    loaded.mkdir()
    queuectl.env |= {"HOME": str(tmp_path), "PATH": f"{tools}:{os.environ['PATH']}", "LOADED": str(loaded)}
    return queuectl


def test_launchd_gets_a_property_list_once_and_loses_it_again(launchd: Program, tmp_path: Path) -> None:
    arguments = ("service", "install", "--manager", "launchd", "--count", "2", "--json")
    reported = launchd(*arguments, check=0).json
    path = tmp_path / "Library/LaunchAgents/org.queuectl.plist"
    assert (reported["changed"], reported["active"], reported["pid"], reported["path"]) == (
        True,
        "active",
        42,
        str(path),
    )
    assert plistlib.loads(path.read_bytes())["ProgramArguments"][-2:] == ["--count", "2"]
    calls = tmp_path / "loaded/calls"
    before = calls.read_text().count("bootstrap")
    assert launchd(*arguments, check=0).json["changed"] is False
    assert calls.read_text().count("bootstrap") == before == 1
    assert launchd(*arguments, "--count", "3", check=0).json["changed"] is True
    assert calls.read_text().count("bootstrap") == 2
    assert launchd("service", "uninstall", "--manager", "launchd", check=0).out == "removed the service queuectl\n"
    assert not path.exists()
    assert [found.name for found in (tmp_path / "loaded").iterdir()] == ["calls"]


def test_a_foreign_file_is_not_changed(launchd: Program, tmp_path: Path) -> None:
    path = tmp_path / "Library/LaunchAgents/org.queuectl.plist"
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    for verb in ("install", "uninstall"):
        refused = launchd("service", verb, "--manager", "launchd")
        assert (refused.code, path.read_text()) == (1, "mine")


def test_only_root_installs_a_system_service(launchd: Program, tmp_path: Path) -> None:
    require("root", os.geteuid() == 0, "it knows that it is")
    refused = launchd("service", "install", "--system", "--manager", "launchd", "--run-as", "no-such-user")
    assert refused.code == 2
    assert "useradd" in refused.err
