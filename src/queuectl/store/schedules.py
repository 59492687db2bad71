"""Schedules: their rows, and the transaction that writes a decision about one."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from queuectl.cron.schedule import Overlap, PastRun, RunDecision, Schedule, ScheduleChange, ScheduleView, UnfinishedJob
from queuectl.errors import ScheduleExists, ScheduleNotFound
from queuectl.jobs.states import State
from queuectl.jobs.unique import Holder, UniqueAction, decide_unique
from queuectl.store.audit import run_by_hand, scheduled
from queuectl.store.conflicts import retry_conflicts
from queuectl.store.dependencies import Resolver
from queuectl.store.enqueue import EnqueueSteps
from queuectl.store.transactions import Transactions, Transitions
from queuectl.store.types import Row, ScheduleCheck
from queuectl.store.unique import keys_of

RUNS_KEPT: Final = 100  # past runs of each schedule
MAX_UNFINISHED_READ: Final = 5  # a rule needs to know whether there is one

Rule = Callable[[ScheduleView], ScheduleChange | None]


class _Unchanged(Exception):  # not an error: rolls back a transaction in which nothing was written
    """The rule returned None."""


class UniqueRuns(NamedTuple):
    """Runs, without the jobs whose unique key is taken; and by the ID of a new job, the waiting job that it replaces."""

    runs: list[RunDecision]
    replaced: dict[str, str]


def apply_unique_keys(runs: Sequence[RunDecision], held: Mapping[str, Holder], *, now_ms: int) -> UniqueRuns:
    """Skip the jobs whose unique key another job has, unless they replace it. `held`: the jobs that have the keys."""
    decided, taken = UniqueRuns([], {}), dict(held)
    last = {run.job.unique_key: run.job.id for run in runs if run.job is not None}
    for run in runs:
        job = run.job
        if job is None or (key := job.unique_key) is None:
            decided.runs.append(run)
            continue
        holder = taken.get(key)
        what = UniqueAction.ADD if holder is None else decide_unique(job, holder, now_ms=now_ms)
        if job.if_exists == "replace" and job.id != last[key]:
            decided.runs.append(_skipped(run, f"job {last[key]} of a later time takes its place"))
        elif holder is not None and what in {UniqueAction.SKIP, UniqueAction.REFUSE}:
            decided.runs.append(_skipped(run, f"job {holder.id} has the key {key!r}"))
        else:
            if holder is not None and what is UniqueAction.REPLACE:
                decided.replaced[str(job.id)] = holder.id
            decided.runs.append(run)
            taken[key] = Holder(str(job.id), State.PENDING, now_ms)
    return decided


def skip_complete_batches(runs: Sequence[RunDecision], complete: Collection[str]) -> list[RunDecision]:
    """Skip the jobs of batches that are complete: their completion job has been enqueued."""
    return [
        _skipped(run, f"the batch {run.job.batch!r} is complete")
        if run.job is not None and run.job.batch in complete
        else run
        for run in runs
    ]


def _skipped(run: RunDecision, reason: str) -> RunDecision:
    return run._replace(job=None, is_held=False, reason=reason)


# ── rows ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_schedule(row: Row) -> Schedule:
    """From the columns of `schedule`."""
    found = Schedule._make(row)
    return found._replace(fields=json.loads(row[4]), overlap=Overlap(found.overlap), is_paused=bool(found.is_paused))


def schedule_values(one: Schedule) -> dict[str, Any]:
    """The parameters of `add_schedule` and `change_schedule`."""
    return {**one._asdict(), "fields": json.dumps(one.fields), "overlap": one.overlap.value}


def run_values(name: str, run: RunDecision, *, now_ms: int) -> dict[str, Any]:
    """The parameters of `add_schedule_run`."""
    return {**run._asdict(), "schedule": name, "now": now_ms, "job": None if run.job is None else run.job.id}


def past_run(row: Row) -> PastRun:
    """From the columns of `schedule_runs`."""
    found = PastRun._make(row)
    return found._replace(is_by_hand=bool(found.is_by_hand), state=None if found.state is None else State(found.state))


class Schedules:
    def __init__(self, tx: Transactions, enqueuer: EnqueueSteps, resolver: Resolver) -> None:
        self._tx = tx
        self._enqueuer = enqueuer
        self._resolver = resolver

    def all(self) -> list[Schedule]:
        """All schedules, by name."""
        return [read_schedule(row) for row in self._tx.all("schedules")]

    def get(self, name: str) -> Schedule:
        """Raises ScheduleNotFound."""
        return self._read("schedule", name)

    def runs(self, name: str, *, limit: int, fired: bool = False) -> list[PastRun]:
        """The past runs of a schedule, the latest first; `fired`: only those that enqueued a job. At most RUNS_KEPT are
        kept."""
        return [
            past_run(row) for row in self._tx.all("schedule_runs", {"schedule": name, "fired": fired, "limit": limit})
        ]

    def checks(self, *, limit: int) -> list[ScheduleCheck]:
        """The schedules that have to be evaluated next, the earliest first."""
        now = self._tx.clock.now_ms()
        return [ScheduleCheck(name, max(0, at - now)) for name, at in self._tx.all("schedule_checks", {"limit": limit})]

    @retry_conflicts
    def add(self, schedule: Schedule) -> None:
        """Raises ScheduleExists if the name is taken."""
        with self._tx.write(notify=True):
            self.insert(schedule)
            self._tx.record(scheduled(None, schedule))

    def insert(self, schedule: Schedule) -> None:
        """Within a transaction. Raises ScheduleExists."""
        if not self._tx.execute("add_schedule", schedule_values(schedule)):
            raise ScheduleExists(schedule.name)

    @retry_conflicts
    def change(self, name: str, rule: Rule) -> ScheduleChange | None:
        """Let `rule` decide about a schedule, and write its decision: the schedule, its runs and their jobs, in one transaction
        that excludes other decisions about it. Returns what was written, None if the rule returned None. Raises
        ScheduleNotFound.

        A run that was decided before is skipped, with its job, so each is enqueued once. The rule may be called again after a
        conflict with another transaction.
        """
        try:
            with self._tx.write("hold_ageing", notify=True) as transitions:
                change, written = self._apply(name, rule, transitions)
        except _Unchanged:
            return None
        if any(run.job is not None and run.job.if_exists == "replace" for run in written):
            self._resolver.try_to_resolve_all()  # a replaced job may have had children
        return change._replace(ticks=tuple(written))

    def _apply(self, name: str, rule: Rule, transitions: Transitions) -> tuple[ScheduleChange, list[RunDecision]]:
        schedule, now = self._read(self._tx.locked_schedule, name), self._tx.clock.now_ms()
        values = {"name": name, "waiting": schedule.waiting, "limit": MAX_UNFINISHED_READ}
        unfinished = tuple(UnfinishedJob(id_, bool(held)) for id_, held in self._tx.all("unfinished_jobs", values))
        change = rule(ScheduleView(schedule, now, unfinished))
        if change is None:
            raise _Unchanged
        self._tx.execute("change_schedule", schedule_values(change.schedule))
        if change.release is not None:
            self._tx.execute("release_job", {"id": change.release, "now": now})
        written = self._write_runs(name, change.ticks, now, transitions)
        self._tx.record(scheduled(schedule, change.schedule))
        self._tx.record(run_by_hand(written))
        return change, written

    @retry_conflicts
    def remove(self, name: str) -> None:
        """Also removes its past runs. Its jobs stay; one that was held back until earlier ones ended is released. Raises
        ScheduleNotFound."""
        with self._tx.write(notify=True):
            schedule = self._read(self._tx.locked_schedule, name)
            self._tx.execute("remove_schedule", {"name": name})
            if schedule.waiting is not None:
                self._tx.execute("release_job", {"id": schedule.waiting, "now": self._tx.clock.now_ms()})
            self._tx.record(scheduled(schedule, None))

    def _read(self, statement: str, name: str) -> Schedule:
        row = self._tx.one(statement, {"name": name})
        if row is None:
            raise ScheduleNotFound(name)
        return read_schedule(row)

    def _write_runs(
        self, name: str, runs: Sequence[RunDecision], now: int, transitions: Transitions
    ) -> list[RunDecision]:
        """Returns those that were not decided before."""
        batches = sorted({run.job.batch for run in runs if run.job is not None and run.job.batch is not None})
        ended = [name for name in batches if (row := self._tx.one("batch", {"name": name})) and row[3] is not None]
        runs, replaced = skip_complete_batches(runs, ended), dict[str, str]()
        if keys := keys_of(run.job for run in runs if run.job is not None):
            self._tx.lock_keys(keys)
            runs, replaced = apply_unique_keys(runs, self._tx.holders(keys), now_ms=now)
        written = [run for run in runs if self._tx.execute("add_schedule_run", run_values(name, run, now_ms=now))]
        jobs = [run.job for run in written if run.job is not None]
        self._enqueuer.add(jobs, [str(job.id) for job in jobs], transitions, replaced=replaced)
        for run in written:
            if run.job is not None:
                self._tx.execute("mark_scheduled", {"name": name, "held": run.is_held, "id": run.job.id})
        if written:
            self._tx.execute("trim_schedule_runs", {"schedule": name, "keep": RUNS_KEPT - 1})
        return written
