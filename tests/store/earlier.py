"""A store with a past, as a version before this one has left it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from queuectl.job.points import Counts, Span
from queuectl.store.protocol import Store
from tests.clock import FakeClock
from tests.factories import new_job
from tests.store.hands import BAD, OK, Hands

OF_NOW: Final = ("points", "counters", "buckets", "sampling", "requests", "audit", "audit_ends", "calls", "alerts")
COLUMNS_OF_NOW: Final = (
    ("jobs", "hooks"),
    ("jobs", "secrets"),
    ("queues", "on_success"),
    ("queues", "on_failure"),
    ("queues", "on_dead"),
    ("jobs", "limits"),
    ("queues", "limits"),
    ("jobs", "usage"),
    ("runs", "usage"),
)


def live(store: Store, home: Path, clock: FakeClock) -> None:
    (home / "workers").mkdir(parents=True, exist_ok=True)
    worker = Hands(store, home)
    store.enqueue([new_job(), new_job(queue="q"), new_job(queue="q", max_retries=1)])
    for outcome, duration in ((OK, 0.2), (OK, 70), (BAD, 1)):
        clock.advance(100)
        worker.run(outcome, duration=duration)
    worker.bell.close()


def check_past(store: Store, clock: FakeClock) -> None:
    """What was counted counts, what was measured is measured, and no point claims to know when that was."""
    run = {queue: (run.count, run.sum) for queue, (run, _) in store.histograms().items()}
    assert run == {"default": (1, 0.2), "q": (1, 70.0)}
    clock.advance(60)
    store.enqueue([new_job()])
    assert store.sample()
    (point,) = store.points(Span.MINUTE, since_ms=0)
    assert (point.counts, point.run.jobs, point.covers_ms) == (Counts(enqueued=1), 0, 60_000)
    assert {queue: (run.count, run.sum) for queue, (run, _) in store.histograms().items()} == run
