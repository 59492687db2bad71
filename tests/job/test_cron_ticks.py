"""When schedules are due: calendars, leap years, and clocks that are put forward and back."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import cache
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuectl.errors import InvalidInput
from queuectl.job.cron.day import is_allowed, next_day
from queuectl.job.cron.expression import Calendar, parse_expression
from queuectl.job.cron.ticks import LAST_MS, NextTick, require_a_tick, timetable
from tests.needs import FULL

ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Sao_Paulo",  # the clocks changed at midnight
    "Africa/Cairo",  # they still do
    "Australia/Lord_Howe",  # by half an hour
    "Asia/Kathmandu",
    "Africa/Casablanca",  # back first, then forward
    "Pacific/Apia",  # left out a day
]
MINUTE = timedelta(minutes=1)


def ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def table(text: str, zone: str | tzinfo = "UTC", *, anchor_ms: int = 0) -> NextTick:
    found = ZoneInfo(zone) if isinstance(zone, str) else zone
    return timetable(parse_expression(text), zone=found, anchor_ms=anchor_ms)


def next_times(text: str, zone: str, after: str, count: int) -> list[str]:
    """By the clock of the zone, with how far it is from UTC."""
    next_tick, moment, found = table(text, zone), ms(datetime.fromisoformat(after).replace(tzinfo=ZoneInfo(zone))), []
    for _ in range(count):
        tick = next_tick(moment)
        assert tick is not None
        moment = tick
        found.append(datetime.fromtimestamp(tick / 1000, ZoneInfo(zone)).isoformat())
    return found


# ── by example ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text, after, times",
    [
        ("*/15 * * * *", "2026-01-01T00:00", ["2026-01-01T00:15", "2026-01-01T00:30"]),
        ("0 0 31 * *", "2026-01-31T00:00", ["2026-03-31T00:00", "2026-05-31T00:00"]),
        ("0 0 29 2 *", "2026-01-01T00:00", ["2028-02-29T00:00", "2032-02-29T00:00"]),
        ("0 0 29 2 *", "2096-03-01T00:00", ["2104-02-29T00:00"]),
        ("0 0 13 * FRI", "2026-03-12T00:00", ["2026-03-13T00:00", "2026-03-20T00:00", "2026-03-27T00:00"]),
        ("0 0 */2 * MON", "2026-03-01T00:00", ["2026-03-09T00:00", "2026-03-23T00:00"]),
        ("0 0 29 2 */7", "2026-01-01T00:00", ["2032-02-29T00:00", "2060-02-29T00:00"]),
        ("59 59 23 31 12 *", "2026-06-01T00:00", ["2026-12-31T23:59:59"]),
        ("0 0 * * 7", "2026-11-16T00:00", ["2026-11-22T00:00"]),
        (
            "5-7 30 10 * * *",
            "2026-01-01T10:30:05",
            ["2026-01-01T10:30:06", "2026-01-01T10:30:07", "2026-01-02T10:30:05"],
        ),
    ],
)
def test_the_next_time_is_the_first_that_matches(text: str, after: str, times: list[str]) -> None:
    expected = [datetime.fromisoformat(time).replace(tzinfo=UTC).isoformat() for time in times]
    assert next_times(text, "UTC", after, len(times)) == expected


@pytest.mark.parametrize(
    "zone, text, after, times",
    [
        # Forward: 02:00 becomes 03:00. What is left out comes once, right after it.
        ("Europe/Berlin", "30 2 * * *", "2026-03-28T12:00", ["2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"]),
        ("Europe/Berlin", "0,30 2 * * *", "2026-03-28T12:00", ["2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00"]),
        ("Europe/Berlin", "0 2,3 * * *", "2026-03-28T12:00", ["2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00"]),
        ("Europe/Berlin", "*/30 * * * *", "2026-03-29T01:30", ["2026-03-29T03:00:00+02:00", "2026-03-29T03:30:00+02:00"]),
        ("Europe/Berlin", "*/30 2 * * *", "2026-03-28T12:00", ["2026-03-30T02:00:00+02:00"]),
        ("America/Sao_Paulo", "0 0 * * *", "2018-11-03T12:00", ["2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00"]),
        # Back: 03:00 becomes 02:00. What comes twice ticks once, unless it follows the time that passes.
        ("Europe/Berlin", "30 2 * * *", "2026-10-24T12:00", ["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"]),
        (
            "Europe/Berlin",
            "*/30 * * * *",
            "2026-10-25T01:45",
            [f"2026-10-25T02:{m}:00+0{h}:00" for h in (2, 1) for m in ("00", "30")],
        ),
        ("America/Sao_Paulo", "30 23 * * *", "2018-02-17T12:00", ["2018-02-17T23:30:00-02:00", "2018-02-18T23:30:00-03:00"]),
        # Back over midnight: the 29th had begun, and it was the 28th again.
        ("America/St_Johns", "*/30 * * * *", "2006-10-29T00:00", ["2006-10-28T23:30:00-03:30", "2006-10-29T00:00:00-03:30"]),
        ("America/St_Johns", "*/30 * 28 * *", "2006-10-29T00:00", ["2006-10-28T23:30:00-03:30", "2006-11-28T00:00:00-03:30"]),
        ("Australia/Lord_Howe", "45 1 * * *", "2026-04-04T12:00", ["2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"]),
    ],
)  # fmt: skip
def test_clocks_that_change_are_followed_as_cron_does(zone: str, text: str, after: str, times: list[str]) -> None:
    assert next_times(text, zone, after, len(times)) == times


def test_a_gap_that_reaches_into_the_next_day_is_made_up_for() -> None:
    """Toronto, 1919: at half past eleven in the evening it was half past midnight."""
    next_tick = table("45 23 30 3 *", HalfPastEleven())
    tick = next_tick(ms(datetime(1999, 3, 30, 12, tzinfo=UTC)))
    assert tick == ms(datetime(1999, 3, 30, 23, 30, tzinfo=UTC))


class HalfPastEleven(tzinfo):
    def utcoffset(self, moment: datetime | None) -> timedelta:
        assert moment is not None
        return timedelta(hours=moment.replace(tzinfo=UTC) >= datetime(1999, 3, 31, 0, 30, tzinfo=UTC))

    def dst(self, moment: datetime | None) -> timedelta:
        return timedelta(0)

    def fromutc(self, moment: datetime) -> datetime:
        later = moment.replace(tzinfo=UTC) >= datetime(1999, 3, 30, 23, 30, tzinfo=UTC)
        return moment + timedelta(hours=later)


def test_a_day_that_was_left_out_has_no_ticks() -> None:
    assert next_times("0 12 * * *", "Pacific/Apia", "2011-12-29T00:00", 2) == [
        "2011-12-29T12:00:00-10:00",
        "2011-12-31T12:00:00+14:00",
    ]


def test_every_counts_from_its_beginning_whatever_the_zone() -> None:
    next_tick = table("every 90s", "Europe/Berlin", anchor_ms=1_000_123)
    assert [next_tick(after) for after in (0, 1_000_123, 1_090_122, 1_090_123)] == [
        1_090_123,
        1_090_123,
        1_090_123,
        1_180_123,
    ]


@pytest.mark.parametrize("text", ["0 0 31 2 *", "0 0 30 2 *", "0 0 31 4,6,9,11 *"])
def test_what_never_fires_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="never fires"):
        require_a_tick(table(text), text, after_ms=0)


def test_what_fires_has_a_first_time() -> None:
    assert require_a_tick(table("@hourly"), "@hourly", after_ms=0) == 3_600_000


@pytest.mark.parametrize("text", ["@yearly", "every 3d", "0 0 31 12 *"])
def test_time_ends_with_what_a_date_can_hold(text: str) -> None:
    next_tick = table(text)
    assert next_tick(LAST_MS) is None
    last, ticks = LAST_MS - 366 * 86_400_000, 0
    while (tick := next_tick(last)) is not None:
        last, ticks = tick, ticks + 1
    assert ticks >= 1
    assert last <= LAST_MS


# ── by brute force ──────────────────────────────────────────────────────────────────────────────────────────────────


def some(low: int, high: int) -> st.SearchStrategy[str]:
    """A field: a star, one with a step, or up to four numbers."""
    numbers = st.sets(st.integers(low, high), min_size=1, max_size=4).map(
        lambda found: ",".join(map(str, sorted(found)))
    )
    return st.one_of(st.just("*"), st.integers(1, high - low + 1).map(lambda step: f"*/{step}"), numbers)


FIELDS = st.tuples(some(0, 59), some(0, 23), some(1, 31), some(1, 12), some(0, 6))
# Days around which clocks change in one of the zones, and any other.
CHANGES = [(2026, 3, 29), (2026, 10, 25), (2018, 11, 4), (2018, 2, 18), (2026, 4, 5), (2026, 11, 1), (2026, 3, 8),
           (2026, 4, 24), (2026, 10, 30), (2026, 2, 15), (2026, 3, 22)]  # fmt: skip
STARTS = st.one_of(
    st.sampled_from(CHANGES).map(lambda day: datetime(*day, tzinfo=UTC) - timedelta(days=1)),
    st.integers(946_684_800, 2_208_988_800).map(lambda second: datetime.fromtimestamp(second, UTC)),
)


@cache
def allowed(field: str, low: int, high: int) -> frozenset[int]:
    if field.startswith("*"):
        return frozenset(range(low, high + 1, int(field[2:] or 1)))
    return frozenset(map(int, field.split(",")))


def matches(fields: tuple[str, ...], wall: datetime) -> bool:
    minute, hour, day, month, weekday = fields
    in_month, in_week = wall.day in allowed(day, 1, 31), wall.isoweekday() % 7 in allowed(weekday, 0, 6)
    is_day = in_month and in_week if "*" in (day[0], weekday[0]) else in_month or in_week
    return (
        is_day
        and wall.minute in allowed(minute, 0, 59)
        and wall.hour in allowed(hour, 0, 23)
        and wall.month in allowed(month, 1, 12)
    )


def reference(fields: tuple[str, ...], zone: ZoneInfo, start: datetime, minutes: int) -> list[int]:
    """Every minute of a stretch of time that is due, looked at one by one."""
    found = set()
    end = start + minutes * MINUTE
    if "*" in (fields[0][0], fields[1][0]):
        for number in range(1, minutes + 1):
            moment = start + number * MINUTE
            if matches(fields, moment.astimezone(zone).replace(tzinfo=None)):
                found.add(ms(moment))
        return sorted(found)
    wall = (start - timedelta(days=2)).replace(tzinfo=None)
    while wall < (end + timedelta(days=2)).replace(tzinfo=None):
        if matches(fields, wall):
            there = wall
            while there.replace(tzinfo=zone).astimezone(UTC).astimezone(zone).replace(tzinfo=None) != there:
                there += MINUTE  # it does not exist: the first moment after the gap
            moment = there.replace(tzinfo=zone).astimezone(UTC)
            if start < moment <= end:
                found.add(ms(moment))
        wall += MINUTE
    return sorted(found)


@settings(max_examples=150 if FULL else 60)
@given(fields=FIELDS, zone=st.sampled_from([name for name in ZONES if name != "Pacific/Apia"]), start=STARTS)
def test_the_ticks_are_those_that_looking_at_every_minute_finds(
    fields: tuple[str, ...], zone: str, start: datetime
) -> None:
    start = start.replace(second=0, microsecond=0)
    next_tick, minutes = table(" ".join(fields), zone), 2 * 1440
    found, tick = [], next_tick(ms(start))
    while tick is not None and tick <= ms(start + minutes * MINUTE):
        found.append(tick)
        tick = next_tick(tick)
    assert found == reference(fields, ZoneInfo(zone), start, minutes)


@given(
    fields=st.tuples(some(0, 59), *(some(low, high) for low, high in ((0, 59), (0, 23), (1, 28), (1, 12), (0, 6)))),
    zone=st.sampled_from(ZONES),
    after_ms=st.integers(0, 4_000_000_000_000),
)
def test_the_next_tick_is_later_and_none_is_left_out(fields: tuple[str, ...], zone: str, after_ms: int) -> None:
    next_tick = table(" ".join(fields), zone)
    tick = next_tick(after_ms)
    assert tick is not None
    assert tick > after_ms
    assert tick % 1000 == 0
    for between in ((after_ms + tick) // 2, tick - 1):
        assert next_tick(between) == tick


@given(
    day=st.dates(date(1970, 1, 1), date(2100, 1, 1)),
    fields=st.tuples(some(1, 31), some(1, 12), some(0, 6)),
)
def test_no_day_is_left_out_before_the_next_one(day: date, fields: tuple[str, str, str]) -> None:
    calendar = parse_expression(f"0 0 {' '.join(fields)}")
    assert isinstance(calendar, Calendar)
    found = next_day(calendar, day)
    looked = (day + timedelta(days=number) for number in range(800))
    first = next((one for one in looked if is_allowed(calendar, one)), None)
    assert found == first or (first is None and (found is None or found - day >= timedelta(days=800)))
