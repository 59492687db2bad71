"""Schedules over several hosts: each scheduled time enqueues one job, even if workers die."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise

from tests.e2e.hosts import Hosts
from tests.e2e.scene import Scene
from tests.wait import wait_until

TICKS = 8


def decided(scene: Scene) -> list[dict[str, str]]:
    """The ticks of the schedule, the first one first."""
    found: list[dict[str, str]] = scene.queuectl("cron", "show", "s", "--json", check=0).json["ticks"]
    return found[::-1]


def test_two_hosts_fire_each_tick_once_while_workers_are_killed(hosts: Hosts) -> None:
    a, b = hosts("a", "b")
    out = a.directory / "ran"
    workers = [a.worker(), b.worker(), b.worker()]
    a.queuectl("cron", "add", "s", "every 1s", f"echo $QUEUECTL_JOB_ID >> {out}", "--overlap", "allow", check=0)
    for number, scene in enumerate((b, a, b)):
        wait_until(lambda: len(decided(a)) > 2 * number, what="the next ticks")  # noqa: B023 - called at once
        workers.pop(0).kill()
        workers.append(scene.worker())
    wait_until(lambda: len(decided(a)) >= TICKS, what="some more ticks")
    a.queuectl("cron", "pause", "s", check=0)
    ticks = decided(a)
    a.wait_for_all()
    fired = [tick["job"] for tick in ticks]
    assert sorted(job.id for job in a.store.jobs()) == sorted(fired)
    assert set(out.read_text().split()) == set(fired)
    moments = [datetime.fromisoformat(tick["at"]) for tick in ticks]
    assert {later - earlier for earlier, later in pairwise(moments)} == {timedelta(seconds=1)}


def test_a_schedule_goes_on_where_another_worker_stopped(scene: Scene) -> None:
    worker = scene.worker()
    scene.queuectl("cron", "add", "s", "every 1s", "true", check=0)
    wait_until(lambda: len(decided(scene)) >= 2, what="the first ticks")
    worker.kill()
    before = len(decided(scene))
    scene.worker()
    wait_until(lambda: len(decided(scene)) >= before + 2, what="more of them")
    jobs = [tick["job"] for tick in decided(scene) if tick["job"]]
    assert len(jobs) == len(set(jobs)) == scene.store.count()
