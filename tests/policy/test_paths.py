"""What a path really leads to, in a real file system."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from queuectl.policy.paths import real_directory, resolve_path

USER = os.geteuid()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return Path(os.path.realpath(tmp_path))


def made(path: Path, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return path


def give_away(path: Path) -> None:
    """So that it is not root's; what a user has made is that already."""
    if USER == 0:
        os.chown(path, 65534, 65534)


def test_a_resolved_path_has_every_name_from_the_requested_one_to_the_file(place: Path) -> None:
    tool = made(place / "v2/bin/tool")
    (place / "current").symlink_to("v2")
    (place / "bin").mkdir()
    (place / "bin/t").symlink_to("../current/bin/tool")
    (place / "x").symlink_to(place / "bin/t")
    way = resolve_path(f"{place}/x", user=USER)
    assert way.real == str(tool)
    assert way.names == (f"{place}/x", f"{place}/bin/t", str(tool))
    assert way.weak is None


def test_dots_and_slashes_are_resolved_as_in_the_kernel(place: Path) -> None:
    tool = made(place / "a/tool")
    (place / "deep/down").mkdir(parents=True)
    (place / "link").symlink_to("deep/down")
    made(place / "deep/tool")
    assert resolve_path(f"{place}//a/./tool", user=USER).real == str(tool)
    # Behind a link `..` is the parent of what it leads to.
    assert resolve_path(f"{place}/link/../tool", user=USER).real == f"{place}/deep/tool"
    assert resolve_path("/", user=USER).real == "/"


@pytest.mark.parametrize(
    "path, error",
    [
        ("missing", errno.ENOENT),
        ("tool/", errno.ENOTDIR),
        ("tool/.", errno.ENOTDIR),
        ("tool/..", errno.ENOTDIR),
        ("tool/x", errno.ENOTDIR),
        ("loop", errno.ELOOP),
        ("dangling", errno.ENOENT),
    ],
)
def test_a_missing_path_is_an_error(place: Path, path: str, error: int) -> None:
    made(place / "tool")
    (place / "loop").symlink_to("loop")
    (place / "dangling").symlink_to("nothing")
    with pytest.raises(OSError) as caught:
        resolve_path(f"{place}/{path}", user=USER)
    assert caught.value.errno == error


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777])
def test_a_file_or_directory_that_others_can_write_is_weak(place: Path, mode: int) -> None:
    tool = made(place / "a/b/tool")
    tool.chmod(mode)
    assert resolve_path(str(tool), user=USER).weak == str(tool)
    tool.chmod(0o755)
    (place / "a").chmod(mode)
    assert resolve_path(str(tool), user=USER).weak == f"{place}/a"


def test_a_link_in_a_directory_that_others_can_write_is_weak_wherever_it_leads(place: Path) -> None:
    made(place / "safe/tool")
    (place / "open").mkdir()
    (place / "open/tool").symlink_to("../safe/tool")
    (place / "open").chmod(0o777)
    assert resolve_path(f"{place}/open/tool", user=USER).weak == f"{place}/open"


def test_in_a_sticky_directory_only_files_of_other_users_are_weak(place: Path) -> None:
    tool = made(place / "shared/tool")
    (place / "shared").chmod(0o1777)
    assert resolve_path(str(tool), user=USER).weak is None
    give_away(tool)
    assert resolve_path(str(tool), user=0).weak is not None


def test_a_path_of_another_user_is_weak(place: Path) -> None:
    tool = made(place / "a/tool")
    assert resolve_path(str(tool), user=USER).weak is None
    give_away(place / "a")
    assert resolve_path(str(tool), user=0).weak is not None


def test_a_missing_directory_resolves_to_none(place: Path) -> None:
    assert real_directory(str(place)) == str(place)
    assert real_directory(f"{place}/missing") is None
    assert real_directory("/\0") is None
