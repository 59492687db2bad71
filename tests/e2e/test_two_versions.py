"""This version and a later one, with one more migration, on the same database: what each can and cannot do."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from queuectl.store import postgres as of_postgres
from queuectl.store import sqlite as of_sqlite
from tests import postgres
from tests.e2e.scene import Scene, make_scene
from tests.program import Leftovers, Program
from tests.wait import wait_until

ROOT = Path(__file__).parent.parent.parent
PACKAGES = {"sqlite": of_sqlite, "postgres": of_postgres}


def next_version(dialect: str, folder: Path) -> dict[str, str]:
    """A copy of this version with one more migration: the environment that runs it."""
    package = Path(str(PACKAGES[dialect].__file__)).parent
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    migrations = folder / package.relative_to(ROOT) / "migrations"
    migrations.mkdir()
    latest = folder / "src/queuectl/store/statements.py"
    latest.write_text(latest.read_text().replace("LATEST: Final = 1", "LATEST: Final = 2"))
    (migrations / "0002_notes.sql").write_text(
        f"create table {'queuectl.' if dialect == 'postgres' else ''}notes (note text);\n"
    )
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
    new = next_version(dialect, tmp_path / "new")

    def run_new(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "queuectl", *words]
        return subprocess.run(command, env=scene.queuectl.environment(new), capture_output=True, text=True, timeout=50)

    def job(name: str) -> dict[str, Any]:
        shown: dict[str, Any] = json.loads(run_new("show", name, "--json").stdout)
        return shown

    scene.queuectl("config", "set", "heartbeat", "300ms", check=0)
    go, begun = scene.path("go"), scene.path("begun")
    script = f"touch {begun}; until [ -e {go} ]; do sleep 0.03; done"
    scene.queuectl("enqueue", "--id", "long", "--command", script, check=0)
    scene.queuectl("enqueue", "--id", "next", "--priority", "-1", "true", check=0)
    worker = scene.worker("--name", "old", "--count", "1")
    wait_until(begun.exists, what="the job of the old worker")

    # The first command of the new version migrates the database; the old worker detects that and starts no more jobs.
    assert run_new("enqueue", "--id", "new", "true").returncode == 0
    wait_until(lambda: "schema version" in worker.output, what=f"the old worker to detect it: {worker.output}")
    assert job("long")["state"] == "processing"
    assert "schema version" in scene.queuectl("enqueue", "true", check=1).err

    # The new worker claims the rest and does not touch the job that the old worker still runs.
    fresh = scene.worker("--name", "fresh", env=new, ready=False, through=["env"])
    for name in ("next", "new"):
        wait_until(lambda name=name: job(name)["state"] == "completed", what=f"{name}: {fresh.output}")
        assert job(name)["worker"] == "fresh"
    go.touch()
    wait_until(lambda: job("long")["state"] == "completed", what="the old worker to settle its job")
    assert [job("long")[field] for field in ("worker", "runs", "crashes", "attempts")] == ["old", 1, 0, 0]
    worker.wait()
    assert [one["id"] for one in json.loads(run_new("worker", "list", "--json").stdout)] == ["fresh"]
