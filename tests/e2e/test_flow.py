"""Limits, schedules and batches over two hosts on one PostgreSQL, all in use at once, while workers are killed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from queuectl.job.lifecycle import State
from queuectl.job.model import Job, Run
from tests.e2e.hosts import Hosts
from tests.e2e.scene import Scene
from tests.wait import wait_until

KEYS = ("x", "y", "z")
EACH = 6  # jobs of a key
MOST, PER_KEY = 3, 1
ENDED = {State.COMPLETED, State.DEAD, State.CANCELLED}
# What the clocks of a host and of the server may differ by, as far as the times in the history go.
BLUR = timedelta(milliseconds=20)


def test_nothing_goes_beyond_its_limit_or_is_forgotten_or_doubled(hosts: Hosts) -> None:
    a, b = hosts("a", "b")
    a.configure(max_crashes=20, heartbeat="300ms", lease="2s")
    a.queuectl("queue", "set", "q", "--concurrency", str(MOST), "--per-key", str(PER_KEY), check=0)
    done = a.directory / "done"
    cron = ("--queue", "q", "--key", "x", "--overlap", "allow")
    a.queuectl("cron", "add", "s", "every 1s", *cron, "sleep 0.05", check=0)
    a.queuectl(
        *("enqueue", "--batch", "night", "--queue", "q", "--on-complete", f"echo $QUEUECTL_BATCH >> {done}"),
        "[" + ",".join(f'{{"command": "sleep 0.1", "key": "{key}"}}' for key in KEYS * EACH) + "]",
        check=0,
    )
    workers = [a.worker("--count", "4"), b.worker("--count", "4")]
    for number, scene in enumerate((a, b, a)):
        wait_until(lambda: ended(a) >= 3 * (number + 1), what="some to end")  # noqa: B023 - called at once
        workers[number % 2].kill()
        workers[number % 2] = scene.worker("--count", "4")
    a.queuectl("wait", "--batch", "night", "--timeout", "60", check=0)
    wait_until(done.exists, what="what runs when all of the batch have ended")
    a.queuectl("cron", "pause", "s", check=0)
    a.wait_for_all()
    jobs = list(a.store.jobs())
    assert {job.state for job in jobs} == {State.COMPLETED}
    assert done.read_text() == "night\n"
    assert len(jobs) == len(KEYS) * EACH + 1 + len(ticks(a))
    runs = {job.id: a.store.history(job.id) for job in jobs}
    in_queue = [job for job in jobs if job.queue == "q"]
    assert at_once(in_queue, runs) <= MOST
    for key in KEYS:
        assert at_once([job for job in in_queue if job.key == key], runs) <= PER_KEY


def ended(scene: Scene) -> int:
    return sum(scene.count(state) for state in sorted(ENDED))


def ticks(scene: Scene) -> list[str]:
    """The jobs of the schedule. Each of its times once, none left out."""
    decided = scene.queuectl("cron", "show", "s", "--json", check=0).json["ticks"][::-1]
    moments = [datetime.fromisoformat(tick["at"]) for tick in decided]
    assert all(later - earlier >= timedelta(seconds=1) for earlier, later in pairwise(moments))
    return [tick["job"] for tick in decided if tick["job"] is not None]


def at_once(jobs: Sequence[Job], runs: Mapping[str, Sequence[Run]]) -> int:
    """How many of these ran at one instant, at most, by what their history says."""
    changes = []
    for job in jobs:
        for run in runs[job.id]:
            assert run.started_at is not None
            assert run.finished_at is not None
            if run.finished_at - run.started_at > 2 * BLUR:
                changes += [(run.started_at + BLUR, 1), (run.finished_at - BLUR, -1)]
    running = most = 0
    for _, change in sorted(changes):
        running += change
        most = max(most, running)
    assert most > 0
    return most
