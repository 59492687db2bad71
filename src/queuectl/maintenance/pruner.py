"""Prune: removing what has ended, in steps so small that nobody who has something to write waits for long."""

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
from queuectl.logs.removing import Note, Removed, abandoned_notes, log_size, sum_removed, write_note
from queuectl.settings import Settings, retention
from queuectl.store.protocol import Reads, Store
from queuectl.store.types import Ended, Filter

IDS_AT_ONCE: Final = 500  # in one question
# What one transaction removes at most, in rows and half pages. SQLite has one writer at a time: among a million jobs 500 took it
# 27 ms and now and then 80, while the promise is 50 (bench/retention.py). The store removes fewer where it takes long.
ROWS_AT_ONCE: Final = 200
PAUSE: Final = 0.005  # between two of them: whoever waits for the lock asks every 2 ms

# The duty takes less at a time, and has time: up to 1,000 jobs a second.
DUTY_ROWS: Final = 100
DUTY_PAUSE: Final = 0.1
BUSY_PAUSE: Final = 1.0
LOOK_EVERY: Final = 10.0


class Plan(NamedTuple):
    """What is to be removed: for each final state, all that ended by a moment; of these only the ids in `only`, if it is given."""

    before_ms: Mapping[State, int]
    only: frozenset[str] | None = None

    @classmethod
    def by_age(cls, ages: Mapping[State, int | None], *, now_ms: int, only: frozenset[str] | None = None) -> Plan:
        """`ages`: after how many milliseconds; None: never."""
        return cls({state: now_ms - age for state, age in ages.items() if age is not None}, only)

    def ended(
        self, store: Reads, state: State, *, limit: int | None = None, host: str | None = None
    ) -> Iterator[Ended]:
        """Those that are to go. Of a choice all that there are: who were found and stay would be found first again."""
        before_ms = self.before_ms[state]
        if self.only is None:
            return store.ended(state, before_ms=before_ms, limit=limit, host=host)
        ids = sorted(self.only)
        portions = (ids[start : start + IDS_AT_ONCE] for start in range(0, len(ids), IDS_AT_ONCE))
        return chain.from_iterable(store.ended_of(some, state, before_ms=before_ms, host=host) for some in portions)


class Step(NamedTuple):
    """What one step has removed. `is_last`: there is nothing more to do."""

    jobs: dict[State, int]
    logs: Removed
    is_last: bool


class Pruner:
    """Carries out plans on one store. `writer`: a name that nobody else in this home has, for the notes."""

    def __init__(self, store: Store, *, home: str, writer: str, rows: int, host: str | None = None) -> None:
        self._store = store
        self._home = home
        self._writer = writer
        self._rows = rows
        # What was found and not yet removed, kept from step to step: to weigh a job is to read it. What changes meanwhile is
        # left alone by `prune`.
        self._state = State.COMPLETED
        self._ahead: list[Ended] = []
        self._seen: set[State] = set()  # of a choice, all of a state are looked up at once
        self._host = host  # leave alone what workers of another host can do better: they reach the logs

    def step(self, plan: Plan) -> Step:
        """At most one transaction of at most so many rows, and the logs that go with it."""
        if not self._ahead or self._state not in plan.before_ms:
            self._look_ahead(plan)
        if not self._ahead:
            return Step({}, Removed(), is_last=not self._store.shrink())
        state, before_ms, first = self._state, plan.before_ms[self._state], self._ahead[0]
        if first.rows > self._rows and self._store.trim(first.id, before_ms=before_ms, rows=self._rows // 2):
            return Step({}, Removed(), is_last=False)
        some = _portion(self._ahead, self._rows)
        gone, logs = self._remove(some, before_ms)
        # Who comes behind the last that is gone was left for the next step, as it took too long; all others have changed.
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
        """Remove the logs that somebody was killed over, after the record and before the file."""
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
    """As many of the first as are `rows` in all, and at least one."""
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
    """What `prune` would remove, as things are."""
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
    """All of it, step by step. Ended at any moment, nothing is half removed, and the next one goes on."""
    jobs, logs = dict.fromkeys(plan.before_ms, 0), pruner.finish_abandoned()
    while not (step := pruner.step(plan)).is_last:
        for state, removed in step.jobs.items():
            jobs[state] += removed
        logs += step.logs
        advance(sum(jobs.values()))
        clock.sleep(PAUSE)
    return Pruned(jobs, logs)


# ── by a worker ─────────────────────────────────────────────────────────────────────────────────────────────────────


class PruneDuty:
    """Removes what has been kept for as long as the settings say: one small step at a time, so that no job waits for it.

    Any number of workers may do so at once: a job is removed by one of them, and the others find it gone.
    """

    adds_work: Final = False

    def __init__(
        self, me: str, host: str, *, store: Store, home: str, settings: Callable[[], Settings], emit: Sink
    ) -> None:
        self._store = store
        self._emit = emit
        self._said: str | None = None
        self._load_settings = settings
        self._pruner = Pruner(store, home=home, writer=me, rows=DUTY_ROWS, host=host)
        self._steps: Iterator[bool] = iter(())

    def step(self, now: float) -> float:
        try:
            if next(self._steps, False) or next(self._begin(), False):
                return now + DUTY_PAUSE
        except StoreBusy:  # somebody has something to write, and we have not
            return now + BUSY_PAUSE
        except (StoreFailed, StoreFull, StoreReadOnly, StoreRefused) as exc:
            # Not our caller's trouble: the store may serve all that jobs need, and only not let us remove any.
            if exc.message != self._said:
                self._said = exc.message
                self._emit(StoreTrouble(exc.message))
        return now + LOOK_EVERY

    def _begin(self) -> Iterator[bool]:
        self._steps = self._round()
        return self._steps

    def _round(self) -> Iterator[bool]:
        """Each step there is to do gives True."""
        plan = Plan({})
        with contextlib.suppress(UsageError):  # the worker has said so; without settings that hold, nothing is removed
            plan = Plan.by_age(retention(self._load_settings()), now_ms=self._store.now_ms())
        self._pruner.finish_abandoned()
        while not self._pruner.step(plan).is_last:
            yield True
