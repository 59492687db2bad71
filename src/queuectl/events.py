"""The events of a worker, as typed values for a sink such as the worker's log."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from queuectl.jobs.model import Claim
from queuectl.jobs.outcome import Settlement


class WorkerStarted(NamedTuple):
    worker: str
    pid: int
    slots: int
    queues: tuple[str, ...] | None


class WorkerStopping(NamedTuple):
    running: int
    now: bool  # terminate running jobs instead of waiting for them
    unwritten: int = 0  # ended runs that are not recorded yet


class WorkerRestarting(NamedTuple):
    """In place: running jobs continue."""

    running: int


class WorkerStopped(NamedTuple):
    jobs_done: int
    unwritten: int = 0  # as above: these jobs run again


class WorkerResized(NamedTuple):
    slots: int


class JobStarted(NamedTuple):
    claim: Claim
    pid: int


class JobEnded(NamedTuple):
    claim: Claim
    settlement: Settlement
    duration: float
    last_output: str | None = None


class JobLost(NamedTuple):
    """Another worker owns the job now: the result of this run is discarded."""

    claim: Claim


class JobAdopted(NamedTuple):
    """The worker of the job died, its process runs on, and this worker adopted it."""

    claim: Claim
    worker: str


class JobRescued(NamedTuple):
    claim: Claim
    settlement: Settlement
    worker: str  # the dead one


class DeclaredLost(NamedTuple):
    """The lease of this worker expired, and other workers rescued its jobs."""

    runs: int


class ScheduleFired(NamedTuple):
    """A run of a schedule was due: its job was added, or not, for a reason."""

    schedule: str
    job: str | None
    reason: str | None


class AlertTold(NamedTuple):
    """An alert fires or is resolved."""

    alert: str
    word: str
    text: str


class WakeUpSilent(NamedTuple):
    """There is no wake-up channel: the worker polls."""

    why: str


class PolicyInForce(NamedTuple):
    """This policy file is in force from now on."""

    path: str


class StoreTrouble(NamedTuple):
    problem: str
    is_retried: bool = True


class StoreRecovered(NamedTuple):
    pass


class StoppedProcessKilled(NamedTuple):
    """A process was stopped inside a transaction and kept the database locked for a whole lease."""

    pid: int
    message: str


class SupervisorLost(NamedTuple):
    """The supervisor of this worker is dead. Its running jobs are terminated and requeued."""

    problem: str
    runs: int


class SupervisorRestarted(NamedTuple):
    pass


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
    | SupervisorLost
    | SupervisorRestarted
)

Sink = Callable[[Event], None]
