"""Load and reload a policy: only a file that other users cannot change, else the previous policy stays active."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from queuectl.errors import InvalidInput, PolicyUnusable
from queuectl.policy.gate import PolicyLoader, open_policy
from queuectl.policy.parser import MAX_FILE_BYTES

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


def follow(loader: PolicyLoader) -> list[str]:
    said: list[str] = []
    loader.follow(on_change=lambda _: said.append("changed"), on_trouble=said.append)
    return said


def test_a_policy_is_loaded_when_its_file_appears(home: Path) -> None:
    loader = open_policy(str(home), None, user=USER)
    assert loader.evaluator is None
    assert follow(loader) == []
    write(home / "policy.toml", "shell = false")
    assert follow(loader) == ["changed"]
    assert loader.evaluator is not None
    assert not loader.evaluator.of("any").shell
    assert follow(loader) == []


def test_a_home_that_cannot_be_examined_does_not_count_as_one_without_a_policy(tmp_path: Path) -> None:
    """As with a directory that another user may not enter. A link to itself has the same effect for root."""
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(PolicyUnusable, match="too many levels"):
        open_policy(str(tmp_path / "loop"), None, user=USER)


def test_an_unusable_change_keeps_the_previous_policy(home: Path) -> None:
    path = home / "policy.toml"
    write(path, "shell = false")
    loader = open_policy(str(home), None, user=USER)
    for spoil in (lambda: write(path, "shell = "), lambda: path.chmod(0o666), path.unlink):
        spoil()
        (said,) = follow(loader)
        assert "the previous policy stays active" in said
        assert follow(loader) == []  # said once
        assert loader.evaluator is not None
        assert not loader.evaluator.of("any").shell


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
def test_a_named_or_linked_policy_has_to_exist(home: Path, given: str | None) -> None:
    if given is None:
        (home / "policy.toml").symlink_to("nothing")
    with pytest.raises(PolicyUnusable, match="no such file"):
        open_policy(str(home), given and f"{home}/{given}", user=USER)


@pytest.mark.parametrize("text", ["shell", b"\xff", "a" * (MAX_FILE_BYTES + 1), "x=" + "[" * 5000])
def test_an_invalid_policy_is_refused_without_a_traceback(home: Path, text: str | bytes) -> None:
    path = home / "policy.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    path.chmod(0o600)
    with pytest.raises((InvalidInput, PolicyUnusable)):
        open_policy(str(home), None, user=USER)


def test_a_directory_or_a_pipe_is_refused_as_a_policy(home: Path) -> None:
    (home / "d").mkdir()
    os.mkfifo(home / "p", 0o600)
    for name in ("d", "p"):
        with pytest.raises(PolicyUnusable):
            open_policy(str(home), f"{home}/{name}", user=USER)
