"""When a schedule is due: its ticks.

What happens when clocks change is what Vixie's cron does, as Debian has it:

- A schedule for certain times of the day (neither minutes nor hours begin with `*`): times that the clocks leave out are made
  up for by one tick, at the first moment after the gap; times that come twice tick the first time only.
- Any other goes with the time that passes: times that are left out do not come, those that come twice tick twice, so that
  `*/5 * * * *` keeps its five minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, timedelta, tzinfo
from typing import Final

from queuectl.errors import InvalidInput
from queuectl.job.cron.day import DAY_SECONDS, LAST_YEAR, first_second, next_day
from queuectl.job.cron.expression import Calendar, Every, Expression
from queuectl.job.cron.field import SUBJECT
from queuectl.job.cron.offsets import midnight, offset_at, stretches

NextTick = Callable[[int], int | None]  # after a moment, in milliseconds since 1970; None: never again

LAST_MS: Final = (midnight(date(LAST_YEAR + 1, 1, 1)) - DAY_SECONDS) * 1000


def timetable(expression: Expression, *, zone: tzinfo, anchor_ms: int) -> NextTick:
    """`anchor_ms` is where `every 90s` begins to count: the first tick is a period later."""

    def next_tick(after_ms: int) -> int | None:
        if after_ms >= LAST_MS:
            return None
        if isinstance(expression, Every):
            passed = max(0, after_ms - anchor_ms) // expression.period_ms
            found = anchor_ms + (passed + 1) * expression.period_ms
            return found if found < LAST_MS else None
        second = _next_second(expression, zone, after_ms // 1000)
        return None if second is None else second * 1000

    return next_tick


def require_a_tick(next_tick: NextTick, text: str, *, after_ms: int) -> int:
    """The first tick, or InvalidInput for a schedule that has none, like 31 February."""
    first = next_tick(after_ms)
    if first is None:
        hint = "no year has such a day, or none that comes: check day and month"
        raise InvalidInput(SUBJECT, f"{text!r} never fires", hint=hint)
    return first


def _next_second(calendar: Calendar, zone: tzinfo, after: int) -> int | None:
    today = date(1970, 1, 1) + timedelta(seconds=after + offset_at(zone, after))
    # From the day before: where clocks go back over midnight, it is yesterday again.
    day = next_day(calendar, today - timedelta(days=1))
    while day is not None:
        for second in _seconds(calendar, zone, day, after):
            if second > after:
                return second
        day = next_day(calendar, day + timedelta(days=1))
    return None


def _seconds(calendar: Calendar, zone: tzinfo, day: date, after: int) -> Iterator[int]:
    """Of each stretch of an allowed day the first tick after `after`, and the ticks that make up for gaps, in order."""
    start, zero, seen = midnight(day), 0, 0
    for since, before, offset in stretches(zone, day):
        zero = start - offset  # when this day would have begun by this stretch's clock
        begin = since
        if not calendar.follows_elapsed_time:
            if first_second(calendar, seen, since) is not None:
                yield zero + since
            begin, seen = max(since, seen), max(before, seen)
        found = first_second(calendar, max(begin, after + 1 - zero), before)
        if found is not None:
            yield zero + found
    # A gap that reaches into the next day.
    if 0 < seen < DAY_SECONDS and first_second(calendar, seen, DAY_SECONDS) is not None:
        yield zero + seen
