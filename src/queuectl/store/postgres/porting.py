"""Jobs out of a PostgreSQL store and into it, with their past. See store/porting.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
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
from queuectl.job.record import Record
from queuectl.store import limits, rows, scheduling
from queuectl.store.alerting import alert_of, alert_values
from queuectl.store.batches import LastJob, last_jobs_of, pack_job
from queuectl.store.counting import OUTSIDE, Moves
from queuectl.store.linking import Parent
from queuectl.store.porting import LATEST_RUN, Door, Exported, edge_rows, exported, import_row, parents_wanted, run_rows
from queuectl.store.postgres import select
from queuectl.store.postgres.base import ageing_values, line_up_all, read_ageing
from queuectl.store.postgres.connection import LONG_SECONDS, SNAPSHOT, SQL, Connection, Question
from queuectl.store.postgres.edges import PostgresEdges
from queuectl.store.postgres.reads import JOB, PAGE, PostgresReads
from queuectl.store.postgres.trouble import Taken
from queuectl.store.postgres.unique import held
from queuectl.store.protocol import Filter
from queuectl.store.unique import keys_of, refuse_taken

_NO_TOKEN = ""  # of a run about which nobody may write


class PostgresPorting(PostgresReads, PostgresEdges):
    def export(self, where: Filter, *, history: bool) -> Iterator[Exported]:
        clause, values = select.where(where)
        sql = f"select {LATEST_RUN}, {JOB} from queuectl.jobs{clause} order by seq"
        with (
            closing(self._db.beside()) as db,
            db.transaction(begin=SNAPSHOT, seconds=LONG_SECONDS, plan_freely=True),
        ):
            present = self._present(db.ask(*self._present_questions()))
            for page in db.pages(sql, values, size=PAGE):
                earlier = _histories(db, [row[4] for row in page]) if history else {}
                for row in page:
                    job = rows.job(row[4:], present)
                    yield exported(row[:4], job, earlier.get(job.seq, ()), history=history)

    @contextmanager
    def importing(self, settings: Mapping[str, str], *, rules: bool = False) -> Iterator[Door]:
        # Jobs are ranked by a rule that nobody may change meanwhile; whoever changes it, or a limit, has to be alone.
        lock = Question(SQL["change_ageing" if rules or "ageing" in settings else "hold_ageing"])
        door = _PostgresDoor(self, self._db, _Hands(self._add_records, self._link_records, self._write_rules))
        try:
            with self._moving(lock, ring=True, seconds=LONG_SECONDS) as moves:
                door.moves = moves
                self._write_config(settings)
                yield door
                self._record(Act("import", [*settings, *door.taken_in]))
        except Taken as exc:
            # Somebody was faster with one of these ids.
            (found,) = self._db.ask(Question(SQL["duplicate"], {"ids": door.ids}))
            if not found:
                raise
            raise errors.DuplicateId(found[0][0]) from exc
        self.try_to_settle_children()

    def _write_config(self, changes: Mapping[str, str | None]) -> None:
        """Within a transaction. As `set_config`."""
        before = read_ageing(self._db.value(SQL["ageing"]))
        for key, value in sorted(changes.items()):
            if value is None:
                self._db.execute(SQL["unset_config"], {"key": key})
            else:
                self._db.execute(SQL["set_config"], {"key": key, "value": value})
        ageing = read_ageing(self._db.value(SQL["ageing"]))
        if format_ageing(ageing) != format_ageing(before):
            values = ageing_values(ageing)
            self._db.execute(SQL["set_ageing"], values)
            self._db.execute(SQL["rerank"], values)
            line_up_all(self._db)

    def _add_records(self, records: Sequence[Record]) -> None:
        refuse_taken(records, held(self._db, keys_of(records)))
        stored, places = self._db.ask(
            Question(SQL["ageing"]), Question(SQL["take_places"], {"ids": [], "jobs": len(records)})
        )
        now, ageing = self._clock.now_ms(), read_ageing(stored[0][0] if stored else None)
        numbered = list(zip(places[0][0], records, strict=True))
        self._db.copy(
            SQL["import_job"],
            ((*import_row(record, seq=seq, now_ms=now, ageing=ageing), _NO_TOKEN) for seq, record in numbered),
        )
        runs = [(*row, _NO_TOKEN) for seq, record in numbered for row in run_rows(record, seq)]
        if runs:
            self._db.copy(SQL["import_run"], runs)
        if any(record.tags for record in records):
            self._db.copy(SQL["tag_many"], ((tag, seq) for seq, record in numbered for tag in record.tags))
        for batch, jobs in sorted(Counter(record.batch for record in records if record.batch is not None).items()):
            self._db.value(SQL["join_batch"], {"name": batch, "jobs": jobs, "now": now})

    def _link_records(self, records: Sequence[Record]) -> None:
        found = self._db.all(SQL["new_parents"], {"ids": parents_wanted(records)})
        present = {id_: Parent(seq, State(state)) for id_, seq, state in found}
        edges = [row for record in records for row in edge_rows(record, present)]
        self._db.copy(SQL["link"], edges)
        # One that ends at this moment cannot see yet who waits for it.
        self._db.copy(SQL["leave_undecided"], ((seq,) for seq in {row[0] for row in edges}))


class _Hands(NamedTuple):
    """What of the store a door needs that is nobody else's."""

    insert: Callable[[Sequence[Record]], None]
    link: Callable[[Sequence[Record]], None]
    write_rules: Callable[[str, Rules, Rules], None]


