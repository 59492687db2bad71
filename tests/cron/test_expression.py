from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuectl.cron.expression import (
    LAST_MS,
    NICKNAMES,
    Cron,
    Every,
    NextRun,
    explain,
    normalize,
    parse_expression,
    require_a_run,
    timetable,
)
from queuectl.errors import InvalidInput
from tests.needs import FULL


def cron(text: str) -> Cron:
    found = parse_expression(text)
    assert isinstance(found, Cron)
    return found


def values(text: str, unit: str) -> tuple[int, ...]:
    """The numbers of a field, as read off the runs of 2025, whose first day is a Wednesday."""
    fields = {"second": 0, "minute": 0, "hour": 0, "day": "*", "month": "*", "weekday": "*", unit: text}
    next_run = timetable(cron(" ".join(map(str, fields.values()))), zone=UTC, anchor_ms=0)
    at, found = round(datetime(2025, 1, 1, tzinfo=UTC).timestamp() * 1000) - 1, set()
    for _ in range(400):
        at = _next(next_run, at)
        moment = datetime.fromtimestamp(at / 1000, UTC)
        found.add(moment.isoweekday() % 7 if unit == "weekday" else getattr(moment, unit))
    return tuple(sorted(found))


def _next(next_run: NextRun, after_ms: int) -> int:
    found = next_run(after_ms)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "text, unit, numbers",
    [
        ("5", "minute", (5,)),
        ("*", "hour", tuple(range(24))),
        ("*/20", "minute", (0, 20, 40)),
        ("*/24", "hour", (0,)),
        ("1-5", "hour", (1, 2, 3, 4, 5)),
        ("10-30/10", "second", (10, 20, 30)),
        ("1,3-4,*/20", "minute", (0, 1, 3, 4, 20, 40)),
        ("007", "hour", (7,)),
        ("JAN,mar-May", "month", (1, 3, 4, 5)),
        ("MON-FRI", "weekday", (1, 2, 3, 4, 5)),
        ("7", "weekday", (0,)),
        ("0,7", "weekday", (0,)),
        ("FRI-SUN", "weekday", (0, 5, 6)),
        ("SUN-TUE", "weekday", (0, 1, 2)),
        ("5-7", "weekday", (0, 5, 6)),
        ("*/2", "weekday", (0, 2, 4, 6)),
        ("5-5/2", "hour", (5,)),
        ("31", "day", (31,)),
    ],
)
def test_a_field_allows_the_numbers_it_names(text: str, unit: str, numbers: tuple[int, ...]) -> None:
    assert values(text, unit) == numbers


@pytest.mark.parametrize(
    "text, problem",
    [
        ("60 * * * *", "minute: found '60', expected 0-59"),
        ("* 24 * * *", "hour: found '24', expected 0-23"),
        ("* * 0 * *", "day of month: found '0', expected 1-31"),
        ("* * * 13 *", "month: found '13', expected 1-12 or JAN-DEC"),
        ("* * * * 8", "day of week: found '8', expected 0-7 or SUN-SAT"),
        ("* * * * MONDAY", "day of week: found 'MONDAY', expected 0-7 or SUN-SAT"),
        ("60 * * * * *", "second: found '60', expected 0-59"),
        ("0-99 * * * *", "minute: found '0-99', expected 0-59"),
        ("0-999999999 * * * *", "minute: found '0-999999999', expected 0-59"),
        ("* 22-6 * * *", "hour: found '22-6', expected 0-23"),
        ("*/0 * * * *", "minute: found '*/0', expected 0-59"),
        ("*/90 * * * *", "minute: found the step 90 in '*/90', expected 1-60"),
        ("5/15 * * * *", "minute: found '5/15', expected 0-59"),
        ("a * * * *", "minute: found 'a', expected 0-59"),
        ("1,,2 * * * *", "minute: found '', expected 0-59"),
        ("1- * * * *", "minute: found '1-', expected 0-59"),
        ("-5 * * * *", "minute: found '-5', expected 0-59"),
        ("* * ? * *", "day of month: found '?', expected 1-31"),
        ("* * L * *", "day of month: found 'L', expected 1-31"),
        ("٣ * * * *", "minute: found '٣', expected 0-59"),
        ("*", "found 1 field in '*', expected 5, or 6 with seconds"),
        ("* * * *", "found 4 fields in '* * * *', expected 5, or 6 with seconds"),
        ("* * * * * * *", "found 7 fields in '* * * * * * *', expected 5, or 6 with seconds"),
        ("  ", "empty"),
        ("* " * 600, "1200 characters, at most 1000 are allowed"),
        ("@reboot", "found '@reboot', expected a name like @daily"),
        ("@daily 5", "found '@daily 5', expected a name like @daily"),
        ("every", "every: duration is missing"),
        ("every 500ms", "every: found '500ms', expected at least 1s"),
        ("every soon", "every: expected a duration, got 'soon'"),
        ("every -5s", "every: a duration cannot be negative: '-5s'"),
    ],
)
def test_an_invalid_expression_is_refused_with_field_value_and_range(text: str, problem: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_expression(text)
    assert refused.value.message == f"schedule: {problem}"
    assert refused.value.hint


def test_the_error_for_a_misspelled_nickname_suggests_the_right_one() -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_expression("@dayly")
    assert refused.value.hint == "did you mean '@daily'?"


@pytest.mark.parametrize("name", NICKNAMES)
def test_a_nickname_is_short_for_five_fields(name: str) -> None:
    assert parse_expression(name.upper()) == parse_expression(NICKNAMES[name])


def test_five_fields_begin_with_minutes_and_six_with_seconds() -> None:
    assert cron("1 2 3 4 5") == cron("0 1 2 3 4 5")
    assert values("9", "second") == (9,)


@pytest.mark.parametrize(
    "text, is_fixed",
    [
        ("30 2 * * *", True),
        ("*/5 2 * * *", False),
        ("0 * * * *", False),
        ("0 */2 * * *", False),
        ("* 30 2 * * *", True),
    ],
)
def test_times_are_fixed_unless_minutes_or_hours_start_with_a_star(text: str, is_fixed: bool) -> None:
    assert cron(text).has_fixed_times is is_fixed


def test_every_takes_any_duration_of_at_least_a_second() -> None:
    assert parse_expression("every 90s") == Every(90_000)
    assert parse_expression("EVERY 1h 30m") == Every(5_400_000)


def test_an_expression_is_stored_with_single_blanks() -> None:
    assert normalize("  0  2 *\t* * ") == "0 2 * * *"


ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Sao_Paulo",  # the clocks changed at midnight
    "Africa/Cairo",  # they still do
    "Australia/Lord_Howe",  # half an hour
    "Asia/Kathmandu",
    "Africa/Casablanca",  # back first, then forward
    "Pacific/Apia",  # skipped a day
]
MINUTE = timedelta(minutes=1)


def ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def table(text: str, zone: str | tzinfo = "UTC", *, anchor_ms: int = 0) -> NextRun:
    found = ZoneInfo(zone) if isinstance(zone, str) else zone
    return timetable(parse_expression(text), zone=found, anchor_ms=anchor_ms)


def next_times(text: str, zone: str, after: str, count: int) -> list[str]:
    """By the clock of the zone, with how far it is from UTC."""
    next_run, moment, found = table(text, zone), ms(datetime.fromisoformat(after).replace(tzinfo=ZoneInfo(zone))), []
    for _ in range(count):
        run = next_run(moment)
        assert run is not None
        moment = run
        found.append(datetime.fromtimestamp(run / 1000, ZoneInfo(zone)).isoformat())
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
        # Forward: 02:00 becomes 03:00. Times in the gap run once, right after it.
        ("Europe/Berlin", "30 2 * * *", "2026-03-28T12:00", ["2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"]),
        ("Europe/Berlin", "0,30 2 * * *", "2026-03-28T12:00", ["2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00"]),
        ("Europe/Berlin", "0 2,3 * * *", "2026-03-28T12:00", ["2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00"]),
        ("Europe/Berlin", "*/30 * * * *", "2026-03-29T01:30", ["2026-03-29T03:00:00+02:00", "2026-03-29T03:30:00+02:00"]),
        ("Europe/Berlin", "*/30 2 * * *", "2026-03-28T12:00", ["2026-03-30T02:00:00+02:00"]),
        ("America/Sao_Paulo", "0 0 * * *", "2018-11-03T12:00", ["2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00"]),
        # Back: 03:00 becomes 02:00. Fixed times run once, others follow elapsed time.
        ("Europe/Berlin", "30 2 * * *", "2026-10-24T12:00", ["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"]),
        (
            "Europe/Berlin",
            "*/30 * * * *",
            "2026-10-25T01:45",
            [f"2026-10-25T02:{m}:00+0{h}:00" for h in (2, 1) for m in ("00", "30")],
        ),
        ("America/Sao_Paulo", "30 23 * * *", "2018-02-17T12:00", ["2018-02-17T23:30:00-02:00", "2018-02-18T23:30:00-03:00"]),
        # Back over midnight, from the 29th to the 28th.
        ("America/St_Johns", "*/30 * * * *", "2006-10-29T00:00", ["2006-10-28T23:30:00-03:30", "2006-10-29T00:00:00-03:30"]),
        ("America/St_Johns", "*/30 * 28 * *", "2006-10-29T00:00", ["2006-10-28T23:30:00-03:30", "2006-11-28T00:00:00-03:30"]),
        ("Australia/Lord_Howe", "45 1 * * *", "2026-04-04T12:00", ["2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"]),
    ],
)  # fmt: skip
def test_clock_changes_are_handled_as_in_debians_cron(zone: str, text: str, after: str, times: list[str]) -> None:
    assert next_times(text, zone, after, len(times)) == times


