"""The store interface: every operation on the database, with its contract.

One protocol for each part of a store; `Store` has them all. Every write is one transaction and durable when the call returns. Both
dialects pass the same conformance suite (tests/store).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol

from queuectl.jobs.states import WAITING, State
from queuectl.store.types import After, Filter, Sort, Span

if TYPE_CHECKING:
    from queuectl.alerts.rules import Alert
    from queuectl.cron.schedule import PastRun, Schedule, ScheduleChange, ScheduleView
    from queuectl.jobs.audit import Act, Actor, Entry
    from queuectl.jobs.edit import JobEdit
    from queuectl.jobs.model import Claim, Job, Run, Worker
    from queuectl.jobs.queue_limits import QueueLoad, QueueSettings
    from queuectl.jobs.spec import NewJob, QueueDefaults
    from queuectl.jobs.stats import Point, Spread, Throughput, TimeBuckets
    from queuectl.jobs.stats import Span as SampleSpan
    from queuectl.store.transfer import Dump, Importer, Load
    from queuectl.store.types import (
        Batch,
        CancelAnswer,
        Chosen,
        ClaimRequest,
        CompletedBatch,
        CompletionJob,
        Deaths,
        Edited,
        End,
        Ended,
        Enqueued,
        Exchange,
        Exported,
        Health,
        Ids,
        LastHeartbeat,
        LatestRun,
        Link,
        NewWorker,
        Orders,
        OutputPiece,
        Printed,
        Request,
        Rescued,
        Retried,
        ScheduleCheck,
        Start,
        StopMode,
    )

    Rule = Callable[[ScheduleView], ScheduleChange | None]

MAX_DEAD_GROUPED: Final = 20_000  # dead jobs that `dead_by_error` reads: some 50 ms
FORGET_AT_ONCE: Final = 1000  # rows in one transaction: SQLite has one writer at a time


class Settings(Protocol):
    def config(self) -> dict[str, str]:
        """The stored settings, as text."""
        ...

    def queue_defaults(self) -> QueueDefaults:
        """The defaults that queues have for their jobs."""
        ...


class Enqueuer(Settings, Protocol):
    """The part of a store that `enqueue` needs."""

    actor: Actor | None  # the user that audit entries name; None: no entries are written

    def close(self) -> None: ...

    def enqueue(
        self, jobs: Sequence[NewJob], *, on_complete: NewJob | None = None, idempotency: Request | None = None
    ) -> Enqueued:
        """Add jobs, all or none, and return their IDs in the order given.

        At most one job with a unique key waits or runs at any time, also with concurrent callers; the jobs of one call are
        handled one after the other. If the key of a job is taken, jobs/unique.py decides: the result has the ID of the
        existing job, or that job is cancelled. Skipped jobs do not count as enqueued. A dependency on a skipped job is one on
        the existing job. `on_complete` is enqueued when all jobs of its batch have ended.

        Raises DuplicateId if an ID is taken or given twice, KeyTaken if a key is and that is an error, BatchComplete,
        BatchDiffers, and for dependencies ParentNotFound, ParentEnded (the parent can no longer end as required) or
        InvalidInput (a cycle).

        With `idempotency`, the same request within 24 hours adds nothing and gets the same answer, also while the first one is
        in progress. Another request with the same key raises KeyReused.
        """
        ...


class Reads(Settings, Protocol):
    """Queries. No method here writes or waits for a lock."""

    @property
    def shown(self) -> str:
        """The address, without secrets."""
        ...

    @property
    def is_shared(self) -> bool:
        """Whether workers on several hosts use the database. Then they store the output of their jobs in it."""
        ...

    def now_ms(self) -> int:
        """The time of the clock that all times in this store are by: milliseconds since 1970-01-01 UTC."""
        ...

    def get(self, job_id: str) -> Job:
        """The job with exactly this ID. Raises JobNotFound."""
        ...

    def resolve(self, ref: str) -> str:
        """The full ID for an ID, a unique prefix of one, or `last`. An exact ID wins over longer ones.

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
        """The jobs that match, in bounded memory. Ties and `created` are ordered by enqueue.

        The selection and its order are of one moment. A long list is read page by page without a transaction in between: each job
        is as it is when its page is read, and jobs that were removed or no longer match by then are omitted. The caller may
        pause for any time, and may use the store. `after`: only jobs after that position.
        """
        ...

    def choose(self, where: Filter) -> list[Chosen]:
        """The jobs that match, in the order of enqueue, as of one moment, with the fields that a bulk change needs."""
        ...

    def count(self, where: Filter = Filter()) -> int: ...

    def tally(self) -> dict[str, dict[State, int]]:
        """Jobs by queue and state, for each queue that ever had a job. The cost does not depend on the number of jobs."""
        ...

    def totals(self) -> dict[str, dict[str, int]]:
        """For each queue, how often each of these ever happened: enqueued, started, completed, failed, dead, retried, rescued.
        They never decrease."""
        ...

    def oldest_waiting_ms(self) -> dict[str, int]:
        """For each queue with a job that is due: how long the oldest one has waited."""
        ...

    def history(self, job_id: str) -> list[Run]:
        """All runs in order, including the current one."""
        ...

    def latest_runs(self, ids: Sequence[str]) -> list[LatestRun]:
        """For those of these jobs that exist and have run."""
        ...

    def running(self, worker: str) -> list[Claim]:
        """The claims that this worker holds."""
        ...

    def output(self, job_id: str, run: int, *, start: int = 0) -> list[Printed]:
        """The stored output of a run, from byte `start` on, in order. The first piece may begin before that, and pieces may
        overlap. At most OUTPUT_AT_ONCE pieces: fewer mean that there is no more yet."""
        ...

    def durations(self) -> tuple[Spread, Spread]:
        """Run time and waiting time of the completed jobs."""
        ...

    def histograms(self) -> dict[str, tuple[TimeBuckets, TimeBuckets]]:
        """For each queue: run time and waiting time of all jobs ever completed, in the buckets of jobs/stats.py. They never
        decrease, and cost the same at any number of jobs. Runs that were settled too late are missing, see LATE_MS."""
        ...

    def throughput(self) -> Throughput:
        """Jobs completed in the last minute, hour and day."""
        ...

    def average_attempts(self) -> float | None: ...

    def points(self, span: SampleSpan, *, since_ms: int, queue: str = "") -> list[Point]:
        """Samples of a queue (ALL: of all but webhook deliveries; OTHERS: of those beyond the busiest) for each minute or hour since
        then, oldest first. A time without a worker has none; the next sample says how long a time it covers."""
        ...

    def workers(self, *, busy: bool = True) -> list[Worker]:
        """The registered workers. `busy`: also count the jobs that each holds; else 0."""
        ...

    def is_drained(self, queues: tuple[str, ...] | None) -> bool:
        """Whether, in those of these queues (None: all) that are not paused, no job is due, runs or waits for a retry, and all
        dependencies are resolved. Held jobs do not count."""
        ...

    def changed(self) -> bool:
        """Whether another connection has written since the last call. Cheap enough for a hundred calls a second.

        Raises StoreGone if the database was removed or replaced. Raises StoreTooNew if a newer queuectl has migrated the
        schema: started runs may be settled, but no new ones started.
        """
        ...

    def backup(self, path: str) -> None:
        """Write a consistent copy into a new file, while others continue to work."""
        ...

    def dead_by_error(self, *, limit: int, most: int = MAX_DEAD_GROUPED) -> list[Deaths]:
        """Dead jobs by error, the most frequent first, among the `most` that died last."""
        ...

    def parents(self, ids: Sequence[str], *, limit: int) -> list[Link]:
        """The dependencies of these jobs, as far as the parents still exist; in the order of enqueue."""
        ...

    def children(self, ids: Sequence[str], *, limit: int) -> list[Link]:
        """The jobs that depend on these; in the order of enqueue."""
        ...

    def ahead(self, job_id: str, *, queues: tuple[str, ...] | None, most: int) -> int:
        """How many due jobs a worker of these queues (the first is served first; None: all, in one order) would claim before this
        one. Counts up to `most`, so that the cost does not depend on the number of jobs. Raises JobNotFound."""
        ...

    def is_cancel_requested(self, job_id: str) -> bool:
        """Whether a cancel is recorded for the current run. Raises JobNotFound."""
        ...

    def examine(self) -> Health:
        """Check the integrity of the database. Reads all of it, so it may take a while.

        Raises an error if the check itself is impossible, such as StoreDamaged.
        """
        ...

    def export(self, where: Filter, *, history: bool) -> Iterator[Exported]:
        """The jobs that match in the order of enqueue, with their runs if requested, in bounded memory.

        All of them as of one moment, however long the caller takes; it may use the store meanwhile.
        """
        ...

    def ended(
        self, state: State, *, before_ms: int, limit: int | None = None, host: str | None = None
    ) -> Iterator[Ended]:
        """The jobs that ended in this final state then or before, the first to end first, in bounded memory.

        With `host`: those that last ran there, nowhere, or on a host without a worker. The logs of the others can only be
        reached by their own workers.
        """
        ...

    def ended_of(self, ids: Sequence[str], state: State, *, before_ms: int, host: str | None = None) -> list[Ended]:
        """The same for jobs with these IDs. The cost depends on their number only."""
        ...

    def count_ended(self, state: State, *, before_ms: int) -> int: ...

    # queues

    def rules(self) -> dict[str, QueueSettings]:
        """The rules of all queues that have some."""
        ...

    def brakes(self) -> dict[str, QueueLoad]:
        """For each queue that is paused or limited: how its limits stand."""
        ...

    def running_keys(self) -> dict[tuple[str, str], list[str]]:
        """By queue and concurrency key, the IDs of running jobs, in queues that limit keys."""
        ...

    def rates(self) -> dict[str, int]:
        """For each queue with a rate limit: the starts in the current window."""
        ...

    # batches, schedules, alerts, audit log

    def batch(self, name: str) -> Batch:
        """Raises BatchNotFound. The cost depends on the size of this batch only."""
        ...

    def batches(self) -> list[Batch]:
        """The newest first; `recent` is 0."""
        ...

    def completion_jobs(self) -> dict[str, CompletionJob]:
        """By batch, for those that have one."""
        ...

    def schedules(self) -> list[Schedule]:
        """All schedules, by name."""
        ...

    def schedule(self, name: str) -> Schedule:
        """Raises ScheduleNotFound."""
        ...

    def schedule_runs(self, name: str, *, limit: int, fired: bool = False) -> list[PastRun]:
        """The past runs of a schedule, the latest first; `fired`: only those that enqueued a job. At most RUNS_KEPT are
        kept."""
        ...

    def schedule_checks(self, *, limit: int) -> list[ScheduleCheck]:
        """The schedules that have to be evaluated next, the earliest first."""
        ...

    def alerts(self) -> list[Alert]:
        """All alerts, by name."""
        ...

    def alert(self, name: str) -> Alert:
        """Raises AlertNotFound."""
        ...

    def died_since(self, since_ms: int) -> dict[str, int]:
        """For each queue, the dead jobs that died after this time."""
        ...

    def audit(
        self, *, since_ms: int = 0, has: str | None = None, newest: bool = False, behind: int | None = None
    ) -> Iterator[Entry]:
        """The audit entries since then, in bounded memory, the oldest or the newest first. `has`: with this text in their targets.
        `behind`: only those after the entry with this number, in that order."""
        ...


