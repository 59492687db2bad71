"""Stores with a million jobs."""

from __future__ import annotations

from pathlib import Path

import _bench  # noqa: F401 - finds this checkout's queuectl

from queuectl.jobs.spec import NewJob
from queuectl.operations.enqueue import gc_paused
from queuectl.store.open import open_store
from queuectl.store.store import Store

AT_ONCE = 100_000
QUEUES = ("default", "mail", "thumbnails")


def new_job(number: int) -> NewJob:
    return NewJob(
        command=f"convert image-{number}.png thumb-{number}.png",
        argv=None,
        id=None,
        queue=QUEUES[number % len(QUEUES)],
        priority=number % 10,
        max_retries=3,
        first_is_free=False,
        backoff_base=2.0,
        timeout_ms=None,
        run_at_ms=None,
        delay_ms=None,
        cwd="/srv",
        env=None,
        tags=(),
    )


def filled(home: Path, jobs: int) -> Store:
    """Fill a store with waiting jobs."""
    store = open_store(str(home))
    fill(store, jobs)
    return store


def fill(store: Store, jobs: int) -> None:
    with gc_paused():
        for first in range(0, jobs, AT_ONCE):
            store.enqueue([new_job(number) for number in range(first, min(first + AT_ONCE, jobs))])
