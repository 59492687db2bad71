"""Limits, schedules, batches and graphs over two hosts on one PostgreSQL, all in use at once, while workers are killed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from queuectl.jobs.model import Job, Run
from queuectl.jobs.states import State
from tests.e2e.hosts import Hosts
from tests.e2e.scene import Scene
from tests.wait import wait_until

KEYS = ("x", "y", "z")
EACH = 6  # jobs of a key
MOST, PER_KEY = 3, 1
LAYERS, WIDTH = 6, 3
FRAMES, FRAMES_AT_ONCE = 12, 2  # an array that says itself how many of it run
MAILS, RATE = 8, 4  # of a queue with a rate, and how many of it start in a second
EARLY, LATE = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
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
    a.queuectl("enqueue", json.dumps(graph()), check=0)
    a.queuectl("enqueue", "-q", "frames", "--array", f"1-{FRAMES}%{FRAMES_AT_ONCE}", "sleep 0.1", check=0)
    a.queuectl("queue", "set", "mail", "--rate", f"{RATE}/s", check=0)
    a.queuectl("enqueue", "-q", "mail", "--array", f"1-{MAILS}", "true", check=0)
    a.queuectl("queue", "pause", "resting", check=0)
    (resting,) = a.queuectl("enqueue", "-q", "resting", "--unique", "once", "true", check=0).lines
    workers = [a.worker("--count", "4"), b.worker("--count", "4")]
    for number, scene in enumerate((a, b, a)):
        wait_until(lambda: ended(a) >= 3 * (number + 1), what="some to end")  # noqa: B023 - called at once
        workers[number % 2].kill()
        workers[number % 2] = scene.worker("--count", "4")
        assert scene.queuectl("enqueue", "-q", "resting", "--unique", "once", "true", check=0).lines == [resting]
    a.queuectl("wait", "--batch", "night", "--timeout", "60", check=0)
    wait_until(done.exists, what="what runs when all of the batch have ended")
    a.queuectl("cron", "pause", "s", check=0)
    assert a.store.get(resting).runs == 0
    a.queuectl("queue", "resume", "resting", check=0)
    a.wait_for_all()
    jobs = list(a.store.jobs())
    by_id = {job.id: job for job in jobs}
    # A child runs after its parents have ended. Children of the failed job are cancelled, unless they wait for its failure.
    cancelled = {"on-success"}
    assert {job.id for job in jobs if job.state is State.CANCELLED} == cancelled
    assert {job.state for job in jobs if job.id not in cancelled | {"fails"}} == {State.COMPLETED}
    assert by_id["fails"].state is State.DEAD
    for child in jobs:
        for parent in child.depends_on if child.id not in cancelled else ():
            assert (by_id[parent.id].finished_at or LATE) <= (child.started_at or EARLY) + BLUR
    assert done.read_text() == "night\n"
    assert len(jobs) == len(KEYS) * EACH + 1 + len(ticks(a)) + len(graph()) + FRAMES + MAILS + 1
    runs = {job.id: a.store.history(job.id) for job in jobs}
    in_queue = [job for job in jobs if job.queue == "q"]
    assert at_once(in_queue, runs) <= MOST
    for key in KEYS:
        assert at_once([job for job in in_queue if job.key == key], runs) <= PER_KEY
    assert at_once([job for job in jobs if job.queue == "frames"], runs) <= FRAMES_AT_ONCE
    starts = sorted(run.started_at or LATE for job in jobs if job.queue == "mail" for run in runs[job.id])
    assert all(
        later - first >= timedelta(seconds=1) - 2 * BLUR for first, later in zip(starts, starts[RATE:], strict=False)
    )


def graph() -> list[dict[str, Any]]:
    """A row of layers, each job of which waits for all of the one before; and one that fails, with a child for each result."""
    layers: list[dict[str, Any]] = []
    for layer in range(LAYERS):
        above = [f"l{layer - 1}-{number}" for number in range(WIDTH)] if layer else []
        layers += [
            {"id": f"l{layer}-{number}", "command": "sleep 0.05", "depends_on": above} for number in range(WIDTH)
        ]
    return [
        *reversed(layers),  # children before their parents: they are one transaction
        {"id": "fails", "command": "exit 3", "max_retries": 1, "depends_on": ["l0-0"]},
        {"id": "on-success", "command": "true", "depends_on": ["fails"]},
        {"id": "on-failure", "command": "true", "depends_on": [{"id": "fails", "when": "failed"}]},
    ]


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
