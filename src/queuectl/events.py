"""What happens in a worker, as typed values handed to a sink: the worker's log, metrics, a live view."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from queuectl.job.model import Claim
from queuectl.job.settle import Settlement


class WorkerStarted(NamedTuple):
    worker: str
    pid: int
    slots: int
    queues: tuple[str, ...] | None


class WorkerStopping(NamedTuple):
    running: int
    now: bool  # ending what runs instead of finishing it
    unwritten: int = 0  # runs that are over, and which the store could not be told of yet


class WorkerRestarting(NamedTuple):
    """In place: the jobs that run go on meanwhile."""

    running: int


class WorkerStopped(NamedTuple):
    jobs_done: int
    unwritten: int = 0  # as above: those jobs run again


class WorkerResized(NamedTuple):
    slots: int


class JobStarted(NamedTuple):
    claim: Claim
    pid: int


class JobEnded(NamedTuple):
    claim: Claim
    settlement: Settlement
    duration: float


class JobLost(NamedTuple):
    """We ran it, but it had passed to somebody else: our result does not count."""

    claim: Claim


class JobAdopted(NamedTuple):
    """Its worker is gone, it runs on, and we look after it."""

    claim: Claim
    worker: str


class JobRescued(NamedTuple):
    claim: Claim
    settlement: Settlement
    worker: str  # the dead one


class DeclaredLost(NamedTuple):
    """We were silent for too long, and others took our jobs."""

    runs: int


class ScheduleFired(NamedTuple):
    """One of its ticks had its job added, or not, for a reason."""

    schedule: str
    job: str | None
    reason: str | None


class AlertTold(NamedTuple):
    """Somebody is to be told that things go wrong, or that it is over."""

    alert: str
    word: str
    text: str


class WakeUpSilent(NamedTuple):
    """Nobody can wake us: we look by ourselves now and then."""

    why: str


class PolicyInForce(NamedTuple):
    """From now on this file says what may run."""

    path: str


class StoreTrouble(NamedTuple):
    problem: str
    is_retried: bool = True


class StoreRecovered(NamedTuple):
    pass


class StoppedProcessKilled(NamedTuple):
    """It was stopped inside a transaction, and kept the database locked for a whole lease."""

    pid: int
    message: str


Event = (
    WorkerStarted
    | WorkerStopping
    | WorkerRestarting
    | WorkerStopped
    | WorkerResized
    | JobStarted
    | JobEnded
    | JobAdopted
    | JobLost
    | JobRescued
    | DeclaredLost
    | ScheduleFired
    | AlertTold
    | WakeUpSilent
    | PolicyInForce
    | StoreTrouble
    | StoreRecovered
    | StoppedProcessKilled
)

Sink = Callable[[Event], None]
