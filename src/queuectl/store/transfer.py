"""Import and export of jobs with their history, and copies of a whole store.

A copy consists of pages of plain rows, with the same columns and values in both dialects. Columns that only one dialect has are omitted
on reading and filled in on writing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from queuectl.errors import BatchDiffers
from queuectl.errors.jobs import ParentNotFound
from queuectl.jobs.audit import Act, Actor
from queuectl.jobs.dependencies import DependencyState, evaluate, orphan_error
from queuectl.jobs.import_record import ImportRecord
from queuectl.jobs.model import Job, Worker
from queuectl.jobs.priority import Ageing, Standing, rank
from queuectl.jobs.queue_limits import QueueSettings
from queuectl.jobs.states import State, is_final
from queuectl.store.admin import QueueAdmin, update_key_limits
from queuectl.store.alerts import Alerts
from queuectl.store.batches import Batches, pack_job
from queuectl.store.dependencies import EdgeRow, ParentState, Resolver, read_parents
from queuectl.store.reads import JobReads
from queuectl.store.schedules import Schedules
from queuectl.store.transactions import OUTSIDE, Transactions, Transitions
from queuectl.store.types import CompletionJob, Filter, Row
from queuectl.store.unique import lock_holders, refuse_taken

if TYPE_CHECKING:
    from queuectl.alerts.rules import Alert
    from queuectl.cron.schedule import Schedule
    from queuectl.jobs.spec import NewJob


class Table(NamedTuple):
    name: str
    order: str  # to read it in; by an index
    page: int = 100  # rows at a time: a job may have a megabyte of text


SAMPLES: Final = ("points", "counters", "buckets", "sampling")

# All tables but the workers, which belong to their host. Referenced tables come first.
# For a new table, also extend `copied` and `is_untouched` of each dialect.
TABLES: Final = (
    Table("config", "key"),
    Table("batches", "name"),
    Table("queues", "name"),
    Table("starts", "queue, number"),
    Table("jobs", "seq"),
    Table("runs", "job, number"),
    Table("output", "job, run, at", page=16),
    Table("job_tags", "tag, job"),
    Table("edges", "child, parent"),
    Table("moves", "queue, was, now, ending"),
    Table("schedules", "name"),
    Table("ticks", "schedule, at, by_hand"),
    Table("alerts", "name"),
    Table("requests", "key"),
    Table("calls", "at, job, run, happening"),
    Table("points", "span, queue, at"),
    Table("counters", "queue"),
    Table("buckets", "queue, what, bucket"),
    Table("sampling", "one"),
    Table("audit", "seq"),
)


# ── interfaces ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Definitions(Protocol):
    """Everything in a store that an export contains besides jobs."""

    def rules(self) -> dict[str, QueueSettings]: ...

    def schedules(self) -> list[Schedule]: ...

    def alerts(self) -> list[Alert]: ...

    def completion_jobs(self) -> dict[str, CompletionJob]: ...


class Importer(Definitions, Protocol):
    """An import: one transaction."""

    def now_ms(self) -> int: ...

    def set_rules(self, queue: str, rules: QueueSettings) -> None:
        """Replace all rules of a queue. Requires an import with `rules`."""
        ...

    def add_schedule(self, schedule: Schedule) -> None:
        """Raises ScheduleExists if the name is taken."""
        ...

    def add_alert(self, alert: Alert) -> None:
        """Raises AlertExists if the name is taken."""
        ...

    def complete_with(self, batch: str, job: NewJob) -> None:
        """Set the completion job of a batch. Raises BatchDiffers if it has another one."""
        ...

    def present(self, ids: Sequence[str]) -> dict[str, Job]:
        """Those of these jobs, at most a page of them, that exist."""
        ...

    def add(self, records: Sequence[ImportRecord]) -> None:
        """Insert jobs with their history after all others, in this order. Raises DuplicateId if an ID is taken."""
        ...

    def link(self, records: Sequence[ImportRecord]) -> None:
        """Store the dependencies of inserted jobs, when all are inserted. Raises ParentNotFound for a blocked job whose parents do
        not exist."""
        ...


class Dump(Protocol):
    """A store as of one moment, however long the caller takes."""

    def counts(self) -> dict[str, int]:
        """The number of jobs, runs and so on, by name."""
        ...

    def running(self) -> int:
        """How many jobs are processing."""
        ...

    def config(self) -> dict[str, str]: ...

    def last_seq(self) -> int: ...

    def columns(self, table: Table) -> Sequence[str]:
        """The columns that both dialects have."""
        ...

    def size(self, table: Table) -> int:
        """How many rows `pages` returns."""
        ...

    def pages(self, table: Table) -> Iterator[list[Row]]:
        """All rows, in the order of the table and of `columns`, in bounded memory."""
        ...


class Load(Protocol):
    """A store to be filled, in one transaction that excludes other writers."""

    def is_untouched(self) -> bool:
        """Whether it has no job, no setting and no history, and never had a job."""
        ...

    def make_room(self) -> None:
        """Remove what an unused store may contain: samples and audit entries."""
        ...

    def clear(self) -> None:
        """Remove everything, including settings, counters and workers."""
        ...

    def add(self, table: Table, columns: Sequence[str], rows: Iterable[Row]) -> None: ...

    def moved(self, moves: Sequence[Row]) -> None:
        """Add state transitions to the copied counters, see store/transactions.py."""
        ...

    def counts(self) -> dict[str, int]:
        """As `Dump.counts`."""
        ...

    def record(self, act: Act, /) -> None:
        """Write an audit entry, last of all."""
        ...

    def finish(self, *, last_seq: int) -> None:
        """When all rows are inserted: sequence numbers continue after `last_seq`, and the settings take effect."""
        ...


class Copyable(Protocol):
    """The part of a store that a copy needs."""

    actor: Actor | None

    def close(self) -> None: ...

    def workers(self) -> list[Worker]: ...

    @property
    def shown(self) -> str: ...

    def identity(self) -> str: ...

    def now_ms(self) -> int: ...

    def dump(self) -> AbstractContextManager[Dump]: ...

    def load(self) -> AbstractContextManager[Load]: ...


# ── rows ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def import_row(record: ImportRecord, *, seq: int, now_ms: int, ageing: Ageing) -> Row:
    """The parameters of `import_job`, in its order."""
    may_run = record.state in (State.PENDING, State.FAILED) and not record.held
    return (
        seq,
        record.id,
        record.command,
        None if record.argv is None else json.dumps(record.argv),
        record.state,
        record.queue,
        may_run and record.run_at <= now_ms,
        record.priority,
        rank(ageing, Standing(record.priority, seq, record.eligible_at, 0)),
        record.eligible_at,
        record.effective_priority,
        record.run_at,
        record.held,
        record.max_retries,
        record.first_is_free,
        record.backoff_base,
        record.timeout_ms,
        record.cwd,
        json.dumps(record.env) if record.env else None,
        json.dumps(record.tags),
        record.unique_key,
        record.cron,
        record.attempts,
        record.runs,
        record.crashes,
        record.worker,
        record.host,
        record.pid,
        record.started_at,
        record.finished_at,
        record.duration_ms,
        record.wait_ms,
        record.exit_code,
        record.signal,
        record.error,
        record.ending,
        record.created_at,
        record.updated_at,
        record.batch,
        record.key,
        json.dumps([parent.to_json() for parent in record.depends_on]) if record.depends_on else None,
        record.places,
        json.dumps(record.hooks) if record.hooks else None,
        json.dumps(record.limits) if record.limits else None,
        json.dumps(record.usage) if record.usage else None,
        json.dumps(record.secrets) if record.secrets else None,
    )


def jobs_to_link(records: Sequence[ImportRecord]) -> list[str]:
    """The IDs of these jobs and their parents."""
    return sorted({id_ for record in records for id_ in (record.id, *(parent.id for parent in record.depends_on))})


def edge_rows(record: ImportRecord, present: Mapping[str, ParentState]) -> Iterator[EdgeRow]:
    """The parameters of `link`. A blocked job waits for all its parents that exist, which are then resolved as usual; parents that do
    not exist count as met. For other jobs a dependency only records the past."""
    parents = [parent for parent in record.depends_on if parent.id in present]
    is_blocked = record.state == State.BLOCKED
    if is_blocked and len(parents) < len(record.depends_on) and all(is_final(present[one.id].state) for one in parents):
        # Without the missing parents it would run at once, and how they ended is unknown.
        missing = next(parent.id for parent in record.depends_on if parent.id not in present)
        raise ParentNotFound(missing, child=record.id)
    for parent in parents:
        state = present[parent.id].state
        now = evaluate(parent.when, parent.otherwise, state)
        if is_blocked:
            now = DependencyState.WAITING
        elif now is DependencyState.WAITING or (
            now is DependencyState.BROKE and record.error != orphan_error(parent.id, state)
        ):
            now = DependencyState.VOID
        yield present[parent.id].seq, present[record.id].seq, parent.when, parent.otherwise, now


def run_rows(record: ImportRecord, seq: int) -> Iterator[Row]:
    """The parameters of `import_run`, in its order."""
    return ((seq, *run[:-1], json.dumps(run.usage) if run.usage else None) for run in record.earlier)


# ── import ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class ImportParts(NamedTuple):
    reads: JobReads
    queues: QueueAdmin
    schedules: Schedules
    alerts: Alerts
    batches: Batches
    resolver: Resolver


class JobImporter:
    """Base of the two dialects."""

    def __init__(self, tx: Transactions, parts: ImportParts, transitions: Transitions) -> None:
        self._tx = tx
        self._parts = parts
        self._transitions = transitions
        self.imported: list[str] = []  # IDs and names, for the audit entry
        self.now_ms = parts.reads.now_ms
        self.rules = parts.queues.rules
        self.schedules = parts.schedules.schedules
        self.alerts = parts.alerts.alerts
        self.completion_jobs = parts.batches.completion_jobs

    # ── differ between the dialects ─────────────────────────────────────────────────────────────────────────────────

    def take_seqs(self, count: int) -> tuple[Ageing, Sequence[int]]:
        raise NotImplementedError

    def insert_rows(self, jobs: Sequence[Row], runs: Sequence[Row], tags: Sequence[Row]) -> None:
        raise NotImplementedError

    def insert_links(self, edges: Sequence[EdgeRow]) -> None:
        raise NotImplementedError

    def refuse_duplicate(self, exc: Exception, ids: Sequence[str]) -> None:
        """Raise DuplicateId if that is the reason for this error of `insert_rows`."""

    def refuse_duplicate_commit(self, exc: Exception) -> None:
        """Raise DuplicateId if that is the reason for this error of the transaction."""

    # ── as in the protocol ──────────────────────────────────────────────────────────────────────────────────────────

    def set_rules(self, queue: str, rules: QueueSettings) -> None:
        self._parts.queues.write_rules(queue, self._parts.queues.lock_rules(queue), rules)
        self.imported.append(queue)

    def add_schedule(self, schedule: Schedule) -> None:
        self._parts.schedules.insert(schedule)
        self.imported.append(schedule.name)

    def add_alert(self, alert: Alert) -> None:
        self._parts.alerts.insert(alert)
        self.imported.append(alert.name)

    def complete_with(self, batch: str, job: NewJob) -> None:
        self._tx.value("join_batch", {"name": batch, "jobs": 0, "now": self.now_ms()})
        if not self._tx.execute("set_on_complete", {"name": batch, "job": pack_job(job)}):
            raise BatchDiffers(batch)
        self.imported.append(batch)

    def present(self, ids: Sequence[str]) -> dict[str, Job]:
        return {job.id: job for job in self._parts.reads.jobs(Filter(ids=tuple(ids)))} if ids else {}

    def add(self, records: Sequence[ImportRecord]) -> None:
        if not records:
            return
        refuse_taken(records, lock_holders(self._tx, records))
        ageing, seqs = self.take_seqs(len(records))
        now = self.now_ms()
        numbered = list(zip(seqs, records, strict=True))
        jobs = [import_row(record, seq=seq, now_ms=now, ageing=ageing) for seq, record in numbered]
        runs = [row for seq, record in numbered for row in run_rows(record, seq)]
        ids = [record.id for record in records]
        try:
            self.insert_rows(jobs, runs, [(tag, seq) for seq, record in numbered for tag in record.tags])
        except Exception as exc:
            self.refuse_duplicate(exc, ids)
            raise
        for batch, count in sorted(Counter(record.batch for record in records if record.batch is not None).items()):
            self._tx.value("join_batch", {"name": batch, "jobs": count, "now": now})
        self.imported += ids
        for record in records:
            self._transitions.add(record.queue, OUTSIDE, record.state)

    def link(self, records: Sequence[ImportRecord]) -> None:
        found = self._tx.all("new_parents", {"ids": self._tx.array(jobs_to_link(records))})
        present = read_parents(found)
        self.insert_links([row for record in records for row in edge_rows(record, present)])


# ── copy ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class TableDump:
    """Base of the two dialects. Within a transaction that sees one state of the database."""

    prefix = ""  # of table names

    def __init__(self, tx: Transactions) -> None:
        self._tx = tx
        self.config = tx.config
        self.last_seq = tx.last_seq

    def counts(self) -> dict[str, int]:
        return dict(self._tx.all("copied"))

    def running(self) -> int:
        return int(self._tx.raw(f"select count(*) from {self.prefix}jobs where state = 'processing'")[0][0])

    def columns(self, table: Table) -> Sequence[str]:
        raise NotImplementedError

    def select(self, table: Table) -> str:
        return f"select {', '.join(self.columns(table))} from {self.prefix}{table.name}"

    def size(self, table: Table) -> int:
        return int(self._tx.raw(f"select count(*) from ({self.select(table)}) as found")[0][0])

    def pages(self, table: Table) -> Iterator[list[Row]]:
        yield from self._tx.pages(f"{self.select(table)} order by {table.order}", size=table.page)


class TableLoad:
    """Base of the two dialects. Within a transaction that excludes other writers."""

    prefix = ""
    other_tables: Sequence[str] = ("workers",)  # that a copy does not contain

    def __init__(self, tx: Transactions, *, records: bool = True) -> None:
        """`records`: whether to write an audit entry."""
        self._tx = tx
        self._records = records

    def is_untouched(self) -> bool:
        return bool(self._tx.value("is_untouched"))

    def make_room(self) -> None:
        self._delete(*SAMPLES, "audit")

    def clear(self) -> None:
        self._delete(*self.other_tables, *(table.name for table in reversed(TABLES)))

    def _delete(self, *tables: str) -> None:
        for name in tables:
            self._tx.raw_execute(f"delete from {self.prefix}{name}")

    def add(self, table: Table, columns: Sequence[str], rows: Iterable[Row]) -> None:
        raise NotImplementedError

    def moved(self, moves: Sequence[Row]) -> None:
        self._tx.executemany("moved", moves)

    def counts(self) -> dict[str, int]:
        return dict(self._tx.all("copied"))

    def record(self, act: Act, /) -> None:
        if self._records:
            self._tx.record(act)

    def continue_after(self, last_seq: int) -> None:
        """Let sequence numbers continue after this one."""
        raise NotImplementedError

    def finish(self, *, last_seq: int) -> None:
        self._tx.execute("note_undecided")
        self._tx.write_ageing(self._tx.ageing())
        self.continue_after(last_seq)
        # Jobs that ran may wait in the copy.
        update_key_limits(self._tx)


class Transfers:
    """Base of the two dialects."""

    def __init__(self, tx: Transactions, parts: ImportParts) -> None:
        self._tx = tx
        self._parts = parts

    def new_importer(self, transitions: Transitions) -> JobImporter:
        raise NotImplementedError

    @contextmanager
    def importer(self, settings: Mapping[str, str], *, rules: bool = False) -> Iterator[Importer]:
        # Ranks are computed by a rule that must not change meanwhile; changing it, or a limit, needs an exclusive lock.
        lock = "change_ageing" if rules or "ageing" in settings else "hold_ageing"
        importer = None
        try:
            with self._tx.write(lock, notify=True, seconds=self._tx.long_seconds) as transitions:
                self._parts.queues.write_config(settings)
                importer = self.new_importer(transitions)
                yield importer
                self._tx.record(Act("import", [*settings, *importer.imported]))
        except Exception as exc:
            if importer is not None:
                importer.refuse_duplicate_commit(exc)
            raise
        self._parts.resolver.try_to_resolve_all()
