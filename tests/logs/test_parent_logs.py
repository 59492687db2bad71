"""The folder in which a run finds what its parents printed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from queuectl.logs.parent_logs import folder_of, log_in, make_folder, remove_folder, remove_folders, write_log


@pytest.fixture
def log(tmp_path: Path) -> str:
    return str(tmp_path / "a.log")


def test_without_a_folder_of_its_own_a_run_finds_its_parents_among_the_logs(log: str, tmp_path: Path) -> None:
    assert folder_of(log, 1) == str(tmp_path)
    made = make_folder(log, 1)
    assert (folder_of(log, 1), folder_of(log, 2)) == (made, str(tmp_path))
    assert [path.stat().st_mode & 0o777 for path in (Path(made), Path(made).parent)] == [0o700, 0o700]


def test_a_folder_is_removed_with_whatever_the_job_has_put_there(log: str, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    made = Path(make_folder(log, 1))
    write_log(log_in(str(made), "p"), [b"one", b"two"])
    assert (made / "p.log").read_bytes() == b"onetwo"
    (made / "sub" / "deeper").mkdir(parents=True)
    (made / "sub" / "link").symlink_to(kept, target_is_directory=True)
    remove_folder(log, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert (kept / "file").exists()


@pytest.mark.parametrize("place", ["run", "all"])
def test_what_a_link_leads_to_is_left_alone_also_in_the_place_of_the_folder(
    log: str, tmp_path: Path, place: str
) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    made = Path(make_folder(log, 1))
    made.rmdir()
    if place == "run":
        made.symlink_to(kept, target_is_directory=True)
        remove_folder(log, 1)
    else:
        made.parent.rmdir()
        made.parent.symlink_to(kept, target_is_directory=True)
        remove_folders(log)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert (kept / "file").exists()


def test_a_folder_that_is_too_deep_to_be_removed_does_no_harm(log: str) -> None:
    made = make_folder(log, 1)
    deep = [made + "/d" * depth for depth in range(1, 1200)]
    try:
        for path in deep:
            os.mkdir(path)
        remove_folders(log)
    finally:
        for path in filter(os.path.isdir, reversed(deep)):  # pytest could not remove it, either
            os.rmdir(path)


def test_who_tidies_up_after_one_run_leaves_the_files_of_the_next_alone(log: str, tmp_path: Path) -> None:
    make_folder(log, 1)
    other = Path(make_folder(log, 2))
    remove_folder(log, 1)
    assert other.is_dir()
    remove_folders(log)
    assert [*tmp_path.iterdir()] == []
