"""Data directories and databases that other users own or can write to are refused, and symbolic links in them are never followed."""

from __future__ import annotations

import grp
import json
import os
import pwd
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from queuectl import Queue
from queuectl.errors import NotTrusted
from queuectl.paths import check_trusted
from tests.program import COMMAND as PROGRAM
from tests.program import Program, WorkerProcess
from tests.users import OTHER, other
from tests.wait import wait_until

COMMANDS = [
    ("enqueue", "true"),
    ("status",),
    ("list",),
    ("config", "set", "lease", "1m"),
    ("worker", "start", "--drain"),
    ("worker", "start", "--detach"),
    ("dashboard", "--port", "0"),
    ("backup", "copy.db"),
    ("secret", "set", "password"),
    ("reset", "--yes"),
]


@pytest.fixture
def used(queuectl: Program) -> Program:
    """A home with a job in it."""
    queuectl("enqueue", "--id", "a", "true", check=0)
    return queuectl


def refused(queuectl: Program, *words: str, **rest: object) -> str:
    """The two lines of the error."""
    done = queuectl(*words, input="secret", check=1, timeout=20, **rest)  # type: ignore[arg-type]
    error, hint = done.err.splitlines()
    assert "is not safe to use" in error
    assert "--trust-home" in hint
    return done.err


# ── owner and mode ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_command_uses_a_home_that_others_can_write_to(used: Program, words: tuple[str, ...], tmp_path: Path) -> None:
    used.home.chmod(0o777)
    error = refused(used, *words, cwd=tmp_path)
    assert "other users can write to it (mode 0777)" in error
    assert f"chmod go-w {used.home}" in error
    used.home.chmod(0o700)
    assert used("list", "--quiet", check=0).lines == ["a"]


def test_the_printed_fix_makes_the_home_usable(used: Program) -> None:
    used.home.chmod(0o722)
    fix = refused(used, "status").splitlines()[1].removeprefix("hint: ").partition(",")[0]
    subprocess.run(["sh", "-c", fix], check=True)
    used("status", check=0)


@pytest.mark.parametrize("part", ["home", "database"])
def test_what_belongs_to_another_user_is_refused_with_his_name(used: Program, part: str) -> None:
    os.chown(used.home if part == "home" else used.home / "queue.db", other().pw_uid, -1)
    assert f"it belongs to {OTHER}, not to you" in refused(used, "enqueue", "true")
    assert len(used("--trust-home", "list", "--quiet", check=0).lines) == 1


def test_a_database_that_others_can_write_to_is_refused(used: Program, tmp_path: Path) -> None:
    (used.home / "queue.db").chmod(0o666)
    assert "(mode 0666)" in refused(used, "enqueue", "true")
    assert "(mode 0666)" in refused(used, "enqueue", "--db", str(used.home / "queue.db"), "true")
    assert "(mode 0666)" in refused(used, "copy", "--from", str(used.home / "queue.db"), "--to", str(tmp_path / "b.db"))


def test_a_database_in_a_directory_that_others_can_write_to_is_refused_unless_it_is_sticky(
    queuectl: Program, tmp_path: Path
) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    assert f"{folder} is not safe" in refused(queuectl, "enqueue", "--db", str(folder / "a.db"), "true")
    assert not list(folder.iterdir())
    folder.chmod(0o1777)
    queuectl("enqueue", "--db", str(folder / "a.db"), "true", check=0)


def test_a_home_below_a_directory_that_all_can_write_to_works(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    Program(tmp_path / "home")("enqueue", "true", check=0)


def test_the_private_group_of_the_owner_may_write(tmp_path: Path) -> None:
    owner = pwd.getpwuid(os.geteuid())
    private = grp.getgrgid(owner.pw_gid)
    assert private.gr_name == owner.pw_name, "as on every Debian"
    folder = tmp_path / "home"
    folder.mkdir()
    os.chown(folder, -1, private.gr_gid)
    folder.chmod(0o775)
    check_trusted(str(folder))


def test_another_group_may_not_write(tmp_path: Path) -> None:
    gid = other().pw_gid
    folder = tmp_path / "home"
    folder.mkdir()
    os.chown(folder, -1, gid)
    folder.chmod(0o775)
    with pytest.raises(NotTrusted, match="mode 0775"):
        check_trusted(str(folder))


def test_a_python_program_is_refused_as_well(used: Program) -> None:
    used.home.chmod(0o777)
    with Queue(used.home) as queue, pytest.raises(NotTrusted):
        queue.enqueue("true")
    with Queue(used.home) as queue, pytest.raises(NotTrusted):
        list(queue.jobs())
    with Queue(used.home, trust_home=True) as queue:
        assert [job.id for job in queue.jobs()] == ["a"]


# ── trust ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_job_of_a_worker_that_trusts_the_home_can_use_it(
    used: Program, start_worker: Callable[..., WorkerProcess]
) -> None:
    used.home.chmod(0o777)
    used("--trust-home", "enqueue", "--id", "outer", f"{sys.executable} -m queuectl enqueue --id inner true", check=0)
    start_worker("--trust-home")
    show = ("show", "inner", "--json", "--trust-home")
    wait_until(lambda: (done := used(*show)).code == 0 and done.json["state"] == "completed", what="the inner job")


