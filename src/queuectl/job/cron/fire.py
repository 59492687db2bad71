"""What is done about a schedule when somebody looks at it: which ticks get a job, which do not and why, and when the next is.

Each function takes a View and gives a Change, or None where there is nothing to do. The store calls it within the transaction
that writes the change, so two workers never decide about the same tick.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import tzinfo
from typing import Final, NamedTuple

from queuectl.job.cron.expression import parse_expression
from queuectl.job.cron.model import Change, Overlap, Schedule, Tick, View
from queuectl.job.cron.ticks import NextTick, timetable
from queuectl.job.newjob import NewJob
from queuectl.job.spec import Defaults, validate

# A tick that is later than this was missed: nobody was there. A worker that has begun since cannot know whether somebody else was.
LATE_MS: Final = 60_000
LATE_AT_START_MS: Final = 1_000
# So many ticks are looked at one by one; of more than that, after a long absence, the last ones are searched for.
MANY: Final = 1000
LOOK_AGAIN_MS: Final = 500  # whether the job has ended that another one waits for

MISSED: Final = "missed: no worker was there in time"


class Means(NamedTuple):
    """What deciding takes beside the schedule itself."""

    next_tick: NextTick
    job: NewJob  # what each tick is to run
    chance: Callable[[], float]  # uniform in [0, 1)
    new_id: Callable[[], str]
    since_ms: int  # when whoever asks began to look after schedules

    @classmethod
    def of(
        cls,
        schedule: Schedule,
        defaults: Defaults,
        *,
        zone: tzinfo,
        chance: Callable[[], float],
        new_id: Callable[[], str],
        since_ms: int = 0,
    ) -> Means:
        next_tick = timetable(parse_expression(schedule.expression), zone=zone, anchor_ms=schedule.anchor_ms)
        return cls(next_tick, validate(schedule.fields, defaults), chance, new_id, since_ms)


def fire(view: View, means: Means) -> Change | None:
    """See to the ticks whose time has come, and to the job that waits."""
    schedule, release = view.schedule, None
    others = [job.id for job in view.unended if job.id != schedule.waiting]
    if schedule.waiting is not None:
        waits = any(job.id == schedule.waiting and job.is_held for job in view.unended)
        if not waits or not others:
            release = schedule.waiting if waits else None
            schedule = schedule._replace(waiting=None)
            others = [job.id for job in view.unended]
    ticks: tuple[Tick, ...] = ()
    if schedule.tick_ms is not None and schedule.start_ms is not None and schedule.start_ms <= view.now_ms:
        due = due_ticks(schedule, means.next_tick, view.now_ms)
        ticks = tuple(_decide(schedule, due, others, view.now_ms, means))
        schedule = schedule._replace(last_ms=due.last)
        schedule = set_next(schedule, means, after_ms=max(view.now_ms, due.last))
        schedule = schedule._replace(waiting=next((_id(tick) for tick in ticks if tick.is_held), schedule.waiting))
    schedule = _set_look(schedule, view.now_ms)
    changed = schedule._replace(look_ms=None) != view.schedule._replace(look_ms=None)
    return Change(schedule, ticks, release) if changed else None


def fire_by_hand(view: View, means: Means) -> Change:
    """Add a job now, whatever the plan is, and whether or not another one runs: somebody wants it."""
    tick = Tick(view.now_ms, means.job._replace(id=means.new_id()), is_by_hand=True)
    return Change(view.schedule, (tick,))


def pause(view: View) -> Change | None:
    if view.schedule.is_paused:
        return None
    paused = view.schedule._replace(is_paused=True, tick_ms=None, start_ms=None, updated_ms=view.now_ms)
    return Change(_set_look(paused, view.now_ms))


def resume(view: View, means: Means) -> Change | None:
    """What was due meanwhile is not made up for: somebody did not want it."""
    if not view.schedule.is_paused:
        return None
    going = view.schedule._replace(is_paused=False, updated_ms=view.now_ms)
    # Not before what was decided about: the clock may have been put back.
    after_ms = max(view.now_ms, going.last_ms or 0)
    return Change(_set_look(set_next(going, means, after_ms=after_ms), view.now_ms))


def set_next(schedule: Schedule, means: Means, *, after_ms: int) -> Schedule:
    """With its next tick after a moment, None if there is none or it comes too late."""
    tick = None if schedule.is_paused else _until(schedule, means.next_tick(after_ms))
    if tick is None:
        return schedule._replace(tick_ms=None, start_ms=None, look_ms=None)
    start = tick
    if schedule.jitter_ms:
        following = means.next_tick(tick)
        # Not as late as the next one: it would be taken for missed.
        room = schedule.jitter_ms if following is None else min(schedule.jitter_ms, following - tick - 1)
        start += round(means.chance() * room)
    return schedule._replace(tick_ms=tick, start_ms=start, look_ms=start)


class Due(NamedTuple):
    """Ticks whose time has come: the first of them, the last `ticks` of them, and how many there are, MANY + 1 for more."""

    first: int
    ticks: tuple[int, ...]
    number: int

    @property
    def last(self) -> int:
        return self.ticks[-1]


def due_ticks(schedule: Schedule, next_tick: NextTick, now_ms: int) -> Due:
    """Of a schedule whose next tick has come."""
    assert schedule.tick_ms is not None
    found = [schedule.tick_ms]
    limit = now_ms if schedule.until_ms is None else min(now_ms, schedule.until_ms)
    while len(found) <= MANY and (tick := next_tick(found[-1])) is not None and tick <= limit:
        found.append(tick)
    if len(found) <= MANY:
        return Due(found[0], tuple(found), len(found))
    latest: list[int] = []
    for _ in range(max(1, schedule.catch_up)):
        latest.append(_latest(next_tick, found[0], latest[-1] - 1 if latest else limit))
    return Due(found[0], tuple(reversed(latest)), MANY + 1)


def _latest(next_tick: NextTick, low: int, high: int) -> int:
    """The last tick up to `high`, of which there is one after `low`: halved, since to count a year of seconds takes too long."""
    while True:
        middle = (low + high) // 2
        tick = next_tick(middle)
        if tick is not None and tick <= high:
            low = tick
            after = next_tick(tick)
            if after is None or after > high:
                return tick
        else:
            # Nothing in (middle, high]: look below. What is found there is still the last one.
            high = middle


def _decide(schedule: Schedule, due: Due, busy: Sequence[str], now_ms: int, means: Means) -> list[Tick]:
    late_ms = now_ms - due.last - schedule.jitter_ms
    is_missed = late_ms > (LATE_MS if due.last >= means.since_ms else LATE_AT_START_MS)
    most = max(schedule.catch_up, int(not is_missed))
    chosen = due.ticks[-most:] if most else ()
    left = due.number if due.number > MANY else due.number - len(chosen)
    decided = [Tick(due.first, None, MISSED, left)] if left else []
    if busy and schedule.overlap is not Overlap.ALLOW:
        may_wait = schedule.overlap is Overlap.QUEUE and schedule.waiting is None
        for at in chosen:
            if may_wait and at == due.last:
                decided.append(Tick(at, _job(means), is_held=True))
            elif schedule.waiting is not None:
                decided.append(Tick(at, None, f"job {schedule.waiting} of an earlier tick still waits"))
            else:
                decided.append(Tick(at, None, f"job {busy[0]} of an earlier tick has not ended"))
        return decided
    # Those that are made up for come at once: what they may overlap with are jobs of earlier ticks.
    return [*decided, *(Tick(at, _job(means)) for at in chosen)]


def _job(means: Means) -> NewJob:
    return means.job._replace(id=means.new_id())


def _id(tick: Tick) -> str | None:
    return None if tick.job is None else tick.job.id


def _until(schedule: Schedule, tick: int | None) -> int | None:
    return None if tick is None or (schedule.until_ms is not None and tick > schedule.until_ms) else tick


def _set_look(schedule: Schedule, now_ms: int) -> Schedule:
    if schedule.waiting is None:
        return schedule._replace(look_ms=schedule.start_ms)
    soon = now_ms + LOOK_AGAIN_MS
    return schedule._replace(look_ms=soon if schedule.start_ms is None else min(soon, schedule.start_ms))
