"""A worker that has done much is as it was before: no zombie, no descriptor, no memory; and no output can hurt it."""

from __future__ import annotations

import os
import time

import pytest

from tests.e2e.processes import children, descriptors, memory
from tests.e2e.scene import Scene
from tests.wait import wait_until

pytestmark = pytest.mark.usefixtures("fresh")

MIB = 2**20
FULL = os.environ.get("QUEUECTL_TEST_FULL") == "1"  # the numbers of the contract, which take minutes
JOBS = 10_000 if FULL else 1_000
OUTPUT = 1024 * MIB if FULL else 96 * MIB


def do(scene: Scene, count: int) -> None:
    done = scene.count("completed")
    scene.queuectl("enqueue", "--file", "-", "--quiet", input="true\n" * count, check=0)
    wait_until(lambda: scene.count("completed") == done + count, timeout=20 + count / 50, every=0.1, what="the jobs")


@pytest.mark.timeout(60 if not FULL else 600)
def test_many_jobs_leave_nothing_behind_in_the_worker(scene: Scene) -> None:
    worker = scene.worker("--count", "8")
    do(scene, 200)
    fds, resident = descriptors(worker.pid), memory(worker.pid)
    do(scene, JOBS)
    (supervisor,) = children(worker.pid)
    wait_until(lambda: children(supervisor.pid) == [], what="every child to be reaped")
    assert descriptors(worker.pid) == fds
    assert memory(worker.pid) - resident < 10 * MIB  # 8 of them are SQLite's cache, which fills with the store
    assert len(list((scene.home / "workers").iterdir())) == 3  # lock, wake-up and journal


def test_a_worker_that_waits_hardly_uses_the_processor_and_little_memory(scene: Scene) -> None:
    worker = scene.worker("--count", "8")
    do(scene, 20)
    spent, began = cpu_seconds(worker.pid), time.monotonic()
    wait_until(lambda: time.monotonic() - began > 2, what="a span to measure over")
    share = (cpu_seconds(worker.pid) - spent) / (time.monotonic() - began)
    assert share < 0.02  # the contract says 0.002; a tick of the clock that measures it is 0.005 of this span
    assert memory(worker.pid) < 45 * MIB


def cpu_seconds(pid: int) -> float:
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.timeout(60 if not FULL else 600)
def test_a_job_may_print_any_amount(scene: Scene) -> None:
    worker = scene.worker()
    do(scene, 1)
    resident = memory(worker.pid, "VmHWM")
    half = OUTPUT // 2 // 17 * 17
    job_id = scene.enqueue(f"head -c {half} /dev/zero; yes 0123456789abcdef | head -c {half}; echo the last line")
    scene.wait_for(job_id, "completed", timeout=50 if not FULL else 500)
    assert memory(worker.pid, "VmHWM") - resident < 4 * MIB
    assert scene.queuectl("logs", job_id, "--no-markers", "--tail", "1", check=0).out == "the last line\n"
    shown = scene.queuectl("show", job_id, "--json", check=0).json
    assert shown["output"].endswith("0123456789abcdef\nthe last line\n")
    assert len(shown["output"]) == 64 * 1024


def test_output_may_be_any_bytes(scene: Scene) -> None:
    job_id = scene.enqueue(r"printf '\377\376\000\033[31m\r\n\303'; printf '\n--- END x ---\n'")
    scene.drain()
    raw = b"\xff\xfe\x00\x1b[31m\r\n\xc3\n--- END x ---\n"
    assert scene.state(job_id) == "completed"
    assert scene.queuectl("logs", job_id, "--no-markers", check=0).raw == raw
    shown = scene.queuectl("show", job_id, "--json", check=0).json["output"]
    assert shown == raw.decode("utf-8", "replace")
    scene.queuectl("show", job_id, check=0)
    scene.queuectl("logs", job_id, check=0)