class Wakeup(Protocol):
    """Wakes a sleeping worker when there may be work. A hint: it may come without reason, and it may be lost."""

    polling_because: str | None  # why no wake-ups arrive now, so that the worker has to poll; None if they do

    def fileno(self) -> int: ...

    def drain(self) -> bool:
        """Consume all wake-ups so far. Whether there were any."""
        ...

    def close(self) -> None: ...


class Claims(Protocol):
    """Claims, runs and their settlement.

    Every write about a running job names the token of its claim (a fencing token), and changes nothing if the job has another
    token by now.
    """

    def exchange(
        self,
        worker: str,
        *,
        starts: Sequence[Start] = (),
        outputs: Sequence[OutputPiece] = (),
        ends: Sequence[End] = (),
        claim: ClaimRequest | None = None,
    ) -> Exchange:
        """Record starts, store output, settle ended runs, promote jobs that came due and claim the next ones, in one transaction.

        Eligible: pending or failed, due, not held, in a queue that is not paused and not at one of its limits, which hold across
        all workers. Order: rank, then first in, first out. Two callers never get the same job. Each claim starts a new run with
        a new token. An unregistered worker gets no jobs, because they would never be rescued.
        Starts and output must be of runs that are in progress or that end in this call. An end with an outdated token changes
        nothing and is returned in `lost`. A cancel that was recorded before the end wins: the job is cancelled, and the run
        does not count as an attempt.
        Dependencies on jobs that have ended are resolved in small steps, see `decide`.
        """
        ...

    def fence(self, worker: str, *, last_heartbeat: LastHeartbeat | None = None) -> list[Claim] | None:
        """Ignore all writes of this worker until it registers again. Returns the claims it holds.

        The first step of a rescue: a worker that was only silent may wake up while its jobs are being killed. With
        `last_heartbeat`, changes nothing and returns None if the worker has sent another one, or another process has its name.
        """
        ...

    def adopt(self, worker: str, tokens: Collection[str], *, by: str) -> list[str]:
        """Transfer the runs with these tokens from a fenced worker to another. They keep their tokens. Returns the transferred
        ones: none if the other worker is not registered (any more)."""
        ...

    def rescue(
        self,
        worker: str,
        *,
        max_crashes: int,
        spans: Mapping[str, Span] = MappingProxyType({}),
        only: Collection[str] | None = None,
        unbegun: Collection[str] = (),
    ) -> list[Rescued]:
        """Settle the runs of a dead worker as lost, and remove the worker. With `only`, the runs with these tokens: the worker
        may have registered again since it was fenced, and then keeps its new claims and its name.

        `spans`: the output of the lost runs, by token. `unbegun`: tokens of claims for which no process was started; they do not
        count as attempts. The caller has made sure that the worker is dead and that none of these jobs still runs.
        """
        ...

    def decide(self) -> bool:
        """Resolve some dependencies on jobs that have ended, in a bounded transaction. Whether there are more.

        Operations that end or retry a job leave its children to this. Those for users resolve all of them before they
        return; `exchange` resolves some each time.
        """
        ...

    def register(self, worker: NewWorker) -> Wakeup:
        """Register a worker under this name. It is woken after each enqueue, cancel, retry, stop and change of a schedule."""
        ...

    def heartbeat(self, worker: str, *, slots: int, stopping: bool) -> bool:
        """False if the worker is not registered (any more)."""
        ...

    def orders(self, worker: str) -> Orders: ...

    def request_stop(self, worker: str, mode: StopMode) -> bool:
        """Ask a worker to stop; a later NOW overrides FINISH. False if there is no such worker."""
        ...

    def retire(self, worker: str) -> None:
        """Remove a worker. One that holds a job stays, so that the job is rescued."""
        ...


