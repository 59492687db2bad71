"""Which days a calendar allows, and the seconds within a day."""

from __future__ import annotations

from bisect import bisect_left
from datetime import date, timedelta
from typing import Final

from queuectl.job.cron.expression import Calendar

DAY_SECONDS: Final = 86_400
# A 29 February on a given day of the week comes after 40 years at most: what has not come by then never will.
SEARCH_YEARS: Final = 41
LAST_YEAR: Final = 9998  # what comes later cannot be written in every zone


def next_day(calendar: Calendar, day: date) -> date | None:
    """The first day from `day` on that is allowed; None if there is none within SEARCH_YEARS."""
    last_year = min(day.year + SEARCH_YEARS, LAST_YEAR)
    while day.year <= last_year:
        if is_allowed(calendar, day):
            return day
        day = day + timedelta(days=1) if day.month in calendar.months else _next_month(day)
    return None


def is_allowed(calendar: Calendar, day: date) -> bool:
    in_month = day.day in calendar.days.numbers
    in_week = day.isoweekday() % 7 in calendar.weekdays.numbers
    # As in Vixie's cron: if both are restricted, either will do.
    either = not calendar.days.is_star and not calendar.weekdays.is_star
    return day.month in calendar.months and (in_month or in_week if either else in_month and in_week)


def _next_month(day: date) -> date:
    return date(day.year, day.month + 1, 1) if day.month < 12 else date(day.year + 1, 1, 1)


def first_second(calendar: Calendar, since: int, before: int) -> int | None:
    """The first allowed second of a day in [since, before), counted from midnight; None if there is none."""
    hour, rest = divmod(since, 3600)
    minute, second = divmod(rest, 60)
    for h in calendar.hours[bisect_left(calendar.hours, hour) :]:
        if h > hour:
            minute = second = 0
        for m in calendar.minutes[bisect_left(calendar.minutes, minute) :]:
            if h > hour or m > minute:
                second = 0
            at = bisect_left(calendar.seconds, second)
            if at < len(calendar.seconds):
                found = h * 3600 + m * 60 + calendar.seconds[at]
                return found if found < before else None
    return None