def test_times_in_a_gap_across_midnight_run_right_after_it() -> None:
    """Toronto, 1919: 23:30 became 00:30 of the next day."""
    assert next_times("45 23 * * *", "America/Toronto", "1919-03-30T12:00", 2) == [
        "1919-03-31T00:30:00-04:00",
        "1919-03-31T23:45:00-04:00",
    ]


def test_times_of_a_day_without_hours_run_once_after_it() -> None:
    """Samoa crossed the date line: there was no 30 December 2011."""
    assert next_times("0 12 * * *", "Pacific/Apia", "2011-12-29T00:00", 3) == [
        "2011-12-29T12:00:00-10:00",
        "2011-12-31T00:00:00+14:00",
        "2011-12-31T12:00:00+14:00",
    ]


def test_every_counts_from_its_anchor_in_any_time_zone() -> None:
    next_run = table("every 90s", "Europe/Berlin", anchor_ms=1_000_123)
    assert [next_run(after) for after in (0, 1_000_123, 1_090_122, 1_090_123)] == [
        1_090_123,
        1_090_123,
        1_090_123,
        1_180_123,
    ]


@pytest.mark.parametrize("text", ["0 0 31 2 *", "0 0 30 2 *", "0 0 31 4,6,9,11 *"])
def test_a_schedule_that_never_runs_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="never runs"):
        require_a_run(table(text), text, after_ms=0)


def test_the_first_run_of_a_schedule_is_returned() -> None:
    assert require_a_run(table("@hourly"), "@hourly", after_ms=0) == 3_600_000


@pytest.mark.parametrize("text", ["@yearly", "every 3d", "0 0 31 12 *"])
def test_there_are_no_runs_after_the_last_date(text: str) -> None:
    next_run = table(text)
    assert next_run(LAST_MS) is None
    last, runs = LAST_MS - 366 * 86_400_000, 0
    while (run := next_run(last)) is not None:
        last, runs = run, runs + 1
    assert runs >= 1
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
    """The matching minutes of a period, checked one by one."""
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
                there += MINUTE  # inside a gap: take the first moment after it
            moment = there.replace(tzinfo=zone).astimezone(UTC)
            if start < moment <= end:
                found.add(ms(moment))
        wall += MINUTE
    return sorted(found)


@settings(max_examples=150 if FULL else 60)
@given(fields=FIELDS, zone=st.sampled_from([name for name in ZONES if name != "Pacific/Apia"]), start=STARTS)
def test_runs_match_a_brute_force_search_of_every_minute(fields: tuple[str, ...], zone: str, start: datetime) -> None:
    start = start.replace(second=0, microsecond=0)
    next_run, minutes = table(" ".join(fields), zone), 2 * 1440
    found, run = [], next_run(ms(start))
    while run is not None and run <= ms(start + minutes * MINUTE):
        found.append(run)
        run = next_run(run)
    assert found == reference(fields, ZoneInfo(zone), start, minutes)


@given(
    fields=st.tuples(some(0, 59), *(some(low, high) for low, high in ((0, 59), (0, 23), (1, 28), (1, 12), (0, 6)))),
    zone=st.sampled_from(ZONES),
    after_ms=st.integers(0, 4_000_000_000_000),
)
def test_the_next_run_is_later_and_no_run_is_skipped(fields: tuple[str, ...], zone: str, after_ms: int) -> None:
    next_run = table(" ".join(fields), zone)
    run = next_run(after_ms)
    assert run is not None
    assert run > after_ms
    assert run % 1000 == 0
    for between in ((after_ms + run) // 2, run - 1):
        assert next_run(between) == run


def test_a_fixed_time_is_not_repeated_when_clocks_are_set_back() -> None:
    next_run = table("30 2 * * *", "Europe/Berlin")
    second_pass = ms(datetime(2026, 10, 25, 1, 10, tzinfo=UTC))  # 02:10 in Berlin, for the second time
    assert next_run(second_pass) == ms(datetime(2026, 10, 26, 1, 30, tzinfo=UTC))


def test_a_date_that_does_not_exist_has_no_runs() -> None:
    assert table("*/5 * 31 2 *", "Europe/Berlin")(0) is None


@pytest.mark.parametrize(
    "text, words",
    [
        ("every 90m", "Every 1h30m"),
        ("0 2 * * 1-5", "At 02:00 on Monday through Friday"),
        ("30 0 2 * * *", "At 02:00:30 every day"),
        ("@daily", "At 00:00 every day"),
    ],
)
def test_an_expression_is_explained_in_words(text: str, words: str) -> None:
    assert explain(text) == words
