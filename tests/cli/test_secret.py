from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from queuectl import Queue
from tests.program import Program
from tests.terminal import Terminal

VALUE = "correct-horse-battery"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


# ── the command ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_secret_is_read_from_stdin_and_only_its_owner_can_read_it(queuectl: Program) -> None:
    old = os.umask(0)
    try:
        assert queuectl("secret", "set", "db-password", input=f"{VALUE}\n", check=0).out == "set db-password\n"
    finally:
        os.umask(old)
    folder = queuectl.home / "secrets"
    assert (mode(folder), mode(folder / "db-password")) == (0o700, 0o600)
    assert (folder / "db-password").read_text() == VALUE
    assert os.listdir(folder) == ["db-password"]


def test_a_secret_is_typed_without_echo(queuectl: Program) -> None:
    terminal = Terminal(queuectl.home, "secret", "set", "db")
    terminal.wait_for("db: ")
    terminal.type(f"{VALUE}\n")
    terminal.wait_for("again: ")
    terminal.type(f"{VALUE}\n")
    assert terminal.end() == 0
    assert "set db" in terminal.shown
    assert VALUE not in terminal.shown
    assert (queuectl.home / "secrets" / "db").read_text() == VALUE


def test_setting_it_again_replaces_it(queuectl: Program) -> None:
    for value in ("first", "second"):
        queuectl("secret", "set", "db", input=value, check=0)
    assert (queuectl.home / "secrets" / "db").read_text() == "second"


@pytest.mark.parametrize("name", ["../db", "a/b", ".hidden", "", "a b"])
def test_a_name_that_is_a_path_is_refused(queuectl: Program, name: str) -> None:
    assert "not the name of a secret" in queuectl("secret", "set", name, input=VALUE, check=2).err
    assert not queuectl.home.exists()


@pytest.mark.parametrize("value", [b"", b"\n", b"a\0b", b"x" * 50_000])
def test_an_invalid_secret_is_refused_and_nothing_is_created(queuectl: Program, value: bytes) -> None:
    printed = queuectl("secret", "set", "db", input=value, check=1).err
    assert "the secret 'db' cannot be used" in printed
    assert not queuectl.home.exists()


def test_the_list_has_names_and_never_values(queuectl: Program) -> None:
    assert queuectl("secret", "list", "--json", check=0).json == []
    assert not queuectl.home.exists()
    queuectl("secret", "set", "b", input=VALUE, check=0)
    queuectl("secret", "set", "a", input=VALUE, check=0)
    (queuectl.home / "secrets" / "b").chmod(0o644)
    found = queuectl("--json", "secret", "list", check=0).json
    assert [(one["name"], one["usable"]) for one in found] == [("a", True), ("b", False)]
    assert "mode 0644" in found[1]["problem"]
    assert queuectl("--quiet", "secret", "list", check=0).lines == ["a", "b"]
    assert VALUE not in queuectl("secret", "list", check=0).out


def test_a_secret_can_be_removed_once(queuectl: Program) -> None:
    queuectl("secret", "set", "db", input=VALUE, check=0)
    queuectl("secret", "remove", "db", check=0)
    assert "there is no secret 'db'" in queuectl("secret", "remove", "db", check=1).err


def test_check_prints_the_source_of_a_secret_and_never_its_value(queuectl: Program, tmp_path: Path) -> None:
    assert "there is no secret 'db'" in queuectl("secret", "check", "db", check=1).err
    queuectl("secret", "set", "db", input=VALUE, check=0)
    assert queuectl("secret", "check", "db", check=0).out == "db: 21 bytes, from a file\n"
    script = tmp_path / "tell"
    script.write_text(f'#!/bin/sh\n[ "$1" = api ] && echo {VALUE}\n')
    script.chmod(0o755)
    (queuectl.home / "secrets.toml").write_text(f'command = ["{script}", "{{name}}"]\n')
    (queuectl.home / "secrets.toml").chmod(0o600)
    reported = queuectl("--json", "secret", "check", "api", check=0).json
    assert reported == {"name": "api", "source": "command", "bytes": 21}
    refused = queuectl("secret", "check", "other", check=1).err
    assert "ended with exit code 1" in refused
    assert f"try it by hand: {script} other" in refused


