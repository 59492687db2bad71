"""Queries about jobs, runs, workers and counters, the order of lists, and diagnostics. Nothing here writes or takes a lock."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from queuectl import errors
from queuectl.jobs.model import Claim, Job, Run, Worker
from queuectl.jobs.outcome import Ending
from queuectl.jobs.states import FINAL, State
from queuectl.jobs.stats import Spread, Throughput, spread
from queuectl.store import rows
from queuectl.store.counters import oldest_of, tally_of, totals_of
from queuectl.store.transactions import StoreBase, Transactions
from queuectl.store.types import (
    OUTPUT_AT_ONCE,
    After,
    Chosen,
    Ended,
    Exported,
    Failure,
    Filter,
    Health,
    LatestRun,
    Link,
    Printed,
    Row,
    Sort,
)
from queuectl.text import WEBHOOK_QUEUE

if TYPE_CHECKING:
    from queuectl.store.alerts import Alerts
    from queuectl.store.audit import AuditLog
    from queuectl.store.batches import Batches
    from queuectl.store.counters import Samples
    from queuectl.store.dependencies import Resolver
    from queuectl.store.queues import Queues
    from queuectl.store.schedules import Schedules
    from queuectl.store.webhook_outbox import WebhookOutbox

MAX_CANDIDATES: Final = 5  # IDs that the error about an ambiguous prefix names
PAGE_SIZE: Final = 500  # jobs that a long list reads at a time
LATEST_RUN: Final = "host, pid, ending, usage"  # columns of the latest run, read before those of the job
_THROUGHPUT_MS: Final = (60_000, 3_600_000, 86_400_000)


# A condition and its values: all parts of the text are constants.
Condition = tuple[str, list[Any]]

LAST_RANK: Final = 2**63 - 1  # after every job
_SORT_COLUMNS: Final = {
    Sort.CREATED: "seq",
    Sort.PRIORITY: "priority",
    Sort.STATE: "state",
    Sort.QUEUE: "queue",
    Sort.RUN_AT: "run_at",
    Sort.FINISHED: "finished_at",
    Sort.DURATION: "duration_ms",
}


class Order:
    """By a column, nulls last, ties by the order of enqueue, the newest first. `backward`: all of that reversed."""

    def __init__(self, sort: Sort, where: Filter, *, descending: bool, backward: bool = False) -> None:
        self.column = _SORT_COLUMNS[sort]
        self._descending = descending is not backward
        self._backward = backward
        # Not tested for null where that is impossible: no index contains the test.
        have_ended = bool(where.states) and where.states <= FINAL
        self._may_be_null = sort is Sort.DURATION or (sort is Sort.FINISHED and not have_ended)

    @property
    def clause(self) -> str:
        way = "desc" if self._descending else "asc"
        if self.column == "seq":
            return f" order by seq {way}"
        nulls = f"{self.column} is null{' desc' * self._backward}, " if self._may_be_null else ""
        return f" order by {nulls}{self.column} {way}, seq {'asc' if self._backward else 'desc'}"

    def condition(self, after: After, mark: str, *, inclusive: bool = False) -> Condition:
        """The condition for jobs after this position, or at it if `inclusive`, and its values. `mark`: the placeholder of the dialect.

        The column is compared twice, so that an index on it can be entered at the position.
        """
        than = "<" if self._descending else ">"
        or_equal = "=" * inclusive
        if self.column == "seq":
            return f"seq {than}{or_equal} {mark}", [after.seq]
        later = f"seq {'>' if self._backward else '<'}{or_equal} {mark}"
        if after.value is None:
            if self._backward:
                return f"({self.column} is not null or {later})", [after.seq]
            return f"({self.column} is null and {later})", [after.seq]
        here = f"({self.column} {than}= {mark} and ({self.column} {than} {mark} or {later}))"
        values = [after.value, after.value, after.seq]
        nulls_follow = self._may_be_null and not self._backward
        return (f"({self.column} is null or {here})" if nulls_follow else here), values


class Range(NamedTuple):
    """A part of a list. `backward`: of the reversed list."""

    after: After | None = None
    until: After | None = None  # the last position
    backward: bool = False


WHOLE_LIST: Final = Range()


def _either(conditions: Iterable[str]) -> str:
    return f"({' or '.join(conditions)})"


def like_pattern(text: str) -> str:
    """The pattern of `like` for values that contain this text. The escape character is a backslash."""
    escaped = re.sub(r"([\\%_])", r"\\\1", text)
    return f"%{escaped}%"


class Position(NamedTuple):
    """The position of a job: smaller goes first, within a queue and across all of them."""

    queue: str
    rank: int
    seq: int

    def is_before(self, other: Position) -> bool:
        return (self.rank, self.seq) < (other.rank, other.seq)


def positions_before(position: Position, queues: Iterable[str], *, in_one_order: bool) -> list[Position]:
    """For each queue with jobs that may be claimed before `position`: up to where.

    Of `queues` in one order, each up to the same rank; else those named before the queue of the job completely.
    """
    if in_one_order:
        return [position._replace(queue=queue) for queue in queues]
    found = []
    for queue in queues:
        if queue == position.queue:
            found.append(position)
            break
        found.append(Position(queue, LAST_RANK, 0))
    return found


def count_unpromoted(late: Iterable[Position], limits: Iterable[Position]) -> int:
    """How many due jobs that were not promoted yet are before the limit of their queue."""
    by_queue = {limit.queue: limit for limit in limits}
    return sum(one.queue in by_queue and one.is_before(by_queue[one.queue]) for one in late)


def with_latest_run(row: Row, job: Job, earlier: Iterable[Run], *, history: bool) -> Exported:
    """`row`: the columns of LATEST_RUN."""
    host, pid, ending, usage = row
    if not history or (ending is None and job.state is not State.PROCESSING):
        return Exported(job, list(earlier))
    # Without the position of its output, which is not exported.
    times = (job.started_at, job.finished_at, job.duration_ms, job.exit_code, job.signal, job.error)
    outcome = Ending.RUNNING if ending is None else Ending(ending)
    output = None, None, rows.read_usage(usage), job.last_output
    latest = Run(job.runs, job.worker or "", host or "", pid, *times, outcome, *output)
    return Exported(job, [*earlier, latest])


class Reads(StoreBase, ABC):
    """The queries about jobs and workers, and the parts of a store. No method here writes or waits for a lock."""

    queues: Queues
    schedules: Schedules
    alerts: Alerts
    batches: Batches
    webhooks: WebhookOutbox
    samples: Samples
    audit: AuditLog
    dependencies: Resolver

    is_shared: bool  # workers on several hosts use the database, so they store the output of their jobs in it
    jobs_table: str
    job_columns: str  # that `rows.job` reads: those of a job, and the first parents that it waits for
    tags_table: str
    command_text: str  # the command, or the arguments joined by spaces
    mark: str  # the placeholder of a value
    no_limit: int | None
    reads_at_once = False  # whether even long reads must not leave a statement open

    # ── differ between the dialects ─────────────────────────────────────────────────────────────────────────────────

    @property
    @abstractmethod
    def shown(self) -> str:
        """The address, without secrets."""

    @abstractmethod
    def is_any(self, column: str, values: Sequence[str]) -> tuple[str, list[Any]]:
        """The condition that the column has one of these values, and its parameters."""

    @abstractmethod
    def contains(self, text: str) -> str:
        """The condition that this expression matches a pattern of `like`, in any case of the letters A to Z."""

    def bindable(self, text: str) -> str:
        """An argument of the command line may contain bytes that a database does not accept. It matches nothing, and neither does "?"."""
        return text.encode(errors="replace").decode()

    @abstractmethod
    def context(self, tx: Transactions) -> rows.Present: ...

    @abstractmethod
    def read_jobs(
        self, text: str, values: Sequence[Any], *, plan_freely: bool = False
    ) -> tuple[list[Row], rows.Present]: ...

    @abstractmethod
    def long_list(self, where: Filter, chosen: str, values: list[Any]) -> Iterator[Job]:
        """For `jobs`. `chosen`: the selection, without the columns."""

    def index_hint(self, where: Filter, sort: Sort) -> str:  # noqa: ARG002 # for SQLite
        return ""

    @abstractmethod
    def is_drained(self, queues: tuple[str, ...] | None) -> bool:
        """Whether, in those of these queues (None: all) that are not paused, no job is due, runs or waits for a retry, and all
        dependencies are resolved. Held jobs do not count."""

    @abstractmethod
    def changed(self) -> bool:
        """Whether another connection has written since the last call. Cheap enough for a hundred calls a second.

        Raises StoreGone if the database was removed or replaced. Raises StoreTooNew if a newer queuectl has migrated the
        schema: started runs may be settled, but no new ones started.
        """

    @abstractmethod
    def backup(self, path: str) -> None:
        """Write a consistent copy into a new file, while others continue to work."""

    @abstractmethod
    def ahead(self, job_id: str, *, queues: tuple[str, ...] | None, most: int) -> int:
        """How many due jobs a worker of these queues (the first is served first; None: all, in one order) would claim before this
        one. Counts up to `most`, so that the cost does not depend on the number of jobs. Raises JobNotFound."""

    @abstractmethod
    def examine(self) -> Health:
        """Check the integrity of the database. Reads all of it, so it may take a while.

        Raises an error if the check itself is impossible, such as StoreDamaged.
        """

    # ── jobs ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def now_ms(self) -> int:
        """The time of the clock that all times in this store are by: milliseconds since 1970-01-01 UTC."""
        return self.tx.clock.now_ms()

    def get(self, job_id: str) -> Job:
        """The job with exactly this ID. Raises JobNotFound."""
        text = f"select {self.job_columns} from {self.jobs_table} where id = {self.mark}"
        found, context = self.read_jobs(text, (job_id,))
        if not found:
            raise errors.JobNotFound(job_id)
        return rows.job(found[0], context)

    def resolve(self, ref: str) -> str:
        """The full ID for an ID, a unique prefix of one, or `last`. An exact ID wins over longer ones.

        Raises JobNotFound, or AmbiguousId with up to five candidates.
        """
        if ref == "last":
            last = self.tx.value("last_id")
            if last is None:
                raise errors.JobNotFound(ref)
            return str(last)
        # Every ID is ASCII; an argument of the command line may contain bytes that no database accepts.
        if ref == "" or not ref.isascii() or "\0" in ref:
            raise errors.JobNotFound(ref)
        found = [str(id_) for (id_,) in self.tx.all("ids_from", {"ref": ref, "limit": MAX_CANDIDATES})]
        if not found:
            raise errors.JobNotFound(ref)
        if found[0] == ref or len(found) == 1:
            return found[0]
        raise errors.AmbiguousId(ref, found)

    def jobs(
        self,
        where: Filter = Filter(),
        *,
        sort: Sort = Sort.CREATED,
        descending: bool = True,
        limit: int | None = None,
        offset: int = 0,
        within: Range = WHOLE_LIST,
    ) -> Iterator[Job]:
        """The jobs that match, in bounded memory. Ties and `created` are ordered by enqueue.

        The selection and its order are of one moment. A long list is read page by page without a transaction in between: each job
        is as it is when its page is read, and jobs that were removed or no longer match by then are omitted. The caller may
        pause for any time, and may use the store. `within`: only this part of the list.
        """
        order = Order(sort, where, descending=descending, backward=within.backward)
        clause, values = self.where(where, *self._bounds(where, sort, within, descending=descending))
        hint = self.index_hint(where, sort)
        chosen = f"from {self.jobs_table}{hint}{clause}{order.clause} limit {self.mark} offset {self.mark}"
        values += [self.no_limit if limit is None else limit, offset]
        if (limit is not None and limit <= PAGE_SIZE) or 0 < len(where.ids) <= PAGE_SIZE:
            found, context = self.read_jobs(f"select {self.job_columns} {chosen}", values, plan_freely=True)
            for row in found:
                yield rows.job(row, context)
        else:
            yield from self.long_list(where, chosen, values)

    def choose(self, where: Filter) -> list[Chosen]:
        """The jobs that match, in the order of enqueue, as of one moment, with the fields that a bulk change needs."""
        clause, values = self.where(where)
        text = f"select id, state, held from {self.jobs_table}{clause} order by seq"
        with self.tx.long_snapshot():
            found = self.tx.raw(text, values)
        return [Chosen(job_id, State(state), bool(held)) for job_id, state, held in found]

    def count(
        self,
        where: Filter = Filter(),
        *,
        most: int | None = None,
        sort: Sort = Sort.CREATED,
        descending: bool = True,
        within: Range = WHOLE_LIST,
    ) -> int:
        """How many jobs match. `most`: count up to this number. `within`: only in this part of the list in this order."""
        if where.is_tallied and within == WHOLE_LIST:
            tally = self.tally()
            return sum(
                jobs
                for queue, states in tally.items()
                if where.has_queue(queue)
                for state, jobs in states.items()
                if not where.states or state in where.states
            )
        clause, values = self.where(where, *self._bounds(where, sort, within, descending=descending))
        text = f"from {self.jobs_table}{self.index_hint(where, sort)}{clause}"
        if most is None:
            text = f"select count(*) {text}"
        else:
            text, values = f"select count(*) from (select 1 {text} limit {self.mark}) as found", [*values, most]
        return int(self.tx.raw(text, values, plan_freely=True)[0][0])

    def position_ahead(
        self, states: frozenset[State], sort: Sort, *, descending: bool, within: Range, jobs: int
    ) -> After | None:
        """The position of the last of the next `jobs` jobs in these states, in an order that has an index. None if there are fewer."""
        where = Filter(states)
        order = Order(sort, where, descending=descending, backward=within.backward)
        clause, values = self.where(where, *self._bounds(where, sort, within, descending=descending))
        chosen = f"from {self.jobs_table}{self.index_hint(where, sort)}{clause}{order.clause}"
        text = f"select {order.column}, seq {chosen} limit 1 offset {self.mark}"
        found = self.tx.raw(text, [*values, jobs - 1], plan_freely=True)
        return After(*found[0]) if found else None

    def last_seq(self) -> int:
        """The sequence number of the job that was enqueued last."""
        return self.tx.last_seq()

    def _bounds(self, where: Filter, sort: Sort, within: Range, *, descending: bool) -> Iterator[Condition]:
        if within.after is not None:
            order = Order(sort, where, descending=descending, backward=within.backward)
            yield order.condition(within.after, self.mark)
        if within.until is not None:
            reverse = Order(sort, where, descending=descending, backward=not within.backward)
            yield reverse.condition(within.until, self.mark, inclusive=True)

    def where(self, filters: Filter, *more: Condition) -> Condition:
        """A where clause and its values: all parts are constants and all values parameters. `more`: conditions in addition.

        A fixed statement with "or :x is null" for each condition would keep SQLite from using an index.
        """
        found = [*self._conditions(filters), *more]
        if filters.unless is not None:
            # A condition on null is neither true nor false.
            found += [(f"not coalesce({text}, false)", values) for text, values in self._conditions(filters.unless)]
        clause = f" where {' and '.join(text for text, _ in found)}" if found else ""
        return clause, [value for _, values in found for value in values]

    def _conditions(self, filters: Filter) -> Iterator[Condition]:
        columns = {
            "state": filters.states,
            "queue": filters.queues,
            "id": filters.ids,
            "batch": filters.batches,
            "fingerprint": filters.fingerprints,
            "worker": filters.workers,
        }
        for column, wanted in columns.items():
            if wanted:
                yield self.is_any(column, sorted(map(self.bindable, wanted)))
        if not filters.includes_webhooks:
            yield f"queue <> '{WEBHOOK_QUEUE}'", []
        for tag in sorted(filters.tags):
            yield f"seq in (select job from {self.tags_table} where tag = {self.mark})", [self.bindable(tag)]
        if filters.prefixes:
            # Every ID is below this character, so the range is within the index on IDs.
            begins = f"(id >= {self.mark} and id < {self.mark})"
            bounds = [bound for text in map(self.bindable, filters.prefixes) for bound in (text, f"{text}\U0010ffff")]
            yield _either([begins] * len(filters.prefixes)), bounds
        if filters.since_ms is not None:
            yield f"created_at >= {self.mark}", [filters.since_ms]
        for text in filters.match:
            yield self.contains(self.command_text), [like_pattern(self.bindable(text))]
        if filters.errors:
            patterns = [like_pattern(self.bindable(text)) for text in sorted(filters.errors)]
            either = _either([self.contains("error"), self.contains("last_output")])
            yield _either([either] * len(patterns)), [pattern for pattern in patterns for _ in range(2)]

    def export(self, where: Filter, *, history: bool) -> Iterator[Exported]:
        """The jobs that match in the order of enqueue, with their runs if requested, in bounded memory.

        All of them as of one moment, however long the caller takes; it may use the store meanwhile.
        """
        clause, values = self.where(where)
        text = f"select {LATEST_RUN}, {self.job_columns} from {self.jobs_table}{clause} order by seq"
        with self.tx.read_pages(text, values, size=PAGE_SIZE) as (tx, pages):
            context = self.context(tx)
            for page in pages:
                earlier: dict[int, list[Run]] = {}
                if history:
                    seqs = tx.array([row[4] for row in page])
                    for seq, *run in tx.all("histories", {"seqs": seqs}):
                        earlier.setdefault(seq, []).append(rows.run(tuple(run)))
                for row in page:
                    job = rows.job(row[4:], context)
                    yield with_latest_run(row[:4], job, earlier.get(job.seq, ()), history=history)

    def history(self, job_id: str) -> list[Run]:
        """All runs in order, including the current one."""
        with self.tx.snapshot():
            found = self.tx.raw(f"select seq from {self.jobs_table} where id = {self.mark}", (job_id,))
            if not found:
                raise errors.JobNotFound(job_id)
            values = {"seq": found[0][0]}
            earlier, latest = self.tx.each(("history", values), ("latest_run", values))
        return [rows.run(row) for row in earlier + latest]

    def latest_runs(self, ids: Sequence[str]) -> list[LatestRun]:
        """For those of these jobs that exist and have run."""
        found = self.tx.all("latest_runs", {"ids": self.tx.array(ids)})
        return [LatestRun(row[0], row[1], rows.run(row[2:])) for row in found]

    def output(self, job_id: str, run: int, *, start: int = 0) -> list[Printed]:
        """The stored output of a run, from byte `start` on, in order. The first piece may begin before that, and pieces may
        overlap. At most OUTPUT_AT_ONCE pieces: fewer mean that there is no more yet."""
        values = {"id": job_id, "run": run, "start": start, "limit": OUTPUT_AT_ONCE}
        return [Printed(at, bytes(data)) for at, data in self.tx.all("output", values)]

    def running(self, worker: str) -> list[Claim]:
        """The claims that this worker holds."""
        return [claim for claim, _ in self.running_claims(worker)]

    def running_claims(self, worker: str) -> list[tuple[Claim, bool]]:
        """The claims of a worker, each with whether a cancel is recorded."""
        found = []
        for seq, id_, token, run, *rest, key, log, cancelled, depends_on, hooks, limits, secrets in self.tx.all(
            "running", {"worker": worker}
        ):
            of_job = {"depends_on": depends_on, "hooks": hooks, "limits": limits, "secrets": secrets}
            claim = rows.claim((seq, id_, run, *rest), token=token, run=run, log=log, key=key, **of_job)
            found.append((claim, bool(cancelled)))
        return found

    def ended(
        self, state: State, *, before_ms: int, limit: int | None = None, host: str | None = None
    ) -> Iterator[Ended]:
        """The jobs that ended in this final state then or before, the first to end first, in bounded memory.

        With `host`: those that last ran there, nowhere, or on a host without a worker. The logs of the others can only be
        reached by their own workers.
        """
        name = "ended_completed" if state is State.COMPLETED else "ended"
        most = self.no_limit if limit is None else limit
        values = {"state": state.value, "before": before_ms, "limit": most, "host": host}
        if limit is not None or self.reads_at_once:
            yield from map(Ended._make, self.tx.all(name, values))
            return
        with self.tx.read_pages(self.tx.sql[name], values, size=PAGE_SIZE, plan_freely=False) as (_, pages):
            for page in pages:
                yield from map(Ended._make, page)

    def ended_of(self, ids: Sequence[str], state: State, *, before_ms: int, host: str | None = None) -> list[Ended]:
        """The same for jobs with these IDs. The cost depends on their number only."""
        values = {"ids": self.tx.array(ids), "state": state.value, "before": before_ms, "host": host}
        return [Ended._make(row) for row in self.tx.all("ended_of", values)]

    def count_ended(self, state: State, *, before_ms: int) -> int:
        return int(self.tx.value("count_ended", {"state": state.value, "before": before_ms}))

    def tags(self, *, limit: int) -> list[str]:
        """The first tags of jobs, in the order of the database."""
        return [tag for (tag,) in self.tx.all("tags", {"limit": limit})]

    # ── counters and workers ────────────────────────────────────────────────────────────────────────────────────────

    def tally(self) -> dict[str, dict[State, int]]:
        """Jobs by queue and state, for each queue that ever had a job. The cost does not depend on the number of jobs."""
        return tally_of(self.tx.all("tally"))

    def totals(self) -> dict[str, dict[str, int]]:
        """For each queue, how often each of these ever happened: enqueued, started, completed, failed, dead, retried, rescued.
        They never decrease."""
        return totals_of(self.tx.all("moves"))

    def oldest_waiting_ms(self) -> dict[str, int]:
        """For each queue with a job that is due: how long the oldest one has waited."""
        now = self.now_ms()
        return oldest_of(self.tx.all("oldest_waiting", {"now": now}), now_ms=now)

    def durations(self) -> tuple[Spread, Spread]:
        """Run time and waiting time of the completed jobs."""
        ran, waited = self.tx.each(("durations", ()), ("waits", ()), plan_freely=True)
        return (
            spread((value, times) for _, value, times in ran),
            spread((value, times) for _, value, times in waited),
        )

    def throughput(self) -> Throughput:
        """Jobs completed in the last minute, hour and day."""
        now = self.now_ms()
        found = self.tx.each(*(("completed_since", {"since": now - span}) for span in _THROUGHPUT_MS))
        return Throughput(*(int(count[0][0]) for count in found))

    def average_attempts(self) -> float | None:
        average = self.tx.value("average_attempts", plan_freely=True)
        return None if average is None else float(average)

    def workers(self, *, busy: bool = True) -> list[Worker]:
        """The registered workers. `busy`: also count the jobs that each holds; else 0."""
        return [rows.worker(row) for row in self.tx.all("workers", {"busy": busy})]

    # ── diagnostics ─────────────────────────────────────────────────────────────────────────────────────────────────

    def failures(self, *, limit: int) -> list[Failure]:
        """Dead jobs by kind of failure, the most frequent first. `Filter.fingerprints` selects those of a kind."""
        return [Failure(*row) for row in self.tx.all("failures", {"limit": limit}, plan_freely=True)]

    def parents(self, ids: Sequence[str], *, limit: int) -> list[Link]:
        """The dependencies of these jobs, as far as the parents still exist; in the order of enqueue."""
        return [Link.of(row) for row in self.tx.all("parents", {"ids": self.tx.array(ids), "limit": limit})]

    def children(self, ids: Sequence[str], *, limit: int) -> list[Link]:
        """The jobs that depend on these; in the order of enqueue."""
        return [Link.of(row) for row in self.tx.all("children", {"ids": self.tx.array(ids), "limit": limit})]

    def is_cancel_requested(self, job_id: str) -> bool:
        """Whether a cancel is recorded for the current run. Raises JobNotFound."""
        return self.position(job_id)[1]

    def position(self, job_id: str) -> tuple[Position, bool]:
        """The position of a job, and whether a cancel is recorded for it."""
        row = self.tx.one("place", {"id": job_id})
        if row is None:
            raise errors.JobNotFound(job_id)
        return Position(*row[:3]), bool(row[3])