def test_the_variable_trusts_one_directory_and_no_other(used: Program) -> None:
    used.home.chmod(0o777)
    used("status", env={"QUEUECTL_TRUST_HOME": str(used.home)}, check=0)
    for wrong in (str(used.home.parent), "1", "true", ""):
        refused(used, "status", env={"QUEUECTL_TRUST_HOME": wrong})


# ── links ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("trust", [(), ("--trust-home",)], ids=["", "trusted"])
def test_a_planted_database_link_is_not_followed(queuectl: Program, tmp_path: Path, trust: tuple[str, ...]) -> None:
    queuectl.home.mkdir(mode=0o700)
    (queuectl.home / "queue.db").symlink_to(tmp_path / "nologin")
    done = queuectl(*trust, "enqueue", "true", check=1)
    assert "queue.db in it is a symbolic link" in done.err
    assert not (tmp_path / "nologin").exists()


@pytest.mark.parametrize("ending", ["-wal", "-shm", "-journal"])
def test_a_link_beside_the_database_is_not_followed(used: Program, tmp_path: Path, ending: str) -> None:
    link = used.home / f"queue.db{ending}"
    link.unlink(missing_ok=True)
    link.symlink_to(tmp_path / "target")
    assert "is a symbolic link" in used("enqueue", "true", check=1).err
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize("name", ["logs", "workers", "backups", "queuectl.toml"])
def test_no_part_of_the_home_may_be_a_link(queuectl: Program, tmp_path: Path, name: str) -> None:
    queuectl.home.mkdir(mode=0o700)
    (tmp_path / "target").mkdir()
    (queuectl.home / name).symlink_to(tmp_path / "target")
    assert f"{name} in it is a symbolic link" in queuectl("worker", "start", "--drain", check=1).err
    assert not list((tmp_path / "target").iterdir())


def test_secrets_are_not_written_or_removed_through_a_link(queuectl: Program, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir(mode=0o700)
    (target / "kept").write_text("x")
    queuectl("enqueue", "true", check=0)
    (queuectl.home / "secrets").symlink_to(target)
    refused = queuectl("secret", "set", "planted", input="x", check=1)
    assert "secrets is a symbolic link" in refused.err
    queuectl("secret", "remove", "kept", check=1)
    assert [path.name for path in target.iterdir()] == ["kept"]


@pytest.mark.parametrize("ending", ["lock", "log", "runs"])
def test_a_file_of_a_worker_is_not_opened_through_a_link(used: Program, tmp_path: Path, ending: str) -> None:
    (used.home / "workers").mkdir(exist_ok=True)
    (used.home / "workers" / f"w.{ending}").symlink_to(tmp_path / "target")
    how = "--detach" if ending == "log" else "--drain"
    used("worker", "start", "--name", "w", how, check=1)
    assert not (tmp_path / "target").exists()


def test_a_home_that_is_itself_a_link_works(queuectl: Program, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    queuectl.home.symlink_to(tmp_path / "real")
    queuectl("enqueue", "true", check=0)
    queuectl("worker", "start", "--drain", check=0)


# ── doctor ──────────────────────────────────────────────────────────────────────────────────────────────────────────


# Root passes every mode by these capabilities.
WITHOUT_PRIVILEGE = (
    "setpriv",
    "--bounding-set=-dac_override,-dac_read_search",
    "--inh-caps=-dac_override,-dac_read_search",
)


@pytest.mark.parametrize("closed", ["home", "its parent"])
def test_doctor_names_the_owner_of_a_home_that_it_cannot_examine(tmp_path: Path, closed: str) -> None:
    user = other()
    above = tmp_path / "above"
    (above / "home").mkdir(parents=True)
    path = above / "home" if closed == "home" else above
    os.chown(path, user.pw_uid, -1)
    path.chmod(0o700)
    queuectl = Program(above / "home")
    command = [*WITHOUT_PRIVILEGE, *PROGRAM, "doctor", "--json"]
    done = subprocess.run(command, env=queuectl.environment(), capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    checks = {check["check"]: check for check in json.loads(done.stdout)["checks"]}
    message = next(one["message"] for one in checks["home"]["findings"] if one["code"] == "home-unusable")
    assert f"belongs to {OTHER}, mode 0700" in message
