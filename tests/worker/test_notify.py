"""What a worker tells a service manager, and what it does when it is told to leave its jobs to the next one."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from queuectl.process.client import LEAVE_SIGNAL
from tests.e2e.scene import Scene
from tests.wait import wait_until

pytestmark = pytest.mark.usefixtures("fresh")


class Ear:
    """The socket of a manager, and all that was said to it."""

    def __init__(self, path: str) -> None:
        self.variables: dict[str, str | None] = {"NOTIFY_SOCKET": path}
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("\0" + path[1:] if path.startswith("@") else path)
        self._socket.setblocking(False)
        self._heard: list[str] = []

    def heard(self) -> list[str]:
        while True:
            try:
                self._heard += self._socket.recv(65536).decode().split("\n")
            except BlockingIOError:
                return self._heard

    def wait_for(self, words: str) -> None:
        wait_until(lambda: any(words in line for line in self.heard()), what=f"{words}: {self.heard()}")

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def ear(tmp_path: Path) -> Iterator[Ear]:
    made = Ear(str(tmp_path / "notify"))
    yield made
    made.close()


def test_a_worker_says_when_it_is_ready_what_it_does_and_when_it_stops(scene: Scene, ear: Ear) -> None:
    worker = scene.worker("--count", "2", env=ear.variables)
    ear.wait_for("READY=1")
    job_id = scene.enqueue(scene.until("go"))
    ear.wait_for("STATUS=1 of 2 slots busy, 0 runs done; serves all queues")
    scene.open("go")
    scene.wait_for(job_id, "completed")
    ear.wait_for("STATUS=0 of 2 slots busy, 1 runs done")
    scene.queuectl("worker", "stop", check=0)
    ear.wait_for("STOPPING=1")
    assert worker.wait() == 0
    assert "WATCHDOG=1" not in ear.heard()


def test_a_name_that_is_no_file_is_told_too(scene: Scene, tmp_path: Path) -> None:
    ear = Ear(f"@{tmp_path}/abstract")
    scene.worker(env=ear.variables)
    ear.wait_for("READY=1")
    ear.close()


def test_the_loop_feeds_the_watchdog_however_little_there_is_to_do(scene: Scene, ear: Ear) -> None:
    scene.configure(lease="2h", heartbeat="30m", poll_interval="1h")
    scene.worker(env={**ear.variables, "WATCHDOG_USEC": "100000"})
    wait_until(lambda: ear.heard().count("WATCHDOG=1") >= 5, what="the worker to feed its watchdog")


@pytest.mark.parametrize("usec, pid", [("100000", "1"), ("0", None), ("soon", None)])
def test_a_watchdog_of_another_process_or_none_gets_no_signal(
    scene: Scene, ear: Ear, usec: str, pid: str | None
) -> None:
    worker = scene.worker(env={**ear.variables, "WATCHDOG_USEC": usec, "WATCHDOG_PID": pid})
    scene.wait_for(scene.enqueue("true"), "completed")
    scene.queuectl("worker", "stop", check=0)
    assert worker.wait() == 0
    ear.wait_for("STOPPING=1")
    assert "WATCHDOG=1" not in ear.heard()


def test_a_manager_that_does_not_listen_is_no_reason_not_to_work(scene: Scene, tmp_path: Path) -> None:
    scene.worker(env={"NOTIFY_SOCKET": str(tmp_path / "missing"), "WATCHDOG_USEC": "100000"})
    scene.wait_for(scene.enqueue("true"), "completed")


def test_a_job_does_not_find_what_the_manager_told_the_worker(scene: Scene, ear: Ear) -> None:
    scene.worker(env={**ear.variables, "WATCHDOG_USEC": "60000000"})
    job_id = scene.enqueue("env | grep -E 'NOTIFY|WATCHDOG' || echo none")
    scene.wait_for(job_id, "completed")
    assert scene.queuectl("logs", job_id, "--no-markers", check=0).out == "none\n"


def test_a_restarted_worker_reports_ready_again(scene: Scene, ear: Ear) -> None:
    scene.worker(env=ear.variables)
    scene.queuectl("worker", "restart", check=0)
    wait_until(lambda: ear.heard().count("READY=1") == 2, what="both to be ready")


@pytest.mark.parametrize("name", ["w1", "another"])
def test_a_worker_that_is_told_to_leave_goes_and_the_next_one_looks_after_its_job(scene: Scene, name: str) -> None:
    scene.configure(poll_interval="100ms")
    first = scene.worker("--name", "w1")
    job_id = scene.enqueue(f"{scene.note('begun')}; {scene.until('go')}; exit 4", max_retries=1)
    scene.wait_for_file("begun")
    first.send(LEAVE_SIGNAL)
    assert first.wait() == 0
    assert scene.state(job_id) == "processing"
    scene.worker("--name", name)
    scene.open("go")
    job = scene.wait_for(job_id, "dead")
    assert (job["exit_code"], job["runs"], job["crashes"]) == (4, 1, 0)
    assert len(scene.lines("begun")) == 1


def test_a_worker_without_jobs_that_is_told_to_leave_just_goes(scene: Scene) -> None:
    first = scene.worker("--name", "w1")
    first.send(LEAVE_SIGNAL)
    assert first.wait() == 0
    second = scene.worker("--name", "w1")
    scene.wait_for(scene.enqueue("true"), "completed")
    assert second.process.poll() is None
