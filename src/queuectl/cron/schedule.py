"""A schedule, and the decision what to do when it is due: which runs get a job, which do not and why, and when the next one is.

Each decision takes a ScheduleView and returns a ScheduleChange, or None if there is nothing to do. The store calls it within the
transaction that writes the change, so that two workers never decide about the same run. Times are milliseconds since 1970 UTC.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

from queuectl.cron.expression import NextRun
from queuectl.errors import InvalidInput
from queuectl.jobs.model import HIDDEN_VALUE
from queuectl.jobs.spec import NewJob
from queuectl.jobs.states import State
from queuectl.text import short_repr
from queuectl.units import from_ms, iso, to_seconds
from queuectl.webhooks.rules import redact_url

MAX_CATCH_UP: Final = 1000
CATCH_UP_HINT: Final = f"none, one (the default), or all:N for at most N, up to {MAX_CATCH_UP}"


class Overlap(StrEnum):
    """What happens to a run while an earlier job of the schedule has not ended."""

    SKIP = "skip"  # no job is added
    QUEUE = "queue"  # its job is held until the earlier ones have ended; at most one is held
    ALLOW = "allow"  # its job is added


class Schedule(NamedTuple):
    name: str
    expression: str
    tz: str  # name of a time zone
    anchor_ms: int  # start of the periods of `every`
    fields: Mapping[str, Any]  # of the job, as for `enqueue`; defaults are applied at each run
    overlap: Overlap
    catch_up: int  # maximum number of missed runs to catch up
    jitter_ms: int
    until_ms: int | None
    is_paused: bool
    created_ms: int
    updated_ms: int
    tick_ms: int | None = None  # the next run; None: paused, or no more runs
    start_ms: int | None = None  # the next run plus jitter
    look_ms: int | None = None  # when a scheduler has to check this schedule again
    last_ms: int | None = None  # the latest run that was decided
    waiting: str | None = None  # the held job

    def to_dict(self, last: PastRun | None, *, show_env: bool = False) -> dict[str, Any]:
        """The JSON object of a schedule; values of `env` are hidden without `show_env`. `last`: the latest run with a job."""
        job = dict(self.fields)
        if "env" in job and not show_env:
            job["env"] = dict.fromkeys(job["env"], HIDDEN_VALUE)
        for name in () if show_env else ("on_success", "on_failure", "on_dead"):
            if job.get(name):
                job[name] = redact_url(job[name])
        return {
            "name": self.name,
            "schedule": self.expression,
            "tz": self.tz,
            "command": job.get("command"),
            "argv": job.get("argv"),
            "queue": job.get("queue", "default"),
            "job": job,
            "overlap": self.overlap.value,
            "catch_up": format_catch_up(self.catch_up),
            "jitter": to_seconds(self.jitter_ms),
            "until": format_time(self.until_ms),
            "paused": self.is_paused,
            "next_at": format_time(self.tick_ms),
            "last": None if last is None else last.to_dict(),
            "waiting": self.waiting,
            "created_at": format_time(self.created_ms),
            "updated_at": format_time(self.updated_ms),
        }


class RunDecision(NamedTuple):
    """The decision about one run of a schedule: its job, or the reason why there is none.

    Consecutive missed runs are one decision about the first of them; `times` is their number.
    """

    at_ms: int
    job: NewJob | None
    reason: str | None = None
    times: int = 1
    is_held: bool = False  # until the earlier job has ended
    is_by_hand: bool = False


class PastRun(NamedTuple):
    """A stored run of a schedule, and the current state of its job, if that still exists."""

    at_ms: int
    decided_ms: int
    job: str | None
    reason: str | None
    times: int
    is_by_hand: bool
    state: State | None
    exit_code: int | None
    error: str | None

    def to_dict(self) -> dict[str, Any]:
        return {
            "at": format_time(self.at_ms),
            "decided_at": format_time(self.decided_ms),
            "job": self.job,
            "state": None if self.state is None else self.state.value,
            "exit_code": self.exit_code,
            "error": self.error,
            "reason": self.reason,
            "times": self.times,
            "by_hand": self.is_by_hand,
        }


class UnfinishedJob(NamedTuple):
    """A job of a schedule that has not ended yet."""

    id: str
    is_held: bool


class ScheduleView(NamedTuple):
    """The input of a decision, read within the transaction that writes its result."""

    schedule: Schedule
    now_ms: int
    unended: tuple[UnfinishedJob, ...]  # not all of them, if there are many


class ScheduleChange(NamedTuple):
    """The result of a decision: the new schedule, the runs that were decided, and the held job to release."""

    schedule: Schedule
    ticks: tuple[RunDecision, ...] = ()
    release: str | None = None


def format_time(ms: int | None) -> str | None:
    return None if ms is None else iso(from_ms(ms))


def parse_overlap(text: str, *, subject: str) -> Overlap:
    try:
        return Overlap(text.lower())
    except ValueError as error:
        problem = f"expected {', '.join(Overlap)}, got {short_repr(text)}"
        raise InvalidInput(subject, problem, hint=f"for example, {subject} skip") from error


def parse_catch_up(text: str, *, subject: str) -> int:
    word = text.strip().lower()
    if word in {"none", "one"}:
        return int(word == "one")
    kind, _, number = word.partition(":")
    if (
        kind == "all"
        and number.isascii()
        and number.isdecimal()
        and len(number) <= 9
        and 1 <= int(number) <= MAX_CATCH_UP
    ):
        return int(number)
    raise InvalidInput(subject, f"expected none, one or all:N, got {short_repr(text)}", hint=CATCH_UP_HINT)


def format_catch_up(most: int) -> str:
    return {0: "none", 1: "one"}.get(most, f"all:{most}")


# A run that is later than this was missed. The shorter limit is for runs that were due before this scheduler started.
MISSED_AFTER_MS: Final = 60_000
MISSED_BEFORE_START_MS: Final = 1_000
# Up to this number, due runs are enumerated; of more, after a long downtime, only the last ones are searched for.
MAX_ENUMERATED_RUNS: Final = 1000
HELD_RECHECK_MS: Final = 500  # whether the job has ended for which another one is held

MISSED_REASON: Final = "missed: no worker was running"


class RunContext(NamedTuple):
    """The other inputs of a decision."""

    next_run: NextRun
    job: NewJob  # of each run
    chance: Callable[[], float]  # uniform in [0, 1)
    new_id: Callable[[], str]
    since_ms: int  # when this scheduler started

    def new_job(self) -> NewJob:
        return self.job._replace(id=self.new_id())


def decide_due_runs(view: ScheduleView, context: RunContext) -> ScheduleChange | None:
    """Decide about the due runs and about the held job."""
    schedule, release = view.schedule, None
    others = [job.id for job in view.unended if job.id != schedule.waiting]
    if schedule.waiting is not None:
        waits = any(job.id == schedule.waiting and job.is_held for job in view.unended)
        if not waits or not others:
            release = schedule.waiting if waits else None
            schedule = schedule._replace(waiting=None)
            others = [job.id for job in view.unended]
    ticks: tuple[RunDecision, ...] = ()
    if schedule.tick_ms is not None and schedule.start_ms is not None and schedule.start_ms <= view.now_ms:
        due = find_due_runs(schedule, context.next_run, view.now_ms)
        ticks = tuple(_decide(schedule, due, others, view.now_ms, context))
        schedule = schedule._replace(last_ms=due.last)
        schedule = set_next(schedule, context, after_ms=max(view.now_ms, due.last))
        schedule = schedule._replace(
            waiting=next((tick.job.id for tick in ticks if tick.is_held and tick.job), schedule.waiting)
        )
    schedule = _set_look(schedule, view.now_ms)
    changed = schedule._replace(look_ms=None) != view.schedule._replace(look_ms=None)
    return ScheduleChange(schedule, ticks, release) if changed else None


def run_now(view: ScheduleView, context: RunContext) -> ScheduleChange:
    """Add a job now, independent of the schedule and of `overlap`: a user asked for it."""
    tick = RunDecision(view.now_ms, context.new_job(), is_by_hand=True)
    return ScheduleChange(view.schedule, (tick,))


def pause(view: ScheduleView) -> ScheduleChange | None:
    if view.schedule.is_paused:
        return None
    paused = view.schedule._replace(is_paused=True, tick_ms=None, start_ms=None, updated_ms=view.now_ms)
    return ScheduleChange(_set_look(paused, view.now_ms))


def resume(view: ScheduleView, context: RunContext) -> ScheduleChange | None:
    """Runs that were due while the schedule was paused are not caught up."""
    if not view.schedule.is_paused:
        return None
    going = view.schedule._replace(is_paused=False, updated_ms=view.now_ms)
    # Not before the last decision: the clock may have been set back.
    after_ms = max(view.now_ms, going.last_ms or 0)
    return ScheduleChange(_set_look(set_next(going, context, after_ms=after_ms), view.now_ms))


def set_next(schedule: Schedule, context: RunContext, *, after_ms: int) -> Schedule:
    """The schedule with its next run after a time; None if there is none, or it is after `until`."""
    tick = None if schedule.is_paused else _until(schedule, context.next_run(after_ms))
    if tick is None:
        return schedule._replace(tick_ms=None, start_ms=None, look_ms=None)
    start = tick
    if schedule.jitter_ms:
        following = context.next_run(tick)
        # Before the following run: a later one would count as missed.
        most = schedule.jitter_ms if following is None else min(schedule.jitter_ms, following - tick - 1)
        start += round(context.chance() * most)
    return schedule._replace(tick_ms=tick, start_ms=start, look_ms=start)


class DueRuns(NamedTuple):
    """Due runs: the first, the last ones, and their number; MAX_ENUMERATED_RUNS + 1 if there are more."""

    first: int
    ticks: tuple[int, ...]
    number: int

    @property
    def last(self) -> int:
        return self.ticks[-1]


def find_due_runs(schedule: Schedule, next_run: NextRun, now_ms: int) -> DueRuns:
    """The due runs of a schedule whose next run is due."""
    assert schedule.tick_ms is not None
    found = [schedule.tick_ms]
    limit = now_ms if schedule.until_ms is None else min(now_ms, schedule.until_ms)
    while len(found) <= MAX_ENUMERATED_RUNS and (tick := next_run(found[-1])) is not None and tick <= limit:
        found.append(tick)
    if len(found) <= MAX_ENUMERATED_RUNS:
        return DueRuns(found[0], tuple(found), len(found))
    latest: list[int] = []
    for _ in range(max(1, schedule.catch_up)):
        latest.append(_latest(next_run, found[0], latest[-1] - 1 if latest else limit))
    return DueRuns(found[0], tuple(reversed(latest)), MAX_ENUMERATED_RUNS + 1)


def _latest(next_run: NextRun, low: int, high: int) -> int:
    """The last run up to `high`, given that there is one after `low`, by bisection: enumerating a year of seconds takes too long."""
    while True:
        middle = (low + high) // 2
        tick = next_run(middle)
        if tick is not None and tick <= high:
            low = tick
            after = next_run(tick)
            if after is None or after > high:
                return tick
        else:
            # No run in (middle, high]: the last one is below.
            high = middle


def _decide(
    schedule: Schedule, due: DueRuns, busy: Sequence[str], now_ms: int, context: RunContext
) -> list[RunDecision]:
    late_ms = now_ms - due.last - schedule.jitter_ms
    is_missed = late_ms > (MISSED_AFTER_MS if due.last >= context.since_ms else MISSED_BEFORE_START_MS)
    most = max(schedule.catch_up, int(not is_missed))
    chosen = due.ticks[-most:] if most else ()
    left = due.number if due.number > MAX_ENUMERATED_RUNS else due.number - len(chosen)
    decided = [RunDecision(due.first, None, MISSED_REASON, left)] if left else []
    if busy and schedule.overlap is not Overlap.ALLOW:
        may_wait = schedule.overlap is Overlap.QUEUE and schedule.waiting is None
        for at in chosen:
            if may_wait and at == due.last:
                decided.append(RunDecision(at, context.new_job(), is_held=True))
            elif schedule.waiting is not None:
                decided.append(RunDecision(at, None, f"job {schedule.waiting} of an earlier run still waits"))
            else:
                decided.append(RunDecision(at, None, f"job {busy[0]} of an earlier run has not ended"))
        return decided
    # Runs that are caught up are added together: `overlap` is about jobs of earlier runs.
    return [*decided, *(RunDecision(at, context.new_job()) for at in chosen)]


def _until(schedule: Schedule, tick: int | None) -> int | None:
    return None if tick is None or (schedule.until_ms is not None and tick > schedule.until_ms) else tick


def _set_look(schedule: Schedule, now_ms: int) -> Schedule:
    if schedule.waiting is None:
        return schedule._replace(look_ms=schedule.start_ms)
    soon = now_ms + HELD_RECHECK_MS
    return schedule._replace(look_ms=soon if schedule.start_ms is None else min(soon, schedule.start_ms))
