"""Batches: how far they are, and waiting for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from queuectl.clock import Clock
from queuectl.errors import WaitTimeout
from queuectl.job.lifecycle import WAITING, State
from queuectl.job.model import Job, from_ms, iso
from queuectl.queue.patience import patient
from queuectl.queue.wait import POLL, REST
from queuectl.store.batches import LATELY_MS, Batch
from queuectl.store.protocol import Filter, Reads

_UNLUCKY: Final = frozenset({State.DEAD, State.CANCELLED})
SHORTEST_MS: Final = 1000  # a rate of less time than this says nothing


class Progress(NamedTuple):
    """How far a batch is. What was removed from the store since has ended, nobody knows how."""

    batch: Batch
    now_ms: int

    @property
    def done(self) -> int:
        return self.batch.states[State.COMPLETED] + self.removed

    @property
    def failed(self) -> int:
        return sum(self.batch.states[state] for state in _UNLUCKY)

    @property
    def running(self) -> int:
        return self.batch.states[State.PROCESSING]

    @property
    def waiting(self) -> int:
        return sum(self.batch.states[state] for state in WAITING)

    @property
    def removed(self) -> int:
        return max(0, self.batch.added - sum(self.batch.states.values()))

    @property
    def rate(self) -> float | None:
        """Jobs completed a second, lately; None if none was, or it has only begun."""
        span = min(LATELY_MS, self.now_ms - self.batch.created_at)
        return self.batch.lately / span * 1000 if self.batch.lately and span >= SHORTEST_MS else None

    @property
    def left_ms(self) -> int | None:
        """The time that is left at this rate; None if there is none."""
        return None if self.rate is None else round(self.batch.open / self.rate * 1000)

    def to_dict(self) -> dict[str, Any]:
        batch = self.batch
        return {
            "name": batch.name,
            "jobs": batch.added,
            "done": self.done,
            "failed": self.failed,
            "running": self.running,
            "waiting": self.waiting,
            "removed": self.removed,
            "states": {state.value: jobs for state, jobs in batch.states.items()},
            "rate": self.rate,
            "left_ms": self.left_ms,
            "created_at": iso(from_ms(batch.created_at)),
            "completed_at": None if batch.completed_at is None else iso(from_ms(batch.completed_at)),
            "on_complete": batch.on_complete,
            "on_complete_job": batch.on_complete_job,
        }


def progress(store: Reads, name: str) -> Progress:
    return Progress(store.batch(name), store.now_ms())


def all_progress(store: Reads) -> list[Progress]:
    now_ms = store.now_ms()
    return [Progress(batch, now_ms) for batch in store.batches()]


def wait(
    store: Reads, clock: Clock, name: str, *, timeout: float | None, watch: Callable[[Progress], None] = lambda _: None
) -> Progress:
    """Until no job of the batch waits or runs. Raises BatchNotFound, WaitTimeout."""
    deadline = None if timeout is None else clock.monotonic() + timeout
    store = patient(store, clock, until=deadline)
    store.changed()
    while True:
        began = clock.monotonic()
        found = progress(store, name)
        watch(found)
        if not found.batch.open:
            return found
        # A look costs what the batch is long: whoever waits must not keep busy those who work.
        pause = max(POLL, REST * (clock.monotonic() - began))
        while True:
            left = pause if deadline is None else min(pause, deadline - clock.monotonic())
            if left <= 0:
                raise WaitTimeout([f"{found.batch.open:,} jobs of {name}"], timeout or 0)
            clock.sleep(left)
            if store.changed():
                break


def first_unlucky(store: Reads, name: str) -> list[Job]:
    """The first job of the batch that did not complete, if there is one."""
    where = Filter(states=_UNLUCKY, batches=frozenset({name}))
    return list(store.jobs(where, descending=False, limit=1))
