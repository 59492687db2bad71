"""Jobs out of a SQLite store and into it, with their past. See store/porting.py."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from typing import NamedTuple

from queuectl import errors
from queuectl.job.ageing import format_ageing
from queuectl.job.alert import Alert
from queuectl.job.audit import Act
from queuectl.job.cron.model import Schedule
from queuectl.job.lifecycle import State
from queuectl.job.limits import Rules
from queuectl.job.model import Job, Run
from queuectl.job.newjob import NewJob
from queuectl.job.rank import ByTime
from queuectl.job.record import Record
from queuectl.store import rows, scheduling
from queuectl.store.alerting import alert_of, alert_values
from queuectl.store.batches import LastJob, last_jobs_of, pack_job
from queuectl.store.counting import OUTSIDE, Moves
from queuectl.store.linking import Parent
from queuectl.store.porting import LATEST_RUN, Door, Exported, edge_rows, exported, import_row, parents_wanted, run_rows
from queuectl.store.protocol import Filter
from queuectl.store.sqlite import select
from queuectl.store.sqlite.base import SQL
from queuectl.store.sqlite.connection import MEMORY, Connection
from queuectl.store.sqlite.edges import SqliteEdges
from queuectl.store.sqlite.reads import JOB, PAGE, SqliteReads
from queuectl.store.sqlite.unique import held
from queuectl.store.unique import keys_of, refuse_taken


class SqlitePorting(SqliteReads, SqliteEdges):
    def export(self, where: Filter, *, history: bool) -> Iterator[Exported]:
        clause, values = select.where(where)
        sql = f"select {LATEST_RUN}, {JOB} from jobs{clause} order by seq"
        present = self._present()
        with self._another() as db, db.snapshot():
            for page in db.pages(sql, values, size=PAGE):
                earlier = _histories(db, [row[4] for row in page]) if history else {}
                for row in page:
                    job = rows.job(row[4:], present)
                    yield exported(row[:4], job, earlier.get(job.seq, ()), history=history)

    @contextmanager
    def importing(self, settings: Mapping[str, str], *, rules: bool = False) -> Iterator[Door]:  # noqa: ARG002 # one writer
        with self._moving() as moves:
            self._write_config(settings)
            door = _SqliteDoor(self, self._db, moves, _Hands(self._add_records, self._link_records, self._write_rules))
            yield door
            self._record(Act("import", [*settings, *door.taken_in]))
        self.try_to_settle_children()
        self._ring()

    def _another(self) -> AbstractContextManager[Connection]:
        # What is in memory is seen by its own connection only.
        return nullcontext(self._db) if self._db.path == MEMORY else closing(self._db.beside())

    def _write_config(self, changes: Mapping[str, str | None]) -> None:
        """Within a transaction. As `set_config`."""
        before = self._ageing()
        for key, value in changes.items():
            if value is None:
                self._db.execute(SQL["unset_config"], {"key": key})
            else:
                self._db.execute(SQL["set_config"], {"key": key, "value": value})
        ageing = self._ageing()
        # By their words: kinds without a value are empty tuples, and as tuples those are all equal.
        if format_ageing(ageing) != format_ageing(before):
            step_ms = ageing.step_ms if isinstance(ageing, ByTime) else 0
            self._db.execute(SQL["rerank"], {"ageing": format_ageing(ageing), "step_ms": step_ms})
            self._line_up_all()

    def _add_records(self, records: Sequence[Record]) -> None:
        now, ageing, last_seq = self._clock.now_ms(), self._ageing(), self._last_seq()
        refuse_taken(records, held(self._db, keys_of(records)))
        numbered = list(enumerate(records, last_seq + 1))
        self._db.executemany(
            SQL["import_job"],
            (import_row(record, seq=seq, now_ms=now, ageing=ageing) for seq, record in numbered),
        )
        self._db.executemany(SQL["import_run"], (row for seq, record in numbered for row in run_rows(record, seq)))
        self._db.executemany(SQL["tag"], ((tag, seq) for seq, record in numbered for tag in record.tags))
        for batch, jobs in sorted(Counter(record.batch for record in records if record.batch is not None).items()):
            self._db.value(SQL["join_batch"], {"name": batch, "jobs": jobs, "now": now})

    def _link_records(self, records: Sequence[Record]) -> None:
        found = self._db.all(SQL["new_parents"], {"ids": json.dumps(parents_wanted(records))})
        present = {id_: Parent(seq, State(state)) for id_, seq, state in found}
        edges = [row for record in records for row in edge_rows(record, present)]
        self._db.executemany(SQL["link"], edges)
        self._db.executemany(SQL["leave_undecided"], [(seq,) for seq in {row[0] for row in edges}])


class _Hands(NamedTuple):
    """What of the store a door needs that is nobody else's."""

    insert: Callable[[Sequence[Record]], None]
    link: Callable[[Sequence[Record]], None]
    write_rules: Callable[[str, Rules, Rules], None]


