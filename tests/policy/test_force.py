"""Which policy is in force: only one that nobody else can change, and the last one that was."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from queuectl.errors import InvalidInput, PolicyUnusable
from queuectl.policy.file import LARGEST
from queuectl.policy.force import Force, open_policy

USER = os.geteuid()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    place = tmp_path / "home"
    place.mkdir(mode=0o700)
    return place


def write(path: Path, text: str) -> None:
    # Another file in its place, as editors do: a change is seen also within the grain of the clock.
    new = path.with_suffix(".new")
    new.write_text(text)
    new.chmod(0o600)
    new.replace(path)


def follow(force: Force) -> list[str]:
    said: list[str] = []
    force.follow(on_change=lambda _: said.append("changed"), on_trouble=said.append)
    return said


def test_a_home_without_a_policy_has_none_until_one_comes(home: Path) -> None:
    force = open_policy(str(home), None, user=USER)
    assert force.guard is None
    assert follow(force) == []
    write(home / "policy.toml", "shell = false")
    assert follow(force) == ["changed"]
    assert force.guard is not None
    assert not force.guard.of("any").shell
    assert follow(force) == []


def test_a_change_that_cannot_be_relied_on_leaves_what_was_in_force(home: Path) -> None:
    path = home / "policy.toml"
    write(path, "shell = false")
    force = open_policy(str(home), None, user=USER)
    for spoil in (lambda: write(path, "shell = "), lambda: path.chmod(0o666), path.unlink):
        spoil()
        (said,) = follow(force)
        assert "stays so" in said
        assert follow(force) == []  # said once
        assert force.guard is not None
        assert not force.guard.of("any").shell


@pytest.mark.parametrize("mode", [0o660, 0o606, 0o620, 0o602])
def test_a_policy_that_others_can_write_is_refused(home: Path, mode: int) -> None:
    write(home / "policy.toml", "")
    (home / "policy.toml").chmod(mode)
    with pytest.raises(PolicyUnusable, match="can be changed by others") as caught:
        open_policy(str(home), None, user=USER)
    assert "chmod" in caught.value.hint


def test_a_policy_of_another_user_is_refused(home: Path) -> None:
    write(home / "policy.toml", "")
    if USER == 0:
        os.chown(home / "policy.toml", 65534, 65534)
    with pytest.raises(PolicyUnusable):
        open_policy(str(home), None, user=0)


def test_a_policy_in_a_directory_that_others_can_write_is_refused(home: Path) -> None:
    (home / "open").mkdir()
    write(home / "open/policy.toml", "")
    (home / "open").chmod(0o777)
    with pytest.raises(PolicyUnusable):
        open_policy(str(home), f"{home}/open/policy.toml", user=USER)


@pytest.mark.parametrize("given", [None, "named"])
def test_a_policy_that_somebody_meant_to_be_there_has_to_be(home: Path, given: str | None) -> None:
    if given is None:
        (home / "policy.toml").symlink_to("nothing")
    with pytest.raises(PolicyUnusable, match="no such file"):
        open_policy(str(home), given and f"{home}/{given}", user=USER)


@pytest.mark.parametrize("text", ["shell", b"\xff", "a" * (LARGEST + 1), "x=" + "[" * 5000])
def test_what_is_no_policy_is_refused_and_never_a_traceback(home: Path, text: str | bytes) -> None:
    path = home / "policy.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    path.chmod(0o600)
    with pytest.raises((InvalidInput, PolicyUnusable)):
        open_policy(str(home), None, user=USER)


def test_a_directory_or_a_pipe_is_no_policy(home: Path) -> None:
    (home / "d").mkdir()
    os.mkfifo(home / "p", 0o600)
    for name in ("d", "p"):
        with pytest.raises(PolicyUnusable):
            open_policy(str(home), f"{home}/{name}", user=USER)
