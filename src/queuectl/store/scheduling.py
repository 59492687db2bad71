"""The seam for schedules: what there are, when somebody has to look at them, and how a decision about one is written.

Between rows and values too, the same for every dialect.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from queuectl.job.cron.model import Change, Overlap, PastTick, Schedule, Tick, Unended, View
from queuectl.job.lifecycle import State
from queuectl.job.unique import Fate, Holder, fate

Row = tuple[Any, ...]

TICKS_KEPT: Final = 100  # of each schedule
UNENDED_SHOWN: Final = 5  # to a rule: what counts is whether there is one

Rule = Callable[[View], Change | None]


class Look(NamedTuple):
    """In how many milliseconds somebody has to look at a schedule; 0 if that time has come."""

    name: str
    in_ms: int


class ScheduleReads(Protocol):
    def schedules(self) -> list[Schedule]:
        """All of them, by name."""
        ...

    def schedule(self, name: str) -> Schedule:
        """Raises ScheduleNotFound."""
        ...

    def ticks(self, name: str, *, limit: int, fired: bool = False) -> list[PastTick]:
        """What was decided about the ticks of a schedule, the latest first; `fired`: only those that have a job. No more than
        TICKS_KEPT are kept."""
        ...

    def looks(self, *, limit: int) -> list[Look]:
        """Which schedules somebody has to look at, and when, the first one first."""
        ...


class Schedules(Protocol):
    def add_schedule(self, schedule: Schedule) -> None:
        """Raises ScheduleExists if the name is taken."""
        ...

    def change_schedule(self, name: str, rule: Rule) -> Change | None:
        """Let `rule` decide about a schedule, and write what it says: the schedule as it is to be, the ticks, and their jobs,
        in one transaction in which nobody else can decide about it. Returns what was written, None if the rule had nothing
        to say. Raises ScheduleNotFound.

        A tick that was decided about before is left out, with its job: each is fired once, whatever the rule believes. The
        rule may be called again if the transaction clashed with another.
        """
        ...

    def remove_schedule(self, name: str) -> None:
        """With what was decided about its ticks. Its jobs stay; one that waited for others need not any more. Raises
        ScheduleNotFound."""
        ...


class NotTwice(NamedTuple):
    """Ticks, without the jobs that must not come in; and, by the id of a job, which one has to make way for it."""

    ticks: list[Tick]
    replaced: dict[str, str]


def not_twice(ticks: Sequence[Tick], held: Mapping[str, Holder], *, now_ms: int) -> NotTwice:
    """Where another job has the key of theirs, that instead of the job, unless it is to be replaced. `held`: who has the keys."""
    decided, taken = NotTwice([], {}), dict(held)
    last = {tick.job.unique_key: tick.job.id for tick in ticks if tick.job is not None}
    for tick in ticks:
        job = tick.job
        if job is None or (key := job.unique_key) is None:
            decided.ticks.append(tick)
            continue
        holder = taken.get(key)
        what = Fate.ADD if holder is None else fate(job, holder, now_ms=now_ms)
        if job.if_exists == "replace" and job.id != last[key]:
            decided.ticks.append(_left_out(tick, f"job {last[key]} of a later time takes its place"))
        elif holder is not None and what in {Fate.SKIP, Fate.REFUSE}:
            decided.ticks.append(_left_out(tick, f"job {holder.id} has the key {key!r}"))
        else:
            if holder is not None and what is Fate.REPLACE:
                decided.replaced[str(job.id)] = holder.id
            decided.ticks.append(tick)
            taken[key] = Holder(str(job.id), State.PENDING, now_ms)
    return decided


def not_too_late(ticks: Sequence[Tick], complete: Collection[str]) -> list[Tick]:
    """Without the jobs of batches that have ended: what was to run after all of them has run."""
    return [
        _left_out(tick, f"the batch {tick.job.batch!r} is complete")
        if tick.job is not None and tick.job.batch in complete
        else tick
        for tick in ticks
    ]


def _left_out(tick: Tick, reason: str) -> Tick:
    return tick._replace(job=None, is_held=False, reason=reason)


# ── rows ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def schedule(row: Row) -> Schedule:
    """From the columns of `schedule`."""
    found = Schedule._make(row)
    return found._replace(fields=json.loads(row[4]), overlap=Overlap(found.overlap), is_paused=bool(found.is_paused))


def schedule_values(one: Schedule) -> dict[str, Any]:
    """The parameters of `add_schedule` and `change_schedule`."""
    return {
        "name": one.name,
        "expression": one.expression,
        "tz": one.tz,
        "anchor_at": one.anchor_ms,
        "fields": json.dumps(one.fields),
        "overlap": one.overlap.value,
        "catch_up": one.catch_up,
        "jitter_ms": one.jitter_ms,
        "until_at": one.until_ms,
        "paused": one.is_paused,
        "created_at": one.created_ms,
        "updated_at": one.updated_ms,
        "tick_at": one.tick_ms,
        "start_at": one.start_ms,
        "look_at": one.look_ms,
        "last_at": one.last_ms,
        "waiting": one.waiting,
    }


def tick_values(name: str, tick: Tick, *, now_ms: int) -> dict[str, Any]:
    """The parameters of `add_tick`."""
    return {
        "schedule": name,
        "at": tick.at_ms,
        "by_hand": tick.is_by_hand,
        "now": now_ms,
        "job": None if tick.job is None else tick.job.id,
        "reason": tick.reason,
        "times": tick.times,
    }


def past_tick(row: Row) -> PastTick:
    """From the columns of `ticks`."""
    found = PastTick._make(row)
    return found._replace(is_by_hand=bool(found.is_by_hand), state=None if found.state is None else State(found.state))


def unended(found: Sequence[Row]) -> tuple[Unended, ...]:
    return tuple(Unended(id_, bool(held)) for id_, held in found)


def looks(found: Sequence[Row], *, now_ms: int) -> list[Look]:
    return [Look(name, max(0, look_at - now_ms)) for name, look_at in found]
