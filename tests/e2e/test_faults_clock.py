"""The wall clock jumps by hours, forward and back, while workers run jobs. Durations are not affected.

The jump is made below the program: a module that Python loads first shifts the time for all processes
with the same file in their environment. Jobs, supervisors and the clocks of the kernel are not affected.
Many more jumps, at every moment: tests/sim.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.scene import Scene
from tests.program import Program
from tests.wait import wait_until

SHIFT = """
import os, time

told, real = os.environ["SHIFTED_CLOCK"], time.time_ns

def shifted():
    try:
        with open(told) as file:
            return real() + int(file.read() or 0) * 10**9
    except FileNotFoundError:
        return real()

time.time_ns = shifted
"""


class ShiftedClock:
    def __init__(self, scene: Scene) -> None:
        self._told = scene.path("shift")
        scene.path("site").mkdir()
        scene.path("site/sitecustomize.py").write_text(SHIFT)
        path = os.pathsep.join(filter(None, [str(scene.path("site")), os.environ.get("PYTHONPATH")]))
        env = {"PYTHONPATH": path, "SHIFTED_CLOCK": str(self._told)}
        scene.queuectl = Program(scene.home, env)

    def jump(self, hours: int) -> None:
        beside = Path(f"{self._told}.new")
        beside.write_text(str(hours * 3600))
        beside.rename(self._told)


@pytest.fixture
def wall(scene: Scene) -> ShiftedClock:
    return ShiftedClock(scene)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def in_order(job: dict[str, Any]) -> bool:
    times = [moment(job[name]) for name in ("created_at", "started_at", "finished_at") if job[name]]
    return times == sorted(times) and moment(job["updated_at"]) >= times[-1]


@pytest.mark.parametrize("hours", [5, -5])
def test_a_jump_of_the_clock_ends_no_job_takes_none_away_and_times_none_out(
    scene: Scene, wall: ShiftedClock, hours: int
) -> None:
    scene.configure(heartbeat="200ms", lease="1s", poll_interval="200ms", kill_grace="200ms")
    running = scene.enqueue(f"{scene.note('begun')}; {scene.until('go')}")
    limited = scene.enqueue(f"{scene.note('begun')}; {scene.until('go')}", timeout="30s")
    overdue = scene.enqueue(f"{scene.note('begun')}; {scene.until('never')}", timeout="2s", max_retries=1)
    first, second = scene.worker("--count", "3", "--name", "w1"), scene.worker("--name", "w2")
    scene.wait_for_lines("begun", 3)
    wall.jump(hours)
    added = scene.enqueue("true")  # by a process with the new time
    jumped = moment(scene.wait_for(added, "completed")["created_at"]) - moment(scene.job(running)["created_at"])
    assert abs(jumped - timedelta(hours=hours)) < timedelta(minutes=1)
    assert scene.wait_for(overdue, "dead")["error"].startswith("timeout after 2s")  # by then two leases have gone by
    assert (scene.state(running), scene.state(limited)) == ("processing", "processing")
    assert scene.workers() == {"w1": "running", "w2": "running"}
    scene.open("go")
    for job_id in (running, limited):
        assert scene.wait_for(job_id, "completed")["runs"] == 1
    for job_id in (running, limited, overdue, added):
        job = scene.job(job_id)
        assert (job["crashes"], job["runs"]) == (0, 1)
        assert in_order(job), job
        assert 0 <= job["duration_ms"] < 60_000
    assert "lost" not in first.output + second.output


def test_what_waits_for_its_time_is_due_when_the_clock_says_so_and_once(scene: Scene, wall: ShiftedClock) -> None:
    scene.configure(poll_interval="200ms")
    delayed = scene.enqueue(scene.note("ran"), delay="3h")
    retried = scene.enqueue(f"{scene.note('tried')}; [ $QUEUECTL_RUN = 2 ]", backoff_base=3600)
    scene.worker()
    scene.wait_for(retried, "failed")
    wall.jump(2)
    assert scene.wait_for(retried, "completed")["runs"] == 2
    assert scene.state(delayed) == "pending"
    wall.jump(4)
    scene.wait_for(delayed, "completed")
    wall.jump(-4)  # what has been done stays done
    wall.jump(8)
    assert scene.wait_for(scene.enqueue("true"), "completed")["attempts"] == 0
    assert (len(scene.lines("ran")), len(scene.lines("tried"))) == (1, 2)


def test_a_clock_that_was_set_back_is_named_and_nothing_waits_but_what_has_a_time(
    scene: Scene, wall: ShiftedClock
) -> None:
    wall.jump(6)
    early = scene.enqueue("true")
    later = scene.enqueue("true", delay="1s")
    wall.jump(0)
    scene.worker()
    assert scene.wait_for(early, "completed")["wait_ms"] == 0
    assert scene.job(later)["state"] == "pending"  # its time is six hours away now
    told = scene.queuectl("doctor", "--json", check=1).json
    (found,) = next(seen["findings"] for seen in told["checks"] if seen["check"] == "clock")
    assert found["code"] == "clock-went-back"
    wait = moment(scene.job(later)["run_at"]) - moment(scene.job(early)["finished_at"])
    assert wait < timedelta(hours=6, minutes=1)
    scene.queuectl("cancel", later, check=0)
    wait_until(lambda: scene.state(later) == "cancelled", what="it to be cancelled")