def test_doctor_finds_secrets_that_others_may_read_and_closes_them(queuectl: Program) -> None:
    queuectl("enqueue", "true", check=0)
    queuectl("secret", "set", "db", input=VALUE, check=0)
    path = queuectl.home / "secrets" / "db"
    path.chmod(0o644)
    found = {one["check"]: one for one in queuectl("doctor", "--json").json["checks"]}
    assert [one["code"] for one in found["secrets"]["findings"]] == ["secret-unusable"]
    assert [one["code"] for one in found["permissions"]["findings"]] == ["open-to-others"]
    queuectl("doctor", "--fix")
    assert mode(path) == 0o600
    assert {one["check"]: one["status"] for one in queuectl("doctor", "--json").json["checks"]}["secrets"] == "ok"
    (queuectl.home / "secrets.toml").write_text("command = 7")
    assert "secrets.toml: command" in queuectl("doctor").out


def test_names_are_completed_also_after_an_equals_sign(queuectl: Program) -> None:
    for name in ("db-main", "db-spare", "api"):
        queuectl("secret", "set", name, input=VALUE, check=0)

    def offered(line: str, arguments: int) -> list[str]:
        env = {"_QUEUECTL_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(arguments)}
        return [word.partition(",")[2] for word in queuectl(env=env).lines]

    assert offered("queuectl secret remove db", 3) == ["db-main", "db-spare"]
    assert offered("queuectl enqueue --secret PW=db", 3) == ["PW=db-main", "PW=db-spare"]


# ── with a job ──────────────────────────────────────────────────────────────────────────────────────────────────────


def secrets_of(queuectl: Program, job_id: str) -> list[str]:
    found: list[str] = queuectl("show", job_id, "--json", check=0).json["secrets"]
    return found


def test_a_job_shows_the_names_of_its_secrets(queuectl: Program) -> None:
    given = json.dumps({"command": "true", "secrets": ["A", "B=one"]})
    job_id = queuectl("enqueue", given, "--secret", "B=two", "--secret", "C", check=0).out.strip()
    assert secrets_of(queuectl, job_id) == ["A", "B=two", "C"]
    assert "A, B=two, C" in queuectl("show", job_id, check=0).out
    assert secrets_of(queuectl, queuectl("enqueue", "true", check=0).out.strip()) == []


def test_an_invalid_name_is_refused_in_terms_of_the_option(queuectl: Program) -> None:
    printed = queuectl("enqueue", "true", "--secret", "db-password", check=2).err
    assert "--secret: not the name of a variable: 'db-password'" in printed
    assert "MY_SECRET=db-password" in printed
    assert not queuectl.home.exists()


def test_a_clone_and_an_edit_and_a_schedule_have_them_too(queuectl: Program) -> None:
    first = queuectl("enqueue", "true", "--delay", "1h", "--secret", "A=one", check=0).out.strip()
    copy = queuectl("clone", first, "--secret", "B", check=0).out.strip()
    assert secrets_of(queuectl, copy) == ["A=one", "B"]
    queuectl("edit", first, "--secret", "C", check=0)
    assert secrets_of(queuectl, first) == ["C"]
    queuectl("edit", first, "--priority", "3", check=0)
    assert secrets_of(queuectl, first) == ["C"]
    queuectl("edit", first, "--no-secrets", check=0)
    assert secrets_of(queuectl, first) == []
    assert queuectl("edit", first, "--no-secrets", "--secret", "A").code == 2
    queuectl("cron", "add", "nightly", "0 2 * * *", "true", "--secret", "A=one", check=0)
    assert secrets_of(queuectl, queuectl("cron", "run", "nightly", check=0).out.strip()) == ["A=one"]


def test_an_export_has_the_names_and_an_import_brings_them_back(queuectl: Program, tmp_path: Path) -> None:
    job_id = queuectl("enqueue", "true", "--secret", "A=one", check=0).out.strip()
    text = queuectl("export", check=0).out
    other = Program(tmp_path / "other")
    other("import", "-", input=text, check=0)
    assert secrets_of(other, job_id) == ["A=one"]
    again = json.loads(text.splitlines()[1].rstrip(",") if text.startswith("[") else text)
    assert again["secrets"] == ["A=one"]


def test_python_gives_a_job_secrets_by_name(home: Path) -> None:
    with Queue(home=str(home)) as queue:
        job = queue.enqueue("true", secrets=["A=one"])
        assert (job.secrets, job.to_dict()["secrets"]) == (("A=one",), ["A=one"])
