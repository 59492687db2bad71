"""The progress of batches, and waiting for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from queuectl.clock import Clock
from queuectl.errors import WaitTimeout
from queuectl.jobs.model import Job
from queuectl.jobs.states import WAITING, State
from queuectl.operations.wait import IDLE_FACTOR, POLL_SECONDS, retrying_reads
from queuectl.store.reads import Reads
from queuectl.store.types import RECENT_MS, Batch, Filter
from queuectl.units import from_ms, iso

_NOT_COMPLETED: Final = frozenset({State.DEAD, State.CANCELLED})
MIN_RATE_MS: Final = 1000  # a rate over less time is not meaningful


class Progress(NamedTuple):
    """The progress of a batch. Removed jobs have ended, in an unknown state."""

    batch: Batch
    now_ms: int

    @property
    def done(self) -> int:
        return self.batch.states[State.COMPLETED] + self.removed

    @property
    def failed(self) -> int:
        return sum(self.batch.states[state] for state in _NOT_COMPLETED)

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
        """Recently completed jobs per second; None if there are none, or the batch has just started."""
        span = min(RECENT_MS, self.now_ms - self.batch.created_at)
        return self.batch.recent / span * 1000 if self.batch.recent and span >= MIN_RATE_MS else None

    @property
    def left_ms(self) -> int | None:
        """The estimated remaining time; None without a rate."""
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
    return Progress(store.batches.get(name), store.now_ms())


def all_progress(store: Reads) -> list[Progress]:
    now_ms = store.now_ms()
    return [Progress(batch, now_ms) for batch in store.batches.all()]


def wait(
    store: Reads, clock: Clock, name: str, *, timeout: float | None, watch: Callable[[Progress], None] = lambda _: None
) -> Progress:
    """Wait until no job of the batch waits or runs. Raises BatchNotFound or WaitTimeout."""
    deadline = None if timeout is None else clock.monotonic() + timeout
    store = retrying_reads(store, clock, until=deadline)
    store.changed()
    while True:
        began = clock.monotonic()
        found = progress(store, name)
        watch(found)
        if not found.batch.open:
            return found
        # A poll costs time in proportion to the batch: waiting must not slow down the workers.
        pause = max(POLL_SECONDS, IDLE_FACTOR * (clock.monotonic() - began))
        while True:
            left = pause if deadline is None else min(pause, deadline - clock.monotonic())
            if left <= 0:
                raise WaitTimeout([f"{found.batch.open:,} jobs of {name}"], timeout or 0)
            clock.sleep(left)
            if store.changed():
                break


def first_not_completed(store: Reads, name: str) -> list[Job]:
    """The first dead or cancelled job of the batch, if there is one."""
    where = Filter(states=_NOT_COMPLETED, batches=frozenset({name}))
    return list(store.jobs(where, descending=False, limit=1))
