"""A worker that systemd keeps: installed, watched, reloaded, restarted, stopped, and gone again. With a real systemd."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.managed import Managed, managed, why_not
from tests.wait import wait_until


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Managed]:
    # Not required in CI: whether a container may have cgroups of its own is not for us to say.
    if (problem := why_not()) is not None:
        pytest.skip(problem)
    with managed(tmp_path) as scene:
        yield scene


def hold(machine: Managed, name: str) -> str:
    """A job that notes the number of its process and ends when there is a file NAME.go."""
    script = f"echo $$ > {name}.pid; until [ -e {name}.go ]; do sleep 0.05; done"
    job = machine.queuectl("enqueue", "--id", name, "--cwd", machine.directory, "--command", script).stdout.strip()
    wait_until((machine.directory / f"{name}.pid").exists, what="the job to begin")
    return job


def let_go(machine: Managed, name: str) -> dict[str, Any]:
    (machine.directory / f"{name}.go").touch()
    machine.queuectl("wait", name, "--timeout", "30s")
    shown: dict[str, Any] = machine.json("show", name)
    return shown


def is_undisturbed(job: dict[str, Any]) -> bool:
    return (job["state"], job["runs"], job["attempts"], job["crashes"]) == ("completed", 1, 0, 0)


def test_a_service_is_installed_once_and_keeps_its_jobs_through_whatever_happens_to_its_worker(
    machine: Managed,
) -> None:
    told = machine.json("service", "install", "--count", "2", "--stop-timeout", "20s")
    assert (told["changed"], told["installed"], told["enabled"], told["active"]) == (True, True, True, "active")
    assert told["pid"] == machine.main
    again = machine.json("service", "install", "--count", "2", "--stop-timeout", "20s")
    assert (again["changed"], again["pid"]) == (False, told["pid"])

    # Restart: another worker, the same process of the job.
    hold(machine, "restarted")
    wait_until(lambda: "1 of 2 slots busy" in machine.json("service", "status")["status"], what="the status")
    first = machine.main
    machine.systemctl("restart", "queuectl.service")
    assert machine.main not in (0, first)
    assert is_undisturbed(let_go(machine, "restarted"))

    # Reload: the worker restarts in the same process.
    hold(machine, "reloaded")
    before = machine.main
    machine.systemctl("reload", "queuectl.service")
    assert machine.main == before
    assert is_undisturbed(let_go(machine, "reloaded"))

    # A crash: systemd starts another one.
    hold(machine, "orphaned")
    machine.run("kill", "-9", str(machine.main))
    wait_until(lambda: machine.main not in (0, before), what="systemd to start it again")
    assert is_undisturbed(let_go(machine, "orphaned"))

    # Another number of slots: the unit is rewritten, and the worker restarted.
    hold(machine, "changed")
    changed = machine.json("service", "install", "--count", "3", "--stop-timeout", "20s")
    assert changed["changed"] is True
    assert is_undisturbed(let_go(machine, "changed"))
    assert [worker["slots"] for worker in machine.json("worker", "list")] == [3]

    # A stop lets it finish.
    hold(machine, "finished")
    machine.systemctl("stop", "--no-block", "queuectl.service")
    wait_until(lambda: machine.json("worker", "list")[0]["state"] == "stopping", what="the worker to stop")
    assert machine.json("show", "finished")["state"] == "processing"
    assert machine.json("service", "status")["active"] == "deactivating"
    assert is_undisturbed(let_go(machine, "finished"))
    wait_until(lambda: machine.json("service", "status")["active"] == "inactive", what="the service to end")

    machine.queuectl("service", "uninstall")
    gone = machine.json("service", "status")
    assert (gone["installed"], gone["active"]) == (False, None)
    assert not Path(gone["path"]).exists()
    assert "there is no service" in machine.queuectl("service", "uninstall").stdout


def test_a_stop_that_took_too_long_gives_jobs_back_and_charges_nothing(machine: Managed) -> None:
    machine.queuectl("config", "set", "kill-grace", "100ms")
    machine.json("service", "install", "--stop-timeout", "100ms")
    hold(machine, "long")
    machine.systemctl("stop", "queuectl.service")
    job = machine.json("show", "long")
    assert (job["state"], job["attempts"], job["crashes"]) == ("pending", 0, 0)
    assert machine.json("service", "status")["active"] == "inactive"


def test_a_worker_that_hangs_is_replaced_and_its_jobs_go_on(machine: Managed) -> None:
    machine.json("service", "install", "--name", "w1")
    drop_in = machine.directory / ".config/systemd/user/queuectl-w1.service.d"
    drop_in.mkdir()
    (drop_in / "watchdog.conf").write_text("[Service]\nWatchdogSec=2s\nRestartSec=100ms\n")
    machine.systemctl("daemon-reload")
    machine.systemctl("restart", "queuectl-w1.service")
    hold(machine, "survivor")
    pid = machine.json("service", "status", "--name", "w1")["pid"]
    machine.run("kill", "-STOP", str(pid), check=None)  # on a slow machine it may have been replaced already
    wait_until(
        lambda: machine.json("service", "status", "--name", "w1")["pid"] not in (None, pid), what="another worker"
    )
    assert is_undisturbed(let_go(machine, "survivor"))
