"""Values that go into a store and come out of it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from queuectl.jobs.states import FINAL, State
from queuectl.text import WEBHOOK_QUEUE

if TYPE_CHECKING:
    from queuectl.errors import KeyTaken, QueuectlError
    from queuectl.jobs.audit import Actor
    from queuectl.jobs.dependencies import DependencyState, Need, Otherwise
    from queuectl.jobs.model import Claim, Job, Run, Worker
    from queuectl.jobs.outcome import Settlement
    from queuectl.jobs.resources import Usage
    from queuectl.jobs.spec import NewJob

Row = tuple[Any, ...]

# Not Sequence[str]: a single ID would be one too, and each of its letters would be taken for an ID.
Ids: TypeAlias = list[str] | tuple[str, ...]

OUTPUT_AT_ONCE: Final = 64  # pieces that one call of `output` returns
RECENT_MS: Final = 60_000  # the time that the rate of a batch is computed from

# ── selecting jobs ──────────────────────────────────────────────────────────────────────────────────────────────────


class Filter(NamedTuple):
    """Jobs that meet all conditions. Texts match in any case of the letters A to Z.

    For a new condition, also extend reads.py, operations/query.py, jobs/search.py, cli/filters.py and SELECTORS of web/api/operation.py.
    """

    states: frozenset[State] = frozenset()  # empty: all
    queues: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()  # all of them
    ids: tuple[str, ...] = ()
    since_ms: int | None = None  # enqueued then or later
    match: tuple[str, ...] = ()  # all of these texts are in the command, or in the arguments joined by spaces
    batches: frozenset[str] = frozenset()
    fingerprints: frozenset[str] = frozenset()  # kinds of failure, see jobs/fingerprint.py
    errors: frozenset[str] = frozenset()  # one of these texts is in the error, or in the last line of output
    workers: frozenset[str] = frozenset()  # of the latest run
    prefixes: tuple[str, ...] = ()  # the ID begins with one of these
    includes_webhooks: bool = True
    unless: Filter | None = None  # without the jobs that meet any of these conditions

    @property
    def names_states_only(self) -> bool:
        """Whether the states are the only condition."""
        return self == Filter(self.states, includes_webhooks=self.includes_webhooks)

    @property
    def is_tallied(self) -> bool:
        """Whether the counters by queue and state answer it."""
        return self == Filter(self.states, self.queues, includes_webhooks=self.includes_webhooks)

    @property
    def is_scan(self) -> bool:
        """Whether no index leads to the jobs: they are found by reading all jobs of their states."""
        if self.ids or self.prefixes or self.tags or self.batches:
            return False
        if self.fingerprints and self.states == {State.DEAD}:
            return False
        return self._replace(states=frozenset(), includes_webhooks=True) != Filter()

    @property
    def has_text(self) -> bool:
        """Whether texts are searched."""
        return bool(self.match or self.errors or (self.unless is not None and self.unless.has_text))

    def has_queue(self, queue: str) -> bool:
        return queue in self.queues if self.queues else self.includes_webhooks or queue != WEBHOOK_QUEUE


class Sort(StrEnum):
    CREATED = "created"
    PRIORITY = "priority"
    STATE = "state"
    QUEUE = "queue"
    RUN_AT = "run_at"
    FINISHED = "finished"
    DURATION = "duration"


class After(NamedTuple):
    """A position in a list, such as the start of a page: after the job with this sort value and sequence number."""

    value: int | str | None
    seq: int


class Chosen(NamedTuple):
    """A job that a bulk change is about, as it was when it was selected."""

    id: str
    state: State
    held: bool


# ── enqueue and change jobs ─────────────────────────────────────────────────────────────────────────────────────────


class Enqueued(list[str]):
    """The IDs, in the order given. `duplicates`: the indexes of jobs that existed already, see jobs/unique.py."""

    duplicates: frozenset[int] = frozenset()


# An idempotency key, and a digest of the request it belongs to.
Request = tuple[str, str]


class CancelAnswer(NamedTuple):
    """`before`: the state the job was in. If that is processing, the cancel is recorded, and `worker` has to stop the run."""

    before: State
    worker: str | None
    token: str | None


class Retried(dict[str, State]):
    """The state before, of each job that exists. `taken`: jobs that were not retried because another job has their unique key."""

    taken: Mapping[str, KeyTaken] = MappingProxyType({})


class Edited(NamedTuple):
    """`before`: the state of the job, which an edit does not change. `is_stale`: the job was changed since it was read."""

    before: State
    is_stale: bool


# ── claims and runs ─────────────────────────────────────────────────────────────────────────────────────────────────


class ClaimRequest(NamedTuple):
    limit: int
    queues: tuple[str, ...] | None  # None: all queues in one order; else the first is served first
    host: str
    logs: str  # the directory for the logs of the jobs
    shares: tuple[int, ...] | None = None  # jobs of each queue that go first; the rest is filled in their order
    webhooks: int = 0  # webhook deliveries to claim in addition to `limit`


class Start(NamedTuple):
    """A process was started for `claim`, `age` seconds ago. Its output begins at offset `log_from`, None before there is any: told again when
    there is some."""

    claim: Claim
    pid: int
    age: float
    log_from: int | None = None


class End(NamedTuple):
    """The run of `claim` has ended. It began `age` seconds ago and took `duration` seconds, by the monotonic clock."""

    claim: Claim
    settlement: Settlement
    pid: int | None
    age: float
    duration: float
    log_from: int | None
    log_to: int | None
    usage: Usage | None = None  # None: not measured
    last_output: str | None = None
    by: Actor | None = None  # the user of the worker, for the audit entry if its policy refused the job


class OutputPiece(NamedTuple):
    """Output of the run of `claim` from byte `at` on. Pieces that end at or before `keep_from` are no longer needed."""

    claim: Claim
    at: int
    data: bytes
    keep_from: int


class Exchange(NamedTuple):
    settled: list[tuple[End, Settlement]]  # as written: a recorded cancel wins over the settlement of the worker
    lost: list[End]  # not written: the job belongs to another worker now
    claims: list[Claim]
    next_due_ms: (
        int | None
    )  # until a waiting job comes due or a rate limit lets one start; None: no job waits for a time
    more: bool  # there may be more to claim or to promote right now
    more_webhooks: bool = False  # the same for webhook deliveries
    undecided: bool = False  # some dependencies are not resolved yet: call again at once


class LastHeartbeat(NamedTuple):
    """Identifies one process among all that ever used a worker name, as of its last heartbeat."""

    started_at: int
    beats: int | None  # None: any

    @classmethod
    def of(cls, worker: Worker) -> LastHeartbeat:
        from queuectl.units import to_ms

        return cls(to_ms(worker.started_at), worker.beats)


class Span(NamedTuple):
    """The output of a run in a log, as offsets, and its last line."""

    log_from: int | None
    log_to: int | None
    last_output: str | None = None


class Rescued(NamedTuple):
    """A run of a dead worker, and how it was settled."""

    claim: Claim
    settlement: Settlement


class LatestRun(NamedTuple):
    """The latest run of a job, and the log of the job on the host of that run."""

    id: str
    log: str | None
    run: Run


class Printed(NamedTuple):
    """Stored output of a run, from byte `at` on."""

    at: int
    data: bytes


# ── workers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class StopMode(StrEnum):
    FINISH = "finish"  # claim no more jobs, wait for the running ones
    NOW = "now"  # terminate running jobs and requeue them
    RESTART = "restart"  # keep jobs running; restart in the same process, which then adopts them


class NewWorker(NamedTuple):
    id: str
    host: str
    pid: int
    home: str
    slots: int
    queues: tuple[str, ...] | None
    machine: str = ""  # the ID of the machine, whatever its name is
    lock: str = ""  # the content of its lock file


class Orders(NamedTuple):
    """Requests to a worker."""

    known: bool  # False: the worker is not registered (any more); it was declared lost
    stop: StopMode | None
    cancels: list[str]  # tokens of its claims that a user cancelled


# ── batches and schedules ───────────────────────────────────────────────────────────────────────────────────────────


class Batch(NamedTuple):
    name: str
    added: int  # jobs that were ever added, also those that were removed since
    created_at: int
    completed_at: int | None  # when the completion job was enqueued; None also if there is none
    on_complete: str | None  # the command
    on_complete_job: str | None  # the ID of the completion job
    states: Mapping[State, int]
    recent: int  # jobs that ended within RECENT_MS
    ended_at: int | None = None  # when the latest job ended; None: while some have not, or if it takes long to find out

    @property
    def open(self) -> int:
        """How many have not ended."""
        return sum(jobs for state, jobs in self.states.items() if state not in FINAL)


class CompletedBatch(NamedTuple):
    batch: str
    job_id: str


class CompletionJob(NamedTuple):
    """The job that runs when all jobs of a batch have ended."""

    job: NewJob
    is_queued: bool


class ScheduleCheck(NamedTuple):
    """The milliseconds until a schedule has to be evaluated again; 0 if it is due."""

    name: str
    in_ms: int


# ── pruning, export and diagnostics ─────────────────────────────────────────────────────────────────────────────────


class Ended(NamedTuple):
    """A job that has ended. `rows`: the cost of removing it, in rows and half pages of text."""

    id: str
    log: str | None
    host: str | None  # where it last ran
    rows: int


class Exported(NamedTuple):
    job: Job
    history: list[Run]  # in order; empty if not requested


class Caution(NamedTuple):
    """A setting of the server that weakens a guarantee."""

    code: str
    message: str
    hint: str


class Health(NamedTuple):
    """The result of an integrity check."""

    engine: str  # with its version
    schema: int  # the version in the database
    known: int  # the version of this queuectl
    problems: tuple[str, ...]
    hindrances: tuple[QueuectlError, ...] = ()  # reasons why an intact database cannot be used
    cautions: tuple[Caution, ...] = ()


class Link(NamedTuple):
    """A dependency between two jobs."""

    parent: str
    parent_state: State
    child: str
    child_state: State
    when: Need
    otherwise: Otherwise
    state: DependencyState

    @classmethod
    def of(cls, row: Row) -> Link:
        from queuectl.jobs.dependencies import DependencyState, Need, Otherwise

        parent, parent_state, child, child_state, when, otherwise, state = row
        ends = (parent, State(parent_state), child, State(child_state))
        return cls(*ends, Need(when), Otherwise(otherwise), DependencyState(state))


class Failure(NamedTuple):
    """Dead jobs that failed in the same way: see jobs/fingerprint.py."""

    fingerprint: str
    error: str  # of the newest
    last_output: str | None  # of the newest
    queue: str | None  # None: several queues
    jobs: int
    newest: str  # the ID of the job that died last
    at_ms: int  # when that was
