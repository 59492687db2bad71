"""The seam to the database: every verb that touches it, with its contract.

A store keeps the promises of docs/reference by itself: callers never ask what they are talking to. Every write is one
transaction and durable when the call returns. Every write about a running job repeats the token of its claim and changes
nothing if the job has passed to somebody else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from queuectl.errors import KeyTaken
from queuectl.job.lifecycle import State
from queuectl.job.model import Claim, Job, NewJob, Run, Worker, to_ms
from queuectl.job.newjob import QueueDefaults
from queuectl.job.settle import Settlement
from queuectl.store.amending import Amendable
from queuectl.store.batches import Batching, BatchReads
from queuectl.store.choosing import After as After
from queuectl.store.choosing import Chosen as Chosen
from queuectl.store.choosing import Filter as Filter
from queuectl.store.choosing import Sort as Sort
from queuectl.store.entry import Enqueued
from queuectl.store.ids import Ids
from queuectl.store.insight import Insight
from queuectl.store.measures import Histogram as Histogram
from queuectl.store.measures import Spread as Spread
from queuectl.store.measures import Throughput as Throughput
from queuectl.store.porting import Exports, Imports
from queuectl.store.pruning import EndedReads, Prunable
from queuectl.store.queues import QueueReads, QueueRules
from queuectl.store.requests import Request, Requests
from queuectl.store.sampling import SampleReads, Samples
from queuectl.store.scheduling import ScheduleReads, Schedules
from queuectl.store.telling import Decides
from queuectl.store.workforce import Bell as Bell
from queuectl.store.workforce import NewWorker as NewWorker
from queuectl.store.workforce import Orders as Orders
from queuectl.store.workforce import StopMode as StopMode
from queuectl.store.workforce import Workforce

OUTPUT_AT_ONCE: Final = 64


class ClaimRequest(NamedTuple):
    limit: int
    queues: tuple[str, ...] | None  # None: all queues in one order; else the first is served first
    host: str
    logs: str  # the directory that will hold the jobs' logs
    shares: tuple[int, ...] | None = None  # how many of each queue go first; the rest is filled in their order


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


class OutputPiece(NamedTuple):
    """What the run of `claim` printed after its first `at` bytes. What ends at or before `keep_from` need not be kept."""

    claim: Claim
    at: int
    data: bytes
    keep_from: int


class Printed(NamedTuple):
    """What a run printed after its first `at` bytes."""

    at: int
    data: bytes


class LatestRun(NamedTuple):
    """The run of a job that was begun last, and the log of the job on the host of that run."""

    id: str
    log: str | None
    run: Run


class Exchange(NamedTuple):
    settled: list[tuple[End, Settlement]]  # as written: a recorded cancel wins over what the worker thought
    lost: list[End]  # not written: the job had passed to somebody else
    claims: list[Claim]
    next_due_ms: (
        int | None
    )  # milliseconds until a waiting job comes due or its queue's rate lets it start, None if none does
    more: bool  # there may be more to claim or to promote right now
    undecided: bool = False  # some jobs have not been told yet what became of their parents: come back at once


class Sign(NamedTuple):
    """Which of all that ever worked under a name is meant: the one that began then, and has given no sign since."""

    started_at: int
    beats: int | None  # None: whatever sign it gave

    @classmethod
    def of(cls, worker: Worker) -> Sign:
        return cls(to_ms(worker.started_at), worker.beats)


class CancelAnswer(NamedTuple):
    """`before` is the state the job was in. If it was processing, the cancel is recorded and `worker` has to end it."""

    before: State
    worker: str | None
    token: str | None


class Revived(dict[str, State]):
    """The state before, of each job that there is. `taken`: who stays as it is since another has its key, and why."""

    taken: Mapping[str, KeyTaken] = MappingProxyType({})


class Span(NamedTuple):
    """Where in a log the output of a run lies."""

    log_from: int | None
    log_to: int | None


class Lost(NamedTuple):
    """A job taken from a dead worker, and what became of it."""

    claim: Claim
    settlement: Settlement


class Reads(Exports, Insight, EndedReads, BatchReads, ScheduleReads, QueueReads, SampleReads, Protocol):
    """Looking only: no method here writes or waits for a lock."""

    def now_ms(self) -> int:
        """What time it is by the clock that all times of this store go by: milliseconds since 1970-01-01 UTC."""
        ...

    def get(self, job_id: str) -> Job:
        """The job with exactly this id, or JobNotFound."""
        ...

    def resolve(self, ref: str) -> str:
        """The full id for an id, a unique beginning of one, or `last`. An exact id wins over longer ones.

        Raises JobNotFound, or AmbiguousId with up to five candidates.
        """
        ...

    def jobs(
        self,
        where: Filter = Filter(),
        *,
        sort: Sort = Sort.CREATED,
        descending: bool = True,
        limit: int | None = None,
        offset: int = 0,
        after: After | None = None,
    ) -> Iterator[Job]:
        """The jobs that match, in bounded memory. Ties and `created` go by the order of enqueue.

        All of them as they are at one moment, however long the reader takes; it may use the store meanwhile. `after`: only
        those behind that place of this order, whoever has come or gone since, at the cost of the first ones.
        """
        ...

    def choose(self, where: Filter) -> list[Chosen]:
        """The jobs that match, in the order of enqueue, as they are at one moment: as much of them as a bulk change needs."""
        ...

    def count(self, where: Filter = Filter()) -> int: ...

    def tally(self) -> dict[str, dict[State, int]]:
        """For each queue that ever had a job, how many it has in each state. Costs the same at any number of jobs."""
        ...

    def totals(self) -> dict[str, dict[str, int]]:
        """For each queue, how often each of these ever happened: enqueued started completed failed dead retried
        rescued. They only grow, whatever is purged."""
        ...

    def oldest_waiting_ms(self) -> dict[str, int]:
        """For each queue with a job that is due now and waits: for how long its oldest has."""
        ...

    def history(self, job_id: str) -> list[Run]:
        """All runs in order, the one under way included."""
        ...

    def latest_runs(self, ids: Sequence[str]) -> list[LatestRun]:
        """Of those of these jobs that are there and have begun to run."""
        ...

    @property
    def is_shared(self) -> bool:
        """Whether workers of several hosts use it: then they bring what their jobs print."""
        ...

    def output(self, job_id: str, run: int, *, start: int = 0) -> list[Printed]:
        """What is kept of what a run printed, from byte `start` on, in order; the first piece may begin before it, and one
        before the end of another. At most OUTPUT_AT_ONCE pieces: fewer mean that there is no more yet."""
        ...

    def durations(self) -> tuple[Spread, Spread]:
        """Run time and waiting time of the completed jobs."""
        ...

    def histograms(self) -> dict[str, tuple[Histogram, Histogram]]:
        """For each queue: run time and waiting time of all jobs ever completed, in the buckets of job/buckets.py. They only
        grow, whatever is removed, and cost the same at any number of jobs. Without those that were written down too late, see
        store/sampling.py."""
        ...

    def throughput(self) -> Throughput:
        """How many jobs were completed in the last minute, hour and day."""
        ...

    def average_attempts(self) -> float | None: ...

    def workers(self, *, busy: bool = True) -> list[Worker]:
        """Everybody that registered and has not left. `busy`: also how many jobs each holds, which takes counting; else 0."""
        ...

    def is_drained(self, queues: tuple[str, ...] | None) -> bool:
        """True when, in those of these queues (None: all) that are not paused, nothing is due, nothing runs anywhere and no
        retry waits, and when everybody has been told what became of their parents. What is held counts for nothing: nobody
        knows when it will be let go."""
        ...

    def config(self) -> dict[str, str]:
        """The stored settings, as they were written."""
        ...

    def changed(self) -> bool:
        """Whether another connection has written since the last call. Cheap enough to ask a hundred times a second.

        Raises StoreGone if the store was removed or replaced: there will never be a change to see. Raises StoreTooNew if a
        newer queuectl has changed its schema: what has begun may be ended, and nothing more may be begun.
        """
        ...

    def backup(self, path: str) -> None:
        """A consistent copy into a new file, while others go on working."""
        ...


class Inbox(Protocol):
    """As much of a store as adding jobs needs."""

    def close(self) -> None: ...

    def config(self) -> dict[str, str]:
        """The stored settings, as they were written."""
        ...

    def queue_defaults(self) -> QueueDefaults:
        """What is said about the jobs of some queues."""
        ...

    def enqueue(
        self, jobs: Sequence[NewJob], *, on_complete: NewJob | None = None, idempotency: Request | None = None
    ) -> Enqueued:
        """Add jobs, all or none, and return their ids in the order given.

        Of all jobs with one unique key at most one waits or runs, at any moment and whoever enqueues at the same time; the
        jobs of a batch come one after the other. What becomes of a job whose key is taken, job/unique.py says: its place
        in the answer has the id of the one that is there, or that one is called off for it. Nothing of it counts as an enqueue
        but what came in. A job that waits for one whose key is taken waits for the one that is there. `on_complete` is queued
        when all of the batch that it names have ended. Raises DuplicateId if an id is taken or given twice, KeyTaken if a key
        is and that is an error, BatchComplete or BatchDiffers, see store/batches.py; for a job that is to wait for others
        ParentNotFound, ParentEnded if one of them can no longer end as is needed, and InvalidInput if they wait for each other.

        With `idempotency`, the same request again within 24 hours adds nothing and gets the same answer, also while the first is under
        way; one that had the same key and was another raises KeyReused.
        """
        ...


class Store(
    Inbox,
    Reads,
    Imports,
    Prunable,
    Batching,
    Schedules,
    QueueRules,
    Workforce,
    Amendable,
    Decides,
    Samples,
    Requests,
    Protocol,
):
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

    def cancel(self, ids: Ids) -> dict[str, CancelAnswer]:
        """Call off those that wait at once; record the wish for those that run; all in one transaction. Other states stay as
        they are. Returns an answer for each job that there is."""
        ...

    def revive(self, ids: Ids, *, states: frozenset[State]) -> Revived:
        """Back to pending, due now, same place in the line, those in one of `states`; all in one transaction. Returns for
        each job that there is the state before.

        A dead or cancelled job starts with no attempts and no crashes again; its runs and history stay. One whose unique
        key another job has taken meanwhile stays as it is, and `taken` says so.
        """
        ...

    def purge(self, ids: Ids) -> dict[str, tuple[State, str | None]]:
        """Remove those that are dead, and their history, in one transaction. Returns for each job that there is the state
        found, unchanged unless it was dead, and the log."""
        ...

    def set_config(self, changes: Mapping[str, str | None]) -> None:
        """Store settings; None removes one. A change of `ageing` ranks anew what waits, in the same transaction."""
        ...

    def reset(self) -> int:
        """Remove all jobs and their history, keep the settings. Returns how many jobs there were."""
        ...
