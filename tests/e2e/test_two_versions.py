"""The version before this one, as it was, beside this one on the same store: what each can and cannot do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from queuectl.store import postgres as of_postgres
from queuectl.store import sqlite as of_sqlite
from queuectl.store.migrate import migrations_of
from tests import postgres
from tests.e2e.scene import Scene, make_scene
from tests.program import Leftovers, Program
from tests.wait import wait_until

ROOT = Path(__file__).parent.parent.parent
PACKAGES = {"sqlite": of_sqlite, "postgres": of_postgres}


def git(*words: str) -> bytes:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True)
    return done.stdout if done.returncode == 0 else b""


def before(dialect: str, folder: Path) -> dict[str, str]:
    """The program of just before the latest migration, unpacked: the environment that runs it."""
    latest = migrations_of(str(PACKAGES[dialect].__file__))[-1].path
    added = git("log", "--format=%H", "--diff-filter=A", "--", latest).decode().split()
    archive = git("archive", f"{added[-1]}^", "src") if added else b""
    if not archive:
        pytest.skip("the history of this checkout does not reach back to the version before")
    folder.mkdir()
    subprocess.run(["tar", "x", "-C", str(folder)], input=archive, check=True)
    return {"PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.fixture(params=PACKAGES)
def stage(
    request: pytest.FixtureRequest, home: Path, tmp_path: Path, leftovers: Leftovers
) -> Iterator[tuple[str, Scene]]:
    """A scene without a store yet: who comes first makes it."""
    if request.param == "sqlite":
        for scene in make_scene(Program(home), tmp_path):
            yield "sqlite", scene
        return
    server = postgres.server()
    name = server.create()
    for scene in make_scene(Program(home, {"QUEUECTL_DB": server.database(name)}), tmp_path):
        yield "postgres", scene
    server.drop(name)


def test_workers_of_both_versions_share_the_work_of_an_upgrade(stage: tuple[str, Scene], tmp_path: Path) -> None:
    dialect, scene = stage
    old = before(dialect, tmp_path / "old")
    command = [sys.executable, "-m", "queuectl"]

    def earlier(*words: str) -> subprocess.CompletedProcess[str]:
        env = scene.queuectl.environment(old)
        return subprocess.run([*command, *words], env=env, capture_output=True, text=True, timeout=50)

    assert earlier("config", "set", "heartbeat", "300ms").returncode == 0
    go, begun = scene.path("go"), scene.path("begun")
    script = f"touch {begun}; until [ -e {go} ]; do sleep 0.03; done"
    assert earlier("enqueue", "--id", "long", "--command", script).returncode == 0
    assert earlier("enqueue", "--id", "next", "--priority", "-1", "true").returncode == 0
    worker = scene.worker("--name", "old", "--count", "1", env=old, ready=False, through=["env"])
    wait_until(begun.exists, what="the job of the old worker")

    # The first command of the new version changes the store; the old worker notices, and begins nothing more.
    scene.queuectl("enqueue", "--id", "new", "true", check=0)
    wait_until(lambda: "schema version" in worker.output, what=f"the old worker to notice: {worker.output}")
    assert scene.state("long") == "processing"
    refused = earlier("enqueue", "true")
    assert (refused.returncode, "schema version" in refused.stderr) == (1, True)

    # The new worker takes the rest, and leaves alone what the old one still runs.
    scene.worker("--name", "fresh")
    for name in ("next", "new"):
        assert scene.wait_for(name, "completed")["worker"] == "fresh"
    go.touch()
    job = scene.wait_for("long", "completed")
    assert (job["worker"], job["runs"], job["crashes"], job["attempts"]) == ("old", 1, 0, 0)
    worker.wait()
    scene.wait_for_workers("fresh")
