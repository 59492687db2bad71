"""Who may read what is ours besides us, and that whoever may read it holds nobody up."""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
from pathlib import Path

import pytest

from queuectl.logs.access import ENTER, READ, copy, is_for_named, let, let_too
from queuectl.logs.files import begin_log
from queuectl.logs.locking import NAME
from queuectl.logs.writing import Writing
from tests.needs import require
from tests.users import IS_ROOT

ADA, BOB = 41_001, 41_002
LIMIT = 1 << 20


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.touch(mode=0o600)
    try:
        let(str(path), [ADA], READ)
    except OSError:
        require("access control lists", False, "the file system of the tests has none")
    os.removexattr(path, "system.posix_acl_access")
    path.chmod(0o600)
    return path


def may_read(path: Path, user: int) -> bool:
    require("root", IS_ROOT, "only root can become somebody else")
    with path.open("rb") as opened:  # as they would find it: the way there is closed to them
        found = f"/proc/self/fd/{opened.fileno()}"
        words = ["cat", found]
        done = subprocess.run(
            words, user=user, group=user, extra_groups=[], pass_fds=[opened.fileno()], capture_output=True
        )
    return done.returncode == 0


def test_those_who_are_named_may_read_and_nobody_else(file: Path) -> None:
    let(str(file), [ADA, 0], READ)
    assert is_for_named(str(file))
    assert not file.stat().st_mode & stat.S_IRWXO
    assert [may_read(file, user) for user in (ADA, BOB)] == [True, False]
    let_too(str(file), [BOB], READ)
    assert [may_read(file, user) for user in (ADA, BOB)] == [True, True]
    let(str(file), [BOB], READ)
    assert [may_read(file, user) for user in (ADA, BOB)] == [False, True]
    let(str(file), [], READ)
    assert [may_read(file, user) for user in (ADA, BOB)] == [False, False]
    assert is_for_named(str(file))


def test_a_mode_that_was_set_since_is_made_good(file: Path) -> None:
    let(str(file), [ADA], READ)
    file.chmod(0o600)  # as doctor and systemd do
    assert not may_read(file, ADA)
    let_too(str(file), [ADA], READ)
    assert may_read(file, ADA)


def test_what_a_directory_gave_to_others_it_goes_on_giving(file: Path) -> None:
    file.chmod(0o750)
    let_too(str(file), [ADA], ENTER)
    assert file.stat().st_mode & 0o777 == 0o750
    assert not is_for_named(str(file))
    file.chmod(0o711)
    os.removexattr(file, "system.posix_acl_access")
    let_too(str(file), [ADA], ENTER)
    assert "system.posix_acl_access" not in os.listxattr(file)  # there was nothing to add


def test_a_plain_file_is_for_nobody_who_is_named(file: Path) -> None:
    assert not is_for_named(str(file))
    with file.open("rb") as one, (file.parent / "new").open("wb") as new:
        copy(one.fileno(), new.fileno())
        assert os.listxattr(new.fileno()) == []


def test_who_holds_a_lock_on_a_log_that_it_may_read_does_not_hold_up_whoever_writes(file: Path) -> None:
    begin_log(str(file), b"--- START ---\n", is_first=True, limit=LIMIT, reader=ADA).close()
    with file.open("rb") as reader:
        fcntl.flock(reader, fcntl.LOCK_EX)
        with Writing(str(file), limit=LIMIT) as log:
            log.append(b"on\n")
        begin_log(str(file), b"--- START ---\n", is_first=False, limit=LIMIT).close()
        with Writing(str(file), limit=4096) as log:
            log.append(b"x" * 5000 + b"\n")  # cut: the new one, too, can be locked by others
    assert stat.S_IMODE((file.parent / NAME).stat().st_mode) == 0o600


def test_two_who_write_into_such_a_log_wait_for_each_other(file: Path) -> None:
    begin_log(str(file), b"--- START ---\n", is_first=True, limit=LIMIT, reader=ADA).close()
    rounds, writers = 200, 3
    pids = []
    for _ in range(writers):
        pid = os.fork()
        if not pid:
            try:
                for _ in range(rounds):
                    with Writing(str(file), limit=LIMIT) as log:
                        log.append_line(b"x" * 99 + b"\n")
            finally:
                os._exit(0)
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)
    lines = file.read_bytes().split(b"\n")[1:-1]
    assert lines == [b"x" * 99] * rounds * writers
