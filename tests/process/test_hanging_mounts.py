"""A mount that does not answer stalls only the jobs that use it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from queuectl.jobs.outcome import Exited, Signalled
from queuectl.process.client import SupervisorClient
from queuectl.process.model import Child
from queuectl.process.spawn import ChildSetup
from queuectl.process.system import IS_PORTABLE
from tests.needs import require
from tests.process.hanging import Mount, mounted
from tests.process.supervised import exit_of, open_client, printed, request, shell, start, start_all
from tests.users import IS_ROOT
from tests.wait import wait_until


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    if IS_PORTABLE:
        pytest.skip("without a list of mounts, those that may hang are not known")
    with mounted(tmp_path) as made:
        script = made.path / "script"
        script.write_text("#!/bin/sh\necho $PWD $*\n")
        script.chmod(0o755)
        yield made


@pytest.fixture
def client(tmp_path: Path, mount: Mount) -> Iterator[SupervisorClient]:
    (tmp_path / "client").mkdir()
    with open_client(tmp_path / "client") as made:
        yield made


def test_jobs_start_on_a_mount_that_answers(client: SupervisorClient, mount: Mount, tmp_path: Path) -> None:
    log, inside = tmp_path / "log", os.stat(mount.path)
    for fields, argv in (
        ({"cwd": str(mount.path)}, [b"./script", b"a", b"b c"]),
        ({"cwd": "/"}, [os.fsencode(mount.path / "script"), b"a"]),
        ({"cwd": str(mount.path), "setup": ChildSetup({"open_files": 50})}, shell("ulimit -n")),
        ({"cwd": str(mount.path), "setup": ChildSetup(inside=(inside.st_dev, inside.st_ino))}, shell("pwd")),
    ):
        assert exit_of(client, start(client, argv, log, **fields)).how == Exited(0)
    assert printed(log).decode().split("\n") == [f"{mount.path} a b c", "/ a", "50", str(mount.path), ""]


@pytest.mark.parametrize("way", ["directory", "program", "path", "link", "checked directory", "as a user"])
def test_a_job_on_a_mount_that_hangs_stalls_alone_and_can_be_terminated(
    client: SupervisorClient, mount: Mount, tmp_path: Path, way: str
) -> None:
    if way == "as a user":
        require("root", IS_ROOT, "only root can change its user")
    link = tmp_path / "link"
    link.symlink_to(mount.path)
    inside = os.stat(mount.path)
    log = tmp_path / "log"
    stuck = {
        "directory": request(shell("echo ran"), log, cwd=str(mount.path)),
        "program": request([os.fsencode(mount.path / "script")], log),
        "path": request([b"script"], log, env={b"PATH": os.fsencode(mount.path) + b":/bin"}),
        "link": request(shell("echo ran"), log, cwd=str(link)),
        "checked directory": request(
            shell("echo ran"), log, cwd=str(mount.path), setup=ChildSetup(inside=(inside.st_dev, inside.st_ino))
        ),
        "as a user": request(shell("echo ran"), log, cwd=str(mount.path), setup=ChildSetup(user=(0, 0))),
    }[way]
    mount.hang()
    child, other = start_all(client, stuck, request([b"/bin/true"], tmp_path / "other.log", place=1))
    assert isinstance(child, Child), child
    assert isinstance(other, Child), other
    assert exit_of(client, other).how == Exited(0)
    client.terminating({child: "timeout"})
    client.kill_group(child)
    # The kernel may end it only once the server answers.
    client.started()
    assert client.poll(child) is None
    mount.answer()
    wait_until(lambda: client.started() or client.has_exited(child), what="the process to end")
    client.finish(child)
    found = exit_of(client, child)
    assert (found.how, found.reason) == (Signalled(9), "timeout")
    assert not log.exists(), "it did not run when the mount answered again"


def test_a_job_continues_when_the_mount_answers_again(client: SupervisorClient, mount: Mount, tmp_path: Path) -> None:
    log = tmp_path / "log"
    mount.hang()
    child = start(client, shell("echo ran"), log, cwd=str(mount.path))
    mount.answer()
    assert exit_of(client, child).how == Exited(0)
    assert printed(log) == b"ran\n"