class _PostgresDoor:
    """Within a transaction."""

    def __init__(self, store: PostgresPorting, db: Connection, hands: _Hands) -> None:
        self.moves = Moves()
        self.ids: list[str] = []  # of what was added last
        self.taken_in: list[str] = []
        self._store = store
        self._hands = hands
        self.link = hands.link
        self._db = db

    def now_ms(self) -> int:
        return self._store.now_ms()

    def rules(self) -> dict[str, Rules]:
        return self._store.rules()

    def set_rules(self, queue: str, rules: Rules) -> None:
        (before,) = self._db.all(SQL["take_rules"], {"name": queue})
        self._hands.write_rules(queue, limits.rules(before), rules)
        self.taken_in.append(queue)

    def schedules(self) -> list[Schedule]:
        return [scheduling.schedule(row) for row in self._db.all(SQL["schedules"])]

    def add_schedule(self, schedule: Schedule) -> None:
        if not self._db.execute(SQL["add_schedule"], scheduling.schedule_values(schedule)):
            raise errors.ScheduleExists(schedule.name)
        self.taken_in.append(schedule.name)

    def alerts(self) -> list[Alert]:
        return [alert_of(row) for row in self._db.all(SQL["alerts"])]

    def add_alert(self, alert: Alert) -> None:
        if not self._db.execute(SQL["add_alert"], alert_values(alert)):
            raise errors.AlertExists(alert.name)
        self.taken_in.append(alert.name)

    def last_jobs(self) -> dict[str, LastJob]:
        return last_jobs_of(self._db.all(SQL["batches"]))

    def complete_with(self, batch: str, job: NewJob) -> None:
        self._db.value(SQL["join_batch"], {"name": batch, "jobs": 0, "now": self.now_ms()})
        if not self._db.execute(SQL["set_on_complete"], {"name": batch, "job": pack_job(job)}):
            raise errors.BatchDiffers(batch)
        self.taken_in.append(batch)

    def present(self, ids: Sequence[str]) -> dict[str, Job]:
        return {job.id: job for job in self._store.jobs(Filter(ids=tuple(ids)))} if ids else {}

    def add(self, records: Sequence[Record]) -> None:
        self.ids = [record.id for record in records]
        if records:
            self._hands.insert(records)
        self.taken_in += self.ids
        for record in records:
            self.moves.add(record.queue, OUTSIDE, record.state)


def _histories(db: Connection, seqs: Sequence[int]) -> dict[int, list[Run]]:
    found: dict[int, list[Run]] = {}
    for seq, *run in db.all(SQL["histories"], {"seqs": list(seqs)}):
        found.setdefault(seq, []).append(rows.run(tuple(run)))
    return found
