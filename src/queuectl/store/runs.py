"""The seam to the database, as far as it is about runs: who is given a job, what it printed, how it ended, who looks after it.

Every write about a running job repeats the token of its claim and changes nothing if the job has passed to somebody else.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol

from queuectl.job.audit import Actor
from queuectl.job.model import Claim, Worker, to_ms
from queuectl.job.resources import Usage
from queuectl.job.settle import Settlement


class ClaimRequest(NamedTuple):
    limit: int
    queues: tuple[str, ...] | None  # None: all queues in one order; else the first is served first
    host: str
    logs: str  # the directory that will hold the jobs' logs
    shares: tuple[int, ...] | None = None  # how many of each queue go first; the rest is filled in their order
    calls: int = 0  # so many jobs that tell of ends, beside the limit; among those of all queues there are none


class Start(NamedTuple):
    """A process was made for `claim`, `age` seconds ago; its output begins at `log_from`."""

    claim: Claim
    pid: int
    age: float
    log_from: int


class End(NamedTuple):
    """The run of `claim` is over. It began `age` seconds ago and took `duration` seconds, by the monotonic clock."""

    claim: Claim
    settlement: Settlement
    pid: int | None
    age: float
    duration: float
    log_from: int | None
    log_to: int | None
    usage: Usage | None = None  # what the process has used; None: nobody knows
    by: Actor | None = None  # whose worker it was: recorded if its policy was against the job, which no history tells


class OutputPiece(NamedTuple):
    """What the run of `claim` printed after its first `at` bytes. What ends at or before `keep_from` need not be kept."""

    claim: Claim
    at: int
    data: bytes
    keep_from: int


class Exchange(NamedTuple):
    settled: list[tuple[End, Settlement]]  # as written: a recorded cancel wins over what the worker thought
    lost: list[End]  # not written: the job had passed to somebody else
    claims: list[Claim]
    next_due_ms: (
        int | None
    )  # milliseconds until a waiting job comes due or its queue's rate lets it start, None if none does
    more: bool  # there may be more to claim or to promote right now
    more_calls: bool = False  # the same of jobs that tell of ends
    undecided: bool = False  # some jobs have not been told yet what became of their parents: come back at once


class Sign(NamedTuple):
    """Which of all that ever worked under a name is meant: the one that began then, and has given no sign since."""

    started_at: int
    beats: int | None  # None: whatever sign it gave

    @classmethod
    def of(cls, worker: Worker) -> Sign:
        return cls(to_ms(worker.started_at), worker.beats)


class Span(NamedTuple):
    """Where in a log the output of a run lies."""

    log_from: int | None
    log_to: int | None


class Lost(NamedTuple):
    """A job taken from a dead worker, and what became of it."""

    claim: Claim
    settlement: Settlement


class Runs(Protocol):
    def exchange(
        self,
        worker: str,
        *,
        starts: Sequence[Start] = (),
        outputs: Sequence[OutputPiece] = (),
        ends: Sequence[End] = (),
        claim: ClaimRequest | None = None,
    ) -> Exchange:
        """Record starts, keep what was printed, settle what ended, let in what came due and claim what is next, in one transaction.

        Eligible to be claimed: pending or failed, due, not held, of a queue that is not paused and not at one of its limits,
        which hold over all workers: two callers never use the same place of them. Order: rank, then first in, first out. Two callers never
        receive the same job. Each claim starts a new run and carries a new token. A worker that the store does not know
        (any more) is given nothing: nobody would ever rescue its jobs.
        Output and starts are those of runs under way, and of those that end with this. Of a run whose token is no longer
        the job's, they change nothing.
        An end whose token is no longer the job's changes nothing and comes back in `lost`.
        A cancel that was recorded before the end wins: the job is cancelled, uncharged.
        Jobs that wait for what has ended are told so, some at a time, as by `decide`.
        """
        ...

    def fence(self, worker: str, *, sign: Sign | None = None) -> list[Claim] | None:
        """From now on nothing counts that this worker writes, until it registers anew. Returns what it holds.

        The first step of a rescue: a worker that was only silent may wake up while what it had running is being ended.
        With `sign`, changes nothing and returns None if it has given another one meanwhile, or somebody else has its name:
        whoever took it for lost may have been stopped since.
        """
        ...

    def adopt(self, worker: str, tokens: Collection[str], *, by: str) -> list[str]:
        """The runs of these tokens pass from a worker that was fenced to another, which looks after them from now on, and
        keep their tokens. Returns those that did: none if the store does not know the other (any more)."""
        ...

    def rescue(
        self,
        worker: str,
        *,
        max_crashes: int,
        spans: Mapping[str, Span] = MappingProxyType({}),
        only: Collection[str] | None = None,
        unbegun: Collection[str] = (),
    ) -> list[Lost]:
        """Take the jobs from a worker that is gone, and forget the worker. With `only`, those of these tokens: the worker
        may have begun anew since it was fenced, and then keeps what it has claimed since, and its name.

        `spans` tells, by token, where in the logs the output of the lost runs lies. `unbegun`: tokens of those of which it is known
        that no process was made: they are not charged.

        Whoever calls has made sure that the worker is gone and that nothing of these jobs runs any more.
        """
        ...

    def running(self, worker: str) -> list[Claim]:
        """The claims that this worker holds."""
        ...