class Admin(Protocol):
    """Changes by users."""

    def cancel(self, ids: Ids) -> dict[str, CancelAnswer]:
        """Cancel waiting jobs, and record a cancel for running ones; all in one transaction. Jobs in other states stay as they
        are. Returns an answer for each job that exists."""
        ...

    def retry(self, ids: Ids, *, states: frozenset[State]) -> Retried:
        """Requeue those in one of `states`, due now, at their old position; all in one transaction. Returns the state before, of
        each job that exists.

        A dead or cancelled job starts with no attempts and no crashes; its history stays. A job whose unique key another
        job has taken stays as it is, see `Retried.taken`.
        """
        ...

    def purge(self, ids: Ids) -> dict[str, tuple[State, str | None]]:
        """Remove dead jobs and their history, in one transaction. Returns for each job that exists its state and its log."""
        ...

    def edit(
        self, ids: Ids, change: JobEdit, *, states: frozenset[State] = WAITING, as_of: int | None = None
    ) -> dict[str, Edited]:
        """Change jobs that wait in one of `states`, in one transaction. Returns an answer for each job that exists; one that is
        stale, or in another state, stays as it is.

        Their position in the queue is the one they would have, had they been enqueued like this. A new time to run also changes
        when a job without runs became eligible. With `as_of`, only jobs that were last updated at exactly that time.
        """
        ...

    def move(self, queue: str, to: str, *, ids: Sequence[str] | None = None) -> dict[str, State]:
        """Move the waiting jobs of a queue (with `ids`: those of them) to another one, where each keeps its rank, in one
        transaction. Returns the state of each job that was moved."""
        ...

    def set_config(self, changes: Mapping[str, str | None]) -> None:
        """Store settings; None removes one. A change of `ageing` updates the rank of waiting jobs in the same transaction."""
        ...

    def set_rules(self, queue: str, changes: Mapping[str, Any]) -> QueueSettings:
        """Change rules of a queue, by the names of Rules; None removes one. Returns all rules of the queue.

        From then on no claim exceeds them; running jobs continue.
        """
        ...

    def reset(self) -> int:
        """Remove all jobs and their history, keep the settings. Returns how many jobs there were."""
        ...

    def note(self, act: Act) -> None:
        """Write an audit entry for an action outside of the database."""
        ...

    def add_schedule(self, schedule: Schedule) -> None:
        """Raises ScheduleExists if the name is taken."""
        ...

    def change_schedule(self, name: str, rule: Rule) -> ScheduleChange | None:
        """Let `rule` decide about a schedule, and write its decision: the schedule, its runs and their jobs, in one transaction
        that excludes other decisions about it. Returns what was written, None if the rule returned None. Raises
        ScheduleNotFound.

        A run that was decided before is skipped, with its job, so each is enqueued once. The rule may be called again after a
        conflict with another transaction.
        """
        ...

    def remove_schedule(self, name: str) -> None:
        """Also removes its past runs. Its jobs stay; one that was held back until earlier ones ended is released. Raises
        ScheduleNotFound."""
        ...

    def add_alert(self, alert: Alert) -> None:
        """Raises AlertExists if the name is taken."""
        ...

    def update_alert(self, alert: Alert, jobs: Sequence[NewJob] = ()) -> bool:
        """Write the state of an alert, and enqueue its notifications, in one transaction. `alert` has the version that was read: if
        it was written or removed since, nothing is written and this is False."""
        ...

    def remove_alert(self, name: str) -> None:
        """Raises AlertNotFound."""
        ...


