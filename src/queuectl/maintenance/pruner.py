"""Remove ended jobs and their logs, in steps so small that other writers do not wait long."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

from queuectl.clock import Clock
from queuectl.errors import (
    JobNotFound,
    StoreBusy,
    StoreFailed,
    StoreFull,
    StoreReadOnly,
    StoreRefused,
    UsageError,
)
from queuectl.events import Sink, StoreTrouble
from queuectl.jobs.states import State
from queuectl.logs.cleanup import Note, Removed, abandoned_notes, log_size, sum_removed, write_note
from queuectl.settings import Settings, retention
from queuectl.store.reads import Reads
from queuectl.store.store import Store
from queuectl.store.types import Ended, Filter

MAX_IDS: Final = 500  # in one query
# At most in one transaction, in rows and half pages. SQLite has one writer at a time: with a million jobs 500 took 27 ms, sometimes
# 80, and the target is 50 (bench/retention.py). The store removes fewer if it takes long.
MAX_ROWS: Final = 200
PAUSE: Final = 0.005  # between two transactions: a process that waits for the lock tries every 2 ms

# The task of a worker removes less at a time: up to 1,000 jobs a second.
TASK_ROWS: Final = 100
TASK_PAUSE: Final = 0.1
BUSY_PAUSE: Final = 1.0
CHECK_EVERY: Final = 10.0


class Plan(NamedTuple):
    """What to remove: jobs in each of these final states that ended before this moment; with `only`, those with these IDs."""

    before_ms: Mapping[State, int]
    only: frozenset[str] | None = None

    @classmethod
    def by_age(cls, ages: Mapping[State, int | None], *, now_ms: int, only: frozenset[str] | None = None) -> Plan:
        """`ages`: after how many milliseconds; None: never."""
        return cls({state: now_ms - age for state, age in ages.items() if age is not None}, only)

    def ended(
        self, store: Reads, state: State, *, limit: int | None = None, host: str | None = None
    ) -> Iterator[Ended]:
        """The jobs to remove. With `only` all of them: jobs that stay would be found first again."""
        before_ms = self.before_ms[state]
        if self.only is None:
            return store.ended(state, before_ms=before_ms, limit=limit, host=host)
        ids = sorted(self.only)
        portions = (ids[start : start + MAX_IDS] for start in range(0, len(ids), MAX_IDS))
        return chain.from_iterable(store.ended_of(some, state, before_ms=before_ms, host=host) for some in portions)


class Step(NamedTuple):
    """What one step has removed. `is_last`: there is nothing more to remove."""

    jobs: dict[State, int]
    logs: Removed
    is_last: bool


class Pruner:
    """Removes jobs from one store. `writer`: a name that is unique in this data directory, for the note of logs to remove."""

    def __init__(self, store: Store, *, home: str, writer: str, rows: int, host: str | None = None) -> None:
        self._store = store
        self._home = home
        self._writer = writer
        self._rows = rows
        # Found and not removed yet, kept between steps: finding out the size of a job reads it. `prune` leaves jobs alone that have
        # changed since.
        self._state = State.COMPLETED
        self._ahead: list[Ended] = []
        self._seen: set[State] = set()  # with `only`, all of a state are found at once
        self._host = host  # leave the jobs of other hosts to their workers, which reach the logs

    def step(self, plan: Plan) -> Step:
        """At most one transaction, and the logs of its jobs."""
        if not self._ahead or self._state not in plan.before_ms:
            self._look_ahead(plan)
        if not self._ahead:
            return Step({}, Removed(), is_last=not self._store.shrink())
        state, before_ms, first = self._state, plan.before_ms[self._state], self._ahead[0]
        if first.rows > self._rows and self._store.trim(first.id, before_ms=before_ms, rows=self._rows // 2):
            return Step({}, Removed(), is_last=False)
        some = _portion(self._ahead, self._rows)
        gone, logs = self._remove(some, before_ms)
        # Jobs behind the last one that was removed are left to the next step, since it took too long; all others have changed.
        done = max((place for place, job in enumerate(some, 1) if job.id in gone), default=len(some))
        self._ahead = self._ahead[done:]
        return Step({state: len(gone)}, logs, is_last=False)

    def _look_ahead(self, plan: Plan) -> None:
        self._ahead = []
        for state in plan.before_ms:
            if plan.only is not None and state in self._seen:
                continue
            self._seen.add(state)
            found = list(plan.ended(self._store, state, limit=self._rows, host=self._host))
            if found:
                self._state, self._ahead = state, found
                return

    def finish_abandoned(self) -> Removed:
        """Remove the logs of jobs whose remover was killed after the record and before the log was removed."""
        return sum_removed(self._finish(note) for note in abandoned_notes(self._home, store=self._store.shown))

    def _finish(self, note: Note) -> Removed:
        kept = {job.id for job in self._store.jobs(Filter(ids=tuple(note.logs)))} if note.logs else set()
        return note.finish(note.logs.keys() - kept, is_back=self._is_there)

    def _remove(self, some: Sequence[Ended], before_ms: int) -> tuple[Mapping[str, str | None], Removed]:
        logs = {job.id: job.log for job in some if job.log is not None}
        note = write_note(self._home, writer=self._writer, store=self._store.shown, logs=logs)
        try:
            gone = self._store.prune([job.id for job in some], before_ms=before_ms)
        except BaseException:
            note.leave()  # whether it was committed may not be known
            raise
        return gone, note.finish(gone, is_back=self._is_there)

    def _is_there(self, job_id: str) -> bool:
        try:
            self._store.get(job_id)
        except JobNotFound:
            return False
        return True


def _portion(found: Sequence[Ended], rows: int) -> list[Ended]:
    """The first jobs, with at most this many rows together, and at least one."""
    some, total = [found[0]], found[0].rows
    for job in found[1:]:
        total += job.rows
        if total > rows:
            break
        some.append(job)
    return some


# ── by a command ────────────────────────────────────────────────────────────────────────────────────────────────────


class Pruned(NamedTuple):
    jobs: dict[State, int]
    logs: Removed


def foresee(store: Reads, plan: Plan) -> Pruned:
    """What `prune` would remove now."""
    jobs, logs = {}, Removed()
    for state in plan.before_ms:
        jobs[state] = 0
        for job in plan.ended(store, state):
            jobs[state] += 1
            logs += log_size(job.log)
    return Pruned(jobs, logs)


def count(store: Reads, plan: Plan) -> dict[State, int]:
    if plan.only is not None:
        return {state: sum(1 for _ in plan.ended(store, state)) for state in plan.before_ms}
    return {state: store.count_ended(state, before_ms=before) for state, before in plan.before_ms.items()}


def prune(pruner: Pruner, plan: Plan, *, clock: Clock, advance: Callable[[int], None]) -> Pruned:
    """Remove everything, step by step. It can be interrupted at any moment: the next call continues."""
    jobs, logs = dict.fromkeys(plan.before_ms, 0), pruner.finish_abandoned()
    while not (step := pruner.step(plan)).is_last:
        for state, removed in step.jobs.items():
            jobs[state] += removed
        logs += step.logs
        advance(sum(jobs.values()))
        clock.sleep(PAUSE)
    return Pruned(jobs, logs)


# ── by a worker ─────────────────────────────────────────────────────────────────────────────────────────────────────


class PruneTask:
    """Removes jobs after the retention times of the settings: one small step at a time, so that no job waits for it.

    Any number of workers may do that at the same time.
    """

    adds_work: Final = False

    def __init__(
        self, me: str, host: str, *, store: Store, home: str, settings: Callable[[], Settings], emit: Sink
    ) -> None:
        self._store = store
        self._emit = emit
        self._reported: str | None = None
        self._load_settings = settings
        self._pruner = Pruner(store, home=home, writer=me, rows=TASK_ROWS, host=host)
        self._steps: Iterator[bool] = iter(())

    def step(self, now: float) -> float:
        try:
            if next(self._steps, False) or next(self._begin(), False):
                return now + TASK_PAUSE
        except StoreBusy:  # other writes matter more
            return now + BUSY_PAUSE
        except (StoreFailed, StoreFull, StoreReadOnly, StoreRefused) as exc:
            # Not raised: everything that jobs need may still work.
            if exc.message != self._reported:
                self._reported = exc.message
                self._emit(StoreTrouble(exc.message))
        return now + CHECK_EVERY

    def _begin(self) -> Iterator[bool]:
        self._steps = self._round()
        return self._steps

    def _round(self) -> Iterator[bool]:
        """Yields True after each step that removed something."""
        plan = Plan({})
        with contextlib.suppress(UsageError):  # the worker has reported it; with invalid settings nothing is removed
            plan = Plan.by_age(retention(self._load_settings()), now_ms=self._store.now_ms())
        self._pruner.finish_abandoned()
        while not self._pruner.step(plan).is_last:
            yield True
