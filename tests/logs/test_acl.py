"""Access control lists of our files."""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
from pathlib import Path

import pytest

from queuectl.logs.acl import ENTER, READ, copy, grant, grant_only, names_users
from queuectl.logs.rotation import rotated
from queuectl.logs.writer import LogWriter, share_log
from tests.needs import require
from tests.users import IS_ROOT

ADA, BOB = 41_001, 41_002


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.touch(mode=0o600)
    try:
        grant_only(str(path), [ADA], READ)
    except OSError:
        require("access control lists", False, "the file system of the tests has none")
    os.removexattr(path, "system.posix_acl_access")
    path.chmod(0o600)
    return path


def may_read(path: Path, user: int) -> bool:
    require("root", IS_ROOT, "only root can become another user")
    with path.open("rb") as opened:  # its directory is closed to them
        found = f"/proc/self/fd/{opened.fileno()}"
        command = ["cat", found]
        done = subprocess.run(
            command, user=user, group=user, extra_groups=[], pass_fds=[opened.fileno()], capture_output=True
        )
    return done.returncode == 0


def test_only_named_users_may_read(file: Path) -> None:
    grant_only(str(file), [ADA, 0], READ)
    assert names_users(str(file))
    assert not file.stat().st_mode & stat.S_IRWXO
    assert [may_read(file, user) for user in (ADA, BOB)] == [True, False]
    grant(str(file), [BOB], READ)
    assert [may_read(file, user) for user in (ADA, BOB)] == [True, True]
    grant_only(str(file), [BOB], READ)
    assert [may_read(file, user) for user in (ADA, BOB)] == [False, True]
    grant_only(str(file), [], READ)
    assert [may_read(file, user) for user in (ADA, BOB)] == [False, False]
    assert names_users(str(file))


def test_a_later_chmod_is_undone(file: Path) -> None:
    grant_only(str(file), [ADA], READ)
    file.chmod(0o600)  # as doctor and systemd do
    assert not may_read(file, ADA)
    grant(str(file), [ADA], READ)
    assert may_read(file, ADA)


def test_a_directory_keeps_the_rights_that_it_gives_to_all_users(file: Path) -> None:
    file.chmod(0o750)
    grant(str(file), [ADA], ENTER)
    assert file.stat().st_mode & 0o777 == 0o750
    assert not names_users(str(file))
    file.chmod(0o711)
    os.removexattr(file, "system.posix_acl_access")
    grant(str(file), [ADA], ENTER)
    assert "system.posix_acl_access" not in os.listxattr(file)  # there was nothing to add


def test_a_plain_file_names_no_users(file: Path) -> None:
    assert not names_users(str(file))
    with file.open("rb") as one, (file.parent / "new").open("wb") as new:
        copy(one.fileno(), new.fileno())
        assert os.listxattr(new.fileno()) == []


def test_both_segments_of_a_log_are_for_the_reader_of_the_present_run(file: Path) -> None:
    log, older = file, Path(rotated(str(file)))
    first = LogWriter(str(log), lambda: b"--- START ---\n", is_first=True, limit=4096, reader=ADA)
    for _ in range(3):
        first.append(b"x" * 1500 + b"\n")
    assert [may_read(path, ADA) for path in (log, older)] == [True, True]
    share_log(str(log), BOB)
    assert [may_read(path, BOB) for path in (log, older)] == [True, True]
    second = LogWriter(str(log), lambda: b"--- START ---\n", is_first=False, limit=4096)
    second.append(b"x\n")
    assert [may_read(path, user) for path in (log, older) for user in (ADA, BOB)] == [False] * 4


def test_a_reader_that_holds_a_lock_on_a_log_does_not_delay_its_writer(file: Path) -> None:
    writer = LogWriter(str(file), lambda: b"--- START ---\n", is_first=True, limit=4096, reader=ADA)
    writer.append(b"one\n")
    with file.open("rb") as reader:
        fcntl.flock(reader, fcntl.LOCK_EX)
        writer.append(b"x" * 5000 + b"\n")
        assert writer.end(lambda: b"--- END ---\n") is not None
