"""The container of deploy/: its own entry point, as process 1 of a process namespace, as a user without rights."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.processes import children
from tests.e2e.scene import Scene, make_scene
from tests.needs import require
from tests.program import Program
from tests.wait import wait_until

ROOT = Path(__file__).parent.parent.parent
CONTAINERFILE = ROOT / "deploy" / "Containerfile"
UNSHARE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
pytestmark = pytest.mark.usefixtures("fresh")


def instruction(name: str) -> str:
    return re.findall(rf"^{name} (.+)$", CONTAINERFILE.read_text("utf-8"), re.MULTILINE)[-1]


def words() -> list[str]:
    """Those that the container runs, of the queuectl that is tested."""
    program, *rest = [*json.loads(instruction("ENTRYPOINT")), *json.loads(instruction("CMD"))]
    assert program == "queuectl"
    return [sys.executable, "-m", "queuectl", *rest]


@pytest.fixture
def boxed(tmp_path: Path) -> Iterator[Scene]:
    made = subprocess.run([*UNSHARE, "true"], capture_output=True).returncode == 0
    require("unshare --pid", made, "a process namespace of its own needs privileges")
    yield from make_scene(Program(tmp_path / "home"), tmp_path)


def start(scene: Scene, log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as out:
        return subprocess.Popen(
            [*UNSHARE, *words()], env=scene.queuectl.environment(), stdin=subprocess.DEVNULL, stdout=out, stderr=out
        )


def first_of(process: subprocess.Popen[bytes]) -> int:
    """Process 1 of the namespace, by its number out here."""
    return wait_until(lambda: [child.pid for child in children(process.pid)], what="process 1")[0]


def test_the_entry_point_as_process_1_works_reaps_and_finishes_on_term(boxed: Scene, tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = start(boxed, log)
    try:
        wait_until(lambda: boxed.is_there and boxed.store.workers(), what="the worker")
        (known,) = boxed.store.workers()
        assert (known.pid, known.slots) == (1, 4)
        orphans = "(sleep 0.05 &) ; (setsid sleep 0.05 &)"
        for job_id in boxed.enqueue_all([{"command": f"{orphans}; exit 0"} for _ in range(3)]):
            boxed.wait_for(job_id, "completed")
        one = first_of(process)
        wait_until(lambda: len(children(one)) == 1, what="every orphan to be reaped, and the supervisor to be left")
        # A stop in the middle of a job lets it finish.
        job_id = boxed.enqueue(f"{boxed.note('begun')}; {boxed.until('go')}; exit 0")
        boxed.wait_for_file("begun")
        os.kill(one, signal.SIGTERM)
        wait_until(lambda: '"event":"stopping"' in log.read_text(), what="it to hear the signal")
        boxed.open("go")
        assert process.wait(30) == 0
        assert boxed.state(job_id) == "completed"
        assert boxed.store.workers() == []
        assert all(json.loads(line)["worker"] == known.id for line in log.read_text().splitlines())
    finally:
        process.kill()
        process.wait()


def test_process_1_is_told_secrets_by_commands_that_it_reaps_itself(boxed: Scene, tmp_path: Path) -> None:
    script = tmp_path / "provider"
    script.write_text('#!/bin/sh\n(sleep 0.05 &)\n[ "$1" != bad ] && echo "told-$1"\n')
    script.chmod(0o755)
    boxed.home.mkdir(mode=0o700)
    (boxed.home / "secrets.toml").write_text(f'command = ["{script}", "{{name}}"]\n')
    process = start(boxed, tmp_path / "log")
    try:
        wait_until(lambda: boxed.is_there and boxed.store.workers(), what="the worker")
        jobs = [{"command": f'[ "$A" = told-n{n} ]', "secrets": [f"A=n{n}"], "max_retries": 1} for n in range(12)]
        for job_id in boxed.enqueue_all(jobs):
            boxed.wait_for(job_id, "completed")
        bad = boxed.enqueue("true", secrets=["A=bad"], max_retries=1)
        assert "ended with exit code 1" in boxed.wait_for(bad, "dead")["error"]
        one = first_of(process)
        wait_until(lambda: len(children(one)) == 1, what="every one to be reaped, and the supervisor to be left")
    finally:
        process.kill()
        process.wait()


def test_the_container_is_not_root_and_has_its_home_on_a_volume() -> None:
    user = instruction("USER")
    assert user.isdecimal()
    assert int(user) > 0
    assert instruction("ENV") == f"QUEUECTL_HOME={instruction('VOLUME')}"
    assert instruction("STOPSIGNAL") == "SIGTERM"
    assert f"--uid {user} " in CONTAINERFILE.read_text("utf-8")


def test_the_example_with_postgresql_shows_no_password() -> None:
    said = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text("utf-8"))
    assert "POSTGRES_PASSWORD" not in said["services"]["db"]["environment"]
    worker = said["services"]["worker"]
    assert worker["environment"]["QUEUECTL_DB"] == "postgresql://queue@db/queue"
    assert worker["read_only"] is True
    assert worker["secrets"] == list(said["secrets"])