class _SqliteDoor:
    """Within a transaction."""

    def __init__(self, store: SqlitePorting, db: Connection, moves: Moves, hands: _Hands) -> None:
        self._store = store
        self._hands = hands
        self.link = hands.link
        self._db = db
        self._moves = moves
        self.taken_in: list[str] = []

    def now_ms(self) -> int:
        return self._store.now_ms()

    def rules(self) -> dict[str, Rules]:
        return self._store.rules()

    def set_rules(self, queue: str, rules: Rules) -> None:
        self._hands.write_rules(queue, self.rules().get(queue, Rules()), rules)
        self.taken_in.append(queue)

    def schedules(self) -> list[Schedule]:
        return [scheduling.schedule(row) for row in self._db.all(SQL["schedules"])]

    def add_schedule(self, schedule: Schedule) -> None:
        if not self._db.execute(SQL["add_schedule"], scheduling.schedule_values(schedule)).rowcount:
            raise errors.ScheduleExists(schedule.name)
        self.taken_in.append(schedule.name)

    def alerts(self) -> list[Alert]:
        return [alert_of(row) for row in self._db.all(SQL["alerts"])]

    def add_alert(self, alert: Alert) -> None:
        if not self._db.execute(SQL["add_alert"], alert_values(alert)).rowcount:
            raise errors.AlertExists(alert.name)
        self.taken_in.append(alert.name)

    def last_jobs(self) -> dict[str, LastJob]:
        return last_jobs_of(self._db.all(SQL["batches"]))

    def complete_with(self, batch: str, job: NewJob) -> None:
        self._db.value(SQL["join_batch"], {"name": batch, "jobs": 0, "now": self.now_ms()})
        if not self._db.execute(SQL["set_on_complete"], {"name": batch, "job": pack_job(job)}).rowcount:
            raise errors.BatchDiffers(batch)
        self.taken_in.append(batch)

    def present(self, ids: Sequence[str]) -> dict[str, Job]:
        return {job.id: job for job in self._store.jobs(Filter(ids=tuple(ids)))} if ids else {}

    def add(self, records: Sequence[Record]) -> None:
        try:
            self._hands.insert(records)
        except sqlite3.IntegrityError as exc:
            # Some of these may be in by now: what was there before has come before them.
            found = sorted(self.present([record.id for record in records]).values(), key=lambda job: job.seq)
            if "jobs.id" not in str(exc) or not found:
                raise errors.StoreFailed(self._db.path, str(exc)) from exc
            raise errors.DuplicateId(found[0].id) from exc
        self.taken_in += [record.id for record in records]
        for record in records:
            self._moves.add(record.queue, OUTSIDE, record.state)


def _histories(db: Connection, seqs: Sequence[int]) -> dict[int, list[Run]]:
    found: dict[int, list[Run]] = {}
    for seq, *run in db.all(SQL["histories"], {"seqs": json.dumps(seqs)}):
        found.setdefault(seq, []).append(rows.run(tuple(run)))
    return found
