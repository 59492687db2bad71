"""Queues whose jobs cannot be claimed, because of every kind of limit, in front of one queue without limits."""

from __future__ import annotations

import time
from typing import Any

from _million import AT_ONCE, new_job

from queuectl.jobs.dependencies import Dependency
from queuectl.jobs.outcome import Exited, settle
from queuectl.jobs.queue_limits import Rate
from queuectl.jobs.retry import RetryPolicy
from queuectl.jobs.spec import NewJob
from queuectl.operations.enqueue import gc_paused
from queuectl.store.store import Store
from queuectl.store.types import ClaimRequest, End, NewWorker

SLOTS = 8
OPEN, PARENT = "default", "parent"
DAY_MS = 24 * 60 * 60 * 1000
RULES = {
    "full": {"concurrency": 1},
    "keyed": {"per_key": 1},
    "rated": {"rate": Rate(1, DAY_MS)},
    "paused": {"paused": True},
}


class Worker:
    """A worker without processes: claimed jobs end at once. The number of waiting jobs stays the same."""

    def __init__(self, store: Store, home: str, *, name: str = "w") -> None:
        self.store = store
        self._name = name
        self._home = home
        store.claims.register(NewWorker(name, "host", 1, home, SLOTS, None)).close()

    def begin(self, queue: str) -> None:
        """Claim the first job of a queue, and never settle it."""
        request = ClaimRequest(1, (queue,), "host", self._home)
        (_,) = self.store.claims.exchange(self._name, claim=request).claims

    def claim(self) -> float:
        began = time.perf_counter()
        claims = self.store.claims.exchange(self._name, claim=ClaimRequest(SLOTS, None, "host", self._home)).claims
        seconds = time.perf_counter() - began
        assert len(claims) == SLOTS
        policy = RetryPolicy(1000, 0)
        self.store.claims.exchange(
            self._name,
            ends=[
                End(claim, settle(claim, Exited(0), policy=policy, chance=0.5), 1, 0.0, 0.0, 0, 0) for claim in claims
            ],
        )
        queues = [claim.queue for claim in claims]
        self.store.enqueue([new_job(number)._replace(queue=queue) for number, queue in enumerate(queues)])
        return seconds

    def enqueue(self) -> float:
        began = time.perf_counter()
        self.store.enqueue([new_job(0)])
        return time.perf_counter() - began


def crowded(store: Store, home: str, jobs: int) -> Worker:
    """Fill a store with `count` waiting jobs for each of: a full queue, a full concurrency key, an exhausted rate, a full array,
    a paused queue and a parent; and with as many jobs in an open queue behind all of them."""
    worker = Worker(store, home)
    for queue, rules in RULES.items():
        store.queues.set_rules(queue, rules)
    lines = {
        "full": _of("full"),
        "keyed": _of("keyed", key="customer-7"),
        "rated": _of("rated"),
        "array": _of("array", key="array:1", places=1),
        "paused": _of("paused"),
        "blocked": _of("blocked", depends_on=(Dependency(PARENT),)),
        OPEN: _of(OPEN, priority=0),
    }
    for queue in ("full", "keyed", "rated", "array"):
        store.enqueue([lines[queue]])
        worker.begin(queue)
    store.enqueue([_of("paused", id=PARENT)])
    with gc_paused():
        for job in lines.values():
            for first in range(0, each := jobs // len(lines), AT_ONCE):
                store.enqueue([job] * min(AT_ONCE, each - first))
    return worker


def _of(queue: str, *, priority: int = 9, **fields: Any) -> NewJob:
    return new_job(0)._replace(queue=queue, priority=priority, **fields)