class Maintenance(Protocol):
    """Periodic tasks. Each step is one transaction, and safe at any time with any number of callers."""

    def prune(self, ids: Sequence[str], *, before_ms: int) -> dict[str, str | None]:
        """Remove jobs that ended by then, with history, output, tags and dependencies, after the dependencies on them were resolved.
        Returns the log of each removed job. A job that was retried or ended again since stays. So may the last ones, if
        removing all would block other writers for long; but never all."""
        ...

    def trim(self, job_id: str, *, before_ms: int, rows: int) -> int:
        """Remove at most `rows` of the oldest runs, and of the oldest output pieces, of a job that ended by then; returns how many in
        all. For a job with more rows than one transaction should delete."""
        ...

    def shrink(self) -> bool:
        """Return some of the free space to the file system. Whether there is more."""
        ...

    def sample(self) -> bool:
        """Write samples for the time since the last ones, and remove those past their retention, in one transaction. False if it was
        done in this minute: of all callers, one writes."""
        ...

    def complete_batches(self) -> list[CompletedBatch]:
        """Enqueue the completion jobs of batches of which all jobs have ended: once per batch. Cheap if there is none."""
        ...

    def enqueue_webhooks(self) -> int:
        """Enqueue deliveries for ended runs, some at a time: once per webhook. Returns how many. Cheap if there is none."""
        ...

    def forget_batches(self, *, before_ms: int) -> int:
        """Remove batches that were created before then, have no jobs left and no completion job to come. Returns how many."""
        ...

    def forget_requests(self, *, before_ms: int, limit: int = FORGET_AT_ONCE) -> int:
        """Remove idempotency keys that were used then or before, the oldest first. Returns how many: fewer than `limit` means
        that no more are left."""
        ...

    def forget_audit(self, *, before_ms: int, rows: int, by: Actor) -> int:
        """Remove the oldest audit entries, of before then, and record that. Returns how many: at most `rows`."""
        ...


class Transfer(Protocol):
    """Import, and copies of a whole store."""

    def importer(self, settings: Mapping[str, str], *, rules: bool = False) -> AbstractContextManager[Importer]:
        """Import jobs and these settings, with `rules` also queue rules: all or nothing. Commits at the end; any exception rolls
        back."""
        ...

    def identity(self) -> str:
        """Equal for two stores if they are the same database, whatever their addresses."""
        ...

    def dump(self) -> AbstractContextManager[Dump]: ...

    def load(self) -> AbstractContextManager[Load]:
        """Commits at the end; any exception rolls back."""
        ...


class Store(Enqueuer, Reads, Claims, Admin, Maintenance, Transfer, Protocol):
    pass
