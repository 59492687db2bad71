"""Import and export of jobs with their history, and copies of a whole store.

A copy consists of pages of plain rows, with the same columns and values in both dialects. Columns that only one dialect has are omitted
on reading and filled in on writing.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from queuectl.errors import BatchDiffers
from queuectl.errors.jobs import ParentNotFound
from queuectl.jobs.audit import Act
from queuectl.jobs.dependencies import DependencyState, evaluate, orphan_error
from queuectl.jobs.fingerprint import fingerprint
from queuectl.jobs.import_record import ImportRecord
from queuectl.jobs.model import Job
from queuectl.jobs.priority import Ageing, Standing, rank
from queuectl.jobs.queue_limits import QueueSettings
from queuectl.jobs.states import State, is_final
from queuectl.store.batches import pack_job
from queuectl.store.dependencies import EdgeRow, ParentState, read_parents
from queuectl.store.queues import update_key_limits
from queuectl.store.transactions import OUTSIDE, Transactions, Transitions
from queuectl.store.types import Filter, Row
from queuectl.store.unique import lock_holders, refuse_taken

if TYPE_CHECKING:
    from queuectl.alerts.rules import Alert
    from queuectl.cron.schedule import Schedule
    from queuectl.jobs.spec import NewJob
    from queuectl.store.store import Store


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
    Table("schedule_runs", "schedule, at, by_hand"),
    Table("alerts", "name"),
    Table("requests", "key"),
    Table("webhook_outbox", "at, job, run, event"),
    Table("points", "span, queue, at"),
    Table("counters", "queue"),
    Table("buckets", "queue, what, bucket"),
    Table("sampling", "one"),
    Table("audit", "seq"),
)


# ── rows ────────────────────────────────────────────────────────────────────────────────────────────────────────────


# In the order of `import_job`.
_COLUMNS: Final = (
    "seq id command argv state queue ready priority rank eligible_at effective_priority run_at held max_retries "
    "first_is_free backoff_base timeout_ms cwd env tags unique_key cron attempts runs crashes worker host pid "
    "started_at finished_at duration_ms wait_ms exit_code signal error ending created_at updated_at batch key "
    "depends_on places hooks limits usage secrets last_output fingerprint"
)


def import_row(record: ImportRecord, *, seq: int, now_ms: int, ageing: Ageing) -> Row:
    """The parameters of `import_job`."""
    may_run = record.state in (State.PENDING, State.FAILED) and not record.held
    values = record._asdict() | {
        "seq": seq,
        "ready": may_run and record.run_at <= now_ms,
        "rank": rank(ageing, Standing(record.priority, seq, record.eligible_at, 0)),
        "depends_on": [parent.to_json() for parent in record.depends_on],
    }
    for name in ("argv", "env", "depends_on", "hooks", "limits", "usage", "secrets"):
        values[name] = json.dumps(values[name]) if values[name] else None
    values["tags"] = json.dumps(record.tags)
    values["fingerprint"] = fingerprint(record.state, record.error, record.last_output)
    return tuple(values[column] for column in _COLUMNS.split())


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


# ── import ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Importer(ABC):
    """An import: one transaction. Base of the two dialects."""

    def __init__(self, store: Store, transitions: Transitions) -> None:
        self.store = store
        self._tx = store.tx
        self._transitions = transitions
        self.imported: list[str] = []  # IDs and names, for the audit entry
        self._last_ids: list[str] = []
        self.now_ms = store.now_ms

    @abstractmethod
    def take_seqs(self, count: int) -> tuple[Ageing, Sequence[int]]: ...

    @abstractmethod
    def insert_rows(self, jobs: Sequence[Row], runs: Sequence[Row], tags: Sequence[Row]) -> None: ...

    @abstractmethod
    def insert_links(self, edges: Sequence[EdgeRow]) -> None: ...

    @abstractmethod
    def refuse_duplicate(self, exc: Exception) -> None:
        """After the transaction failed with this error: raise DuplicateId if that is the reason."""

    def set_rules(self, queue: str, rules: QueueSettings) -> None:
        """Replace all rules of a queue. Requires an import with `rules`."""
        self.store.queues.write_rules(queue, self.store.queues.lock_rules(queue), rules)
        self.imported.append(queue)

    def add_schedule(self, schedule: Schedule) -> None:
        """Raises ScheduleExists if the name is taken."""
        self.store.schedules.insert(schedule)
        self.imported.append(schedule.name)

    def add_alert(self, alert: Alert) -> None:
        """Raises AlertExists if the name is taken."""
        self.store.alerts.insert(alert)
        self.imported.append(alert.name)

    def complete_with(self, batch: str, job: NewJob) -> None:
        """Set the completion job of a batch. Raises BatchDiffers if it has another one."""
        self._tx.value("join_batch", {"name": batch, "jobs": 0, "now": self.now_ms()})
        if not self._tx.execute("set_on_complete", {"name": batch, "job": pack_job(job)}):
            raise BatchDiffers(batch)
        self.imported.append(batch)

    def present(self, ids: Sequence[str]) -> dict[str, Job]:
        """Those of these jobs, at most a page of them, that exist."""
        return {job.id: job for job in self.store.jobs(Filter(ids=tuple(ids)))} if ids else {}

    def add(self, records: Sequence[ImportRecord]) -> None:
        """Insert jobs with their history after all others, in this order. Raises DuplicateId if an ID is taken."""
        if not records:
            return
        refuse_taken(records, lock_holders(self._tx, records))
        ageing, seqs = self.take_seqs(len(records))
        now = self.now_ms()
        numbered = list(zip(seqs, records, strict=True))
        jobs = [import_row(record, seq=seq, now_ms=now, ageing=ageing) for seq, record in numbered]
        runs = [
            (seq, *run[:-1], json.dumps(run.usage) if run.usage else None)  # in the order of `import_run`
            for seq, record in numbered
            for run in record.earlier
        ]
        self._last_ids = [record.id for record in records]
        self.insert_rows(jobs, runs, [(tag, seq) for seq, record in numbered for tag in record.tags])
        for batch, count in sorted(Counter(record.batch for record in records if record.batch is not None).items()):
            self._tx.value("join_batch", {"name": batch, "jobs": count, "now": now})
        self.imported += self._last_ids
        for record in records:
            self._transitions.add(record.queue, OUTSIDE, record.state)

    def link(self, records: Sequence[ImportRecord]) -> None:
        """Store the dependencies of inserted jobs, when all are inserted. Raises ParentNotFound for a blocked job whose parents do
        not exist."""
        ids = sorted({id_ for record in records for id_ in (record.id, *(parent.id for parent in record.depends_on))})
        present = read_parents(self._tx.all("new_parents", {"ids": self._tx.array(ids)}))
        self.insert_links([row for record in records for row in edge_rows(record, present)])


# ── copy ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Dump(ABC):
    """A store as of one moment, however long the caller takes. Base of the two dialects."""

    prefix = ""  # of table names

    def __init__(self, tx: Transactions) -> None:
        self._tx = tx
        self.config = tx.config
        self.last_seq = tx.last_seq

    def counts(self) -> dict[str, int]:
        """The number of jobs, runs and so on, by name."""
        return dict(self._tx.all("copied"))

    def running(self) -> int:
        return int(self._tx.raw(f"select count(*) from {self.prefix}jobs where state = 'processing'")[0][0])

    @abstractmethod
    def columns(self, table: Table) -> Sequence[str]:
        """The columns that both dialects have."""

    def select(self, table: Table) -> str:
        return f"select {', '.join(self.columns(table))} from {self.prefix}{table.name}"

    def size(self, table: Table) -> int:
        return int(self._tx.raw(f"select count(*) from ({self.select(table)}) as found")[0][0])

    def pages(self, table: Table) -> Iterator[list[Row]]:
        """All rows, in the order of the table and of `columns`, in bounded memory."""
        yield from self._tx.pages(f"{self.select(table)} order by {table.order}", size=table.page)


class Load(ABC):
    """A store to be filled, in one transaction that excludes other writers. Base of the two dialects."""

    prefix = ""
    other_tables: Sequence[str] = ("workers",)  # that a copy does not contain

    def __init__(self, tx: Transactions, *, records: bool = True) -> None:
        """`records`: whether to write an audit entry."""
        self._tx = tx
        self._records = records

    def is_untouched(self) -> bool:
        """Whether it has no job, no setting and no history, and never had a job."""
        return bool(self._tx.value("is_untouched"))

    def clear_unused(self) -> None:
        """Remove what an unused store may contain: samples and audit entries."""
        self._delete(*SAMPLES, "audit")

    def clear(self) -> None:
        """Remove everything, including settings, counters and workers."""
        self._delete(*self.other_tables, *(table.name for table in reversed(TABLES)))

    def _delete(self, *tables: str) -> None:
        for name in tables:
            self._tx.raw_execute(f"delete from {self.prefix}{name}")

    @abstractmethod
    def add(self, table: Table, columns: Sequence[str], rows: Iterable[Row]) -> None: ...

    def add_transitions(self, moves: Sequence[Row]) -> None:
        """Add state transitions to the copied counters, see store/transactions.py."""
        self._tx.executemany("moved", moves)

    def counts(self) -> dict[str, int]:
        return dict(self._tx.all("copied"))

    def record(self, act: Act) -> None:
        """Write an audit entry, last of all."""
        if self._records:
            self._tx.record(act)

    @abstractmethod
    def continue_after(self, last_seq: int) -> None:
        """Let sequence numbers continue after this one."""

    def finish(self, *, last_seq: int) -> None:
        """When all rows are inserted: sequence numbers continue after `last_seq`, and the settings take effect."""
        self._tx.execute("note_undecided")
        self._tx.write_ageing(self._tx.ageing())
        self.continue_after(last_seq)
        # Jobs that ran may wait in the copy.
        update_key_limits(self._tx)


class Transfers(ABC):
    """Import, and copies of a whole store. Base of the two dialects."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tx = store.tx

    @abstractmethod
    def new_importer(self, transitions: Transitions) -> Importer: ...

    @abstractmethod
    def identity(self) -> str:
        """Equal for two stores if they are the same database, whatever their addresses."""

    @abstractmethod
    def dump(self) -> AbstractContextManager[Dump]: ...

    @abstractmethod
    def load(self) -> AbstractContextManager[Load]:
        """Commits at the end; any exception rolls back."""

    @contextmanager
    def importer(self, settings: Mapping[str, str], *, rules: bool = False) -> Iterator[Importer]:
        """Import jobs and these settings, with `rules` also queue rules: all or nothing. Commits at the end; any exception rolls
        back."""
        # Ranks are computed by a rule that must not change meanwhile; changing it, or a limit, needs an exclusive lock.
        lock = "change_ageing" if rules or "ageing" in settings else "hold_ageing"
        importer = None
        try:
            with self._tx.write(lock, notify=True, seconds=self._tx.long_seconds) as transitions:
                self._store.write_config(settings)
                importer = self.new_importer(transitions)
                yield importer
                self._tx.record(Act("import", [*settings, *importer.imported]))
        except Exception as exc:
            if importer is not None:
                importer.refuse_duplicate(exc)
            raise
        self._store.dependencies.try_to_resolve_all()
