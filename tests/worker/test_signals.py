"""Signals: what a worker does when it was started with signals ignored or blocked, and what programs that we start inherit."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from tests.e2e.scene import Scene
from tests.program import COMMAND, STRANGELY, Program
from tests.wait import wait_until

pytestmark = pytest.mark.usefixtures("fresh")

# grep and not Python, which ignores SIGPIPE and SIGXFSZ itself.
SHOW = "grep -E 'Sig(Blk|Ign|Pnd)' /proc/self/status"


def are_default(lines: list[str]) -> bool:
    """Whether the output of SHOW has no signal that is blocked, ignored or pending."""
    return [int(line.split()[1], 16) for line in lines] == [0, 0, 0]


def run_strangely(queuectl: Program, *words: str) -> None:
    subprocess.run([*STRANGELY, *COMMAND, *words], env=queuectl.environment(), stdin=subprocess.DEVNULL, check=True)


def test_jobs_with_and_without_limits_have_default_signals(scene: Scene) -> None:
    jobs = scene.enqueue_all([{"command": SHOW}, {"command": SHOW, "nice": 1, "open_files": 100}])
    scene.worker(through=STRANGELY)
    for job_id in jobs:
        scene.wait_for(job_id, "completed")
        assert are_default(scene.queuectl("logs", job_id, "--no-markers", check=0).lines)


def test_jobs_of_a_detached_worker_have_default_signals(scene: Scene) -> None:
    job_id = scene.enqueue(SHOW)
    run_strangely(scene.queuectl, "worker", "start", "--detach")
    scene.wait_for(job_id, "completed")
    scene.queuectl("worker", "stop", check=0)
    assert are_default(scene.queuectl("logs", job_id, "--no-markers", check=0).lines)


def test_the_command_that_provides_secrets_has_default_signals(scene: Scene) -> None:
    provider = scene.path("provider")
    provider.write_text(f"#!/bin/sh\n{SHOW} > {scene.quoted('signals')}\necho value\n")
    provider.chmod(0o755)
    scene.home.mkdir(mode=0o700)
    configuration = scene.home / "secrets.toml"
    configuration.write_text(f'command = ["{provider}", "{{name}}"]\n')
    configuration.chmod(0o600)
    job_id = scene.enqueue("true", secrets=["NAME"])
    scene.worker(through=STRANGELY)
    scene.wait_for(job_id, "completed")
    assert are_default(scene.path("signals").read_text().splitlines())


@pytest.mark.parametrize("words", [("test", "a"), ("check",)], ids=" ".join)
def test_the_command_of_an_alert_has_default_signals(queuectl: Program, tmp_path: Path, words: tuple[str, ...]) -> None:
    found = tmp_path / "signals"
    command = f"{SHOW} > '{found}'"
    queuectl("alert", "add", "a", "--no-worker", "1ms", "--for", "0", "--command", command, check=0)
    run_strangely(queuectl, "alert", *words)
    assert are_default(found.read_text().splitlines())


def test_the_command_of_an_alert_that_the_dashboard_runs_has_default_signals(queuectl: Program, tmp_path: Path) -> None:
    found = tmp_path / "signals"
    command = f"{SHOW} > '{found}.new'; mv '{found}.new' '{found}'"
    queuectl("alert", "add", "a", "--no-worker", "1ms", "--for", "0", "--command", command, check=0)
    dashboard = subprocess.Popen(
        [*STRANGELY, *COMMAND, "dashboard", "--port", "0"], env=queuectl.environment(), stdout=subprocess.DEVNULL
    )
    try:
        wait_until(found.exists, what="the command of the alert")
        assert are_default(found.read_text().splitlines())
    finally:
        dashboard.terminate()
        assert dashboard.wait(20) == 0  # though its parent had blocked SIGTERM


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_worker_that_was_started_with_signals_ignored_and_blocked_stops(scene: Scene, number: signal.Signals) -> None:
    worker = scene.worker(through=STRANGELY)
    worker.send(number)
    assert worker.wait() == 0


def test_a_worker_under_nohup_ignores_a_hangup_also_after_a_restart(scene: Scene) -> None:
    worker = scene.worker(through=["nohup"])
    scene.queuectl("worker", "restart", check=0)
    worker.send(signal.SIGHUP)
    scene.wait_for(scene.enqueue("true"), "completed")
    assert worker.process.poll() is None
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
