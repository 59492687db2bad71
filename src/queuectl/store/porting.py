"""The seam for jobs that leave a store and come into one as records, with their past. See queue/export.py and importing.py."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from queuectl.errors.flow import ParentNotFound
from queuectl.job.graph import EdgeState, judge, orphan_error
from queuectl.job.lifecycle import State, is_final
from queuectl.job.limits import Rules
from queuectl.job.model import Job, Run
from queuectl.job.outcome import Ending
from queuectl.job.rank import Ageing, Standing, rank
from queuectl.job.record import Record
from queuectl.store.linking import EdgeRow, Parent
from queuectl.store.rows import read_usage

if TYPE_CHECKING:
    from queuectl.job.alert import Alert
    from queuectl.job.cron.model import Schedule
    from queuectl.job.newjob import NewJob
    from queuectl.store.batches import LastJob
    from queuectl.store.protocol import Filter

Row = tuple[Any, ...]

# Read behind the columns of a job: what only the history tells of its latest run.
LATEST_RUN: Final = "host, pid, ending, usage"


class Exported(NamedTuple):
    job: Job
    history: list[Run]  # in order; empty where nobody asked for it


class Exports(Protocol):
    def export(self, where: Filter, *, history: bool) -> Iterator[Exported]:
        """The jobs that match in the order of enqueue, with all their runs if asked for, in bounded memory.

        All of them as they are at one moment, however long the reader takes; it may use the store meanwhile.
        """
        ...


class Said(Protocol):
    """What is there beside jobs."""

    def rules(self) -> dict[str, Rules]: ...

    def schedules(self) -> list[Schedule]: ...

    def alerts(self) -> list[Alert]: ...

    def last_jobs(self) -> dict[str, LastJob]: ...


class Door(Said, Protocol):
    """Within one transaction: nothing that came in is there for others until all of it is."""

    def now_ms(self) -> int: ...

    def set_rules(self, queue: str, rules: Rules) -> None:
        """All that is said about a queue. Only through a door that was opened with `rules`."""
        ...

    def add_schedule(self, schedule: Schedule) -> None:
        """Raises ScheduleExists if the name is taken."""
        ...

    def add_alert(self, alert: Alert) -> None:
        """Raises AlertExists if the name is taken."""
        ...

    def complete_with(self, batch: str, job: NewJob) -> None:
        """What runs when all of a batch has ended. Raises BatchDiffers if that is something else already."""
        ...

    def present(self, ids: Sequence[str]) -> dict[str, Job]:
        """Those of these ids, at most a page of them, that the store has."""
        ...

    def add(self, records: Sequence[Record]) -> None:
        """Put jobs in, with their past, at the end of the line, in this order. Raises DuplicateId if an id is taken."""
        ...

    def link(self, records: Sequence[Record]) -> None:
        """Let those that were put in depend on their parents, now that all of them are there. Raises ParentNotFound for one that
        is blocked by jobs that are not."""
        ...


class Imports(Protocol):
    def importing(self, settings: Mapping[str, str], *, rules: bool = False) -> AbstractContextManager[Door]:
        """A way in, for jobs and for these settings, and with `rules` for what is said about queues: all of it or nothing.
        Commits at the end; any exception leaves the store as it was."""
        ...


def exported(row: Row, job: Job, earlier: Iterable[Run], *, history: bool) -> Exported:
    """`row`: the columns of LATEST_RUN."""
    host, pid, ending, usage = row
    if not history or (ending is None and job.state is not State.PROCESSING):
        return Exported(job, list(earlier))
    latest = Run(
        number=job.runs,
        worker=job.worker or "",
        host=host or "",
        pid=pid,
        started_at=job.started_at,
        finished_at=job.finished_at,
        duration_ms=job.duration_ms,
        exit_code=job.exit_code,
        signal=job.signal,
        error=job.error,
        outcome=Ending.RUNNING if ending is None else Ending(ending),
        log_from=None,
        log_to=None,
        usage=read_usage(usage),
    )
    return Exported(job, [*earlier, latest])


def import_row(record: Record, *, seq: int, now_ms: int, ageing: Ageing) -> Row:
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


def parents_wanted(records: Sequence[Record]) -> list[str]:
    """The ids of all that an edge of theirs touches."""
    return sorted({id_ for record in records for id_ in (record.id, *(parent.id for parent in record.depends_on))})


def edge_rows(record: Record, present: Mapping[str, Parent]) -> Iterator[EdgeRow]:
    """The parameters of `link`. A job that is blocked waits for all its parents that are there, and is told what became of them
    as any other is; those that are gone had satisfied it. For one that is not, an edge only says what has been."""
    parents = [parent for parent in record.depends_on if parent.id in present]
    is_blocked = record.state == State.BLOCKED
    if is_blocked and len(parents) < len(record.depends_on) and all(is_final(present[one.id].state) for one in parents):
        # Whether the others have ended as it needs, nobody knows; without them it would run at once.
        missing = next(parent.id for parent in record.depends_on if parent.id not in present)
        raise ParentNotFound(missing, child=record.id)
    for parent in parents:
        state = present[parent.id].state
        now = judge(parent.when, parent.otherwise, state)
        if is_blocked:
            now = EdgeState.WAITING
        elif now is EdgeState.WAITING or (now is EdgeState.BROKE and record.error != orphan_error(parent.id, state)):
            now = EdgeState.VOID
        yield present[parent.id].seq, present[record.id].seq, parent.when, parent.otherwise, now


def run_rows(record: Record, seq: int) -> Iterator[Row]:
    """The parameters of `import_run`, in its order."""
    return ((seq, *run[:-1], json.dumps(run.usage) if run.usage else None) for run in record.earlier)
