from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from enum import StrEnum
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuectl.errors import InvalidInput
from queuectl.text import short_repr
from queuectl.units import (
    MAX_ARRAY_INDEX,
    MAX_DURATION_MS,
    MAX_SIZE,
    format_duration,
    format_size,
    from_ms,
    humanize_duration,
    humanize_elapsed,
    humanize_size,
    humanize_time,
    iso,
    parse_array,
    parse_duration_ms,
    parse_size,
    parse_time_ms,
    to_json,
)
from tests.messages import assert_readable


@pytest.mark.parametrize(
    "written, ms",
    [
        (0, 0),
        (90, 90_000),
        (3.0, 3_000),
        (0.25, 250),
        (-0.0, 0),
        ("0", 0),
        ("90", 90_000),
        ("1.5", 1_500),
        (".5s", 500),
        ("500ms", 500),
        ("90s", 90_000),
        ("2m", 120_000),
        ("1.5h", 5_400_000),
        ("1h30m", 5_400_000),
        ("30m1h", 5_400_000),
        (" 1h 30 m ", 5_400_000),
        ("1H30M", 5_400_000),
        ("2d", 172_800_000),
        ("1w", 604_800_000),
        ("1m500ms", 60_500),
        ("36525d", MAX_DURATION_MS),
        (timedelta(minutes=1), 60_000),
        (timedelta(microseconds=1), 1),
    ],
)
def test_a_duration_is_parsed(written: object, ms: int) -> None:
    assert parse_duration_ms(written, subject="delay") == ms


@pytest.mark.parametrize("written", ["0.0001", "0.0001ms", 1e-9])
def test_a_positive_duration_is_never_rounded_to_zero(written: object) -> None:
    assert parse_duration_ms(written, subject="timeout") == 1


@pytest.mark.parametrize(
    "written, problem",
    [
        (True, "expected a duration, got true"),
        (None, "expected a duration, got null"),
        ([1], "expected a duration, got a list"),
        ("", "expected a duration, got ''"),
        ("soon", "expected a duration, got 'soon'"),
        ("1h30", "expected a duration, got '1h30'"),
        ("1e3", "expected a duration, got '1e3'"),
        ("5.s", "expected a duration, got '5.s'"),
        ("٣s", "expected a duration, got '٣s'"),
        ("1y", "expected a duration, got '1y'"),
        ("nan", "expected a duration, got 'nan'"),
        (float("nan"), "expected a duration, got nan"),
        (float("inf"), "over 100 years: inf"),
        (10**400, "over 100 years: an integer of absurd length"),
        ("36526d", "over 100 years: '36526d'"),
        ("9" * 1000, "over 100 years: '" + "9" * 59 + "…'"),
        (-1, "a duration cannot be negative: -1"),
        (-(10**400), "a duration cannot be negative: an integer of absurd length"),
        (float("-inf"), "a duration cannot be negative: -inf"),
        (timedelta(seconds=-1), "a duration cannot be negative: a Python timedelta"),
        ("-5s", "a duration cannot be negative: '-5s'"),
        ("-5", "a duration cannot be negative: '-5'"),
    ],
    ids=short_repr,
)
def test_an_invalid_duration_is_rejected_with_the_accepted_forms(written: object, problem: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_duration_ms(written, subject="delay")
    assert caught.value.message == f"delay: {problem}"
    assert "1h30m" in caught.value.hint


@pytest.mark.parametrize(
    "ms, text",
    [
        (0, "0s"),
        (1, "1ms"),
        (500, "500ms"),
        (1_000, "1s"),
        (2_500, "2.5s"),
        (2_050, "2.05s"),
        (60_000, "1m"),
        (60_500, "1m0.5s"),
        (90_000, "1m30s"),
        (3_600_000, "1h"),
        (3_601_000, "1h1s"),
        (30 * 86_400_000, "30d"),
        (129_600_000, "1d12h"),
    ],
)
def test_a_duration_has_one_canonical_form(ms: int, text: str) -> None:
    assert format_duration(ms) == text


@given(st.integers(0, MAX_DURATION_MS))
def test_a_formatted_duration_is_parsed_unchanged(ms: int) -> None:
    assert parse_duration_ms(format_duration(ms), subject="x") == ms


@given(st.integers(0, MAX_DURATION_MS))
def test_seconds_and_milliseconds_agree_to_the_millisecond(ms: int) -> None:
    assert parse_duration_ms(ms / 1000, subject="x") == ms


@given(st.one_of(st.text(), st.floats(), st.integers(), st.text("0123456789.hms -")))
def test_any_value_is_a_duration_in_range_or_rejected(value: object) -> None:
    try:
        assert 0 <= parse_duration_ms(value, subject="x") <= MAX_DURATION_MS
    except InvalidInput as refused:
        assert_readable(refused)


@pytest.mark.parametrize(
    "written, size",
    [
        (0, 0),
        (1000, 1000),
        (2.0, 2),
        ("1000", 1000),
        ("1000B", 1000),
        ("64KiB", 65_536),
        ("64 kib", 65_536),
        ("64k", 65_536),
        ("64MiB", 64 * 2**20),
        ("1.5GiB", 3 * 2**29),
        ("1T", 2**40),
        ("10MB", 10_000_000),
        ("10kB", 10_000),
    ],
)
def test_a_size_is_parsed(written: object, size: int) -> None:
    assert parse_size(written, subject="log-limit") == size


@pytest.mark.parametrize(
    "written", [True, None, [], "", "much", "1i", "-1", -1, 10**400, float("nan"), "1025TiB", "9" * 999], ids=short_repr
)
def test_an_invalid_size_is_rejected_with_the_accepted_forms(written: object) -> None:
    with pytest.raises(InvalidInput, match=r"^log-limit: ") as caught:
        parse_size(written, subject="log-limit")
    assert "64KiB" in caught.value.hint


@pytest.mark.parametrize(
    "size, text", [(0, "0"), (1, "1"), (1000, "1kB"), (1024, "1KiB"), (64 * 2**20, "64MiB"), (10_000_000, "10MB")]
)
def test_a_size_has_one_canonical_form(size: int, text: str) -> None:
    assert format_size(size) == text


@pytest.mark.parametrize(
    "size, text",
    [(0, "0B"), (1023, "1023B"), (1024, "1.0KiB"), (10_000, "9.8KiB"), (12_021_760, "11MiB"), (2**31, "2.0GiB")],
)
def test_a_humanized_size_has_at_most_three_digits(size: int, text: str) -> None:
    assert humanize_size(size) == text


@given(st.integers(0, MAX_SIZE))
def test_a_formatted_size_is_parsed_unchanged(size: int) -> None:
    assert parse_size(format_size(size), subject="x") == size


class Berlin(tzinfo):
    """Central Europe in 2026, without a time zone database."""

    FORWARD = datetime(2026, 3, 29, 2)  # noqa: DTZ001 - the clocks on the wall
    BACK = datetime(2026, 10, 25, 2)  # noqa: DTZ001

    def utcoffset(self, moment: datetime | None) -> timedelta:
        assert moment is not None
        wall, hour = moment.replace(tzinfo=None, fold=0), timedelta(hours=1)
        is_skipped = self.FORWARD <= wall < self.FORWARD + hour
        comes_twice = self.BACK <= wall < self.BACK + hour
        is_summer = (
            moment.fold == 1 if is_skipped else moment.fold == 0 if comes_twice else self.FORWARD < wall < self.BACK
        )
        return 2 * hour if is_summer else hour

    def dst(self, moment: datetime | None) -> timedelta:
        return self.utcoffset(moment) - timedelta(hours=1)

    def tzname(self, moment: datetime | None) -> str:
        return "Berlin"


BERLIN = Berlin()


def written_as(text: object) -> str | None:
    """Parse a time in the zone of Berlin and format it."""
    return iso(from_ms(parse_time_ms(text, subject="run_at", local=BERLIN)))


@pytest.mark.parametrize(
    "text, moment",
    [
        ("2026-11-15T20:30:00Z", "2026-11-15T20:30:00.000Z"),
        ("2026-11-15t20:30:00z", "2026-11-15T20:30:00.000Z"),
        ("2026-11-15 20:30Z", "2026-11-15T20:30:00.000Z"),
        (" 2026-11-15 20:30:05.1 Z ", "2026-11-15T20:30:05.100Z"),
        ("2026-11-15T20:30:05.1239999Z", "2026-11-15T20:30:05.123Z"),
        ("2026-11-15T20:30:05,5Z", "2026-11-15T20:30:05.500Z"),
        ("2026-11-15T20:30+02:00", "2026-11-15T18:30:00.000Z"),
        ("2026-11-15T20:30:00+0200", "2026-11-15T18:30:00.000Z"),
        ("2026-11-15T20:30:00+02", "2026-11-15T18:30:00.000Z"),
        ("2026-11-15T20:30:00-03:30", "2026-11-16T00:00:00.000Z"),
        ("2026-11-15T20:30:00", "2026-11-15T19:30:00.000Z"),
        ("2026-07-15 20:30", "2026-07-15T18:30:00.000Z"),
        ("2026-11-15", "2026-11-14T23:00:00.000Z"),
        ("2024-02-29", "2024-02-28T23:00:00.000Z"),
        ("1970-01-01", "1970-01-01T00:00:00.000Z"),
        ("2026-11-15T20Z", "2026-11-15T20:00:00.000Z"),
        ("20261115T203005.5Z", "2026-11-15T20:30:05.500Z"),
        ("20261115T203000+0200", "2026-11-15T18:30:00.000Z"),
        ("20261115T2030", "2026-11-15T19:30:00.000Z"),
        ("20261115T20-03", "2026-11-15T23:00:00.000Z"),
        ("20261115", "2026-11-14T23:00:00.000Z"),
        (datetime(2026, 11, 15, 20, 30, tzinfo=timezone(timedelta(hours=2))), "2026-11-15T18:30:00.000Z"),
        (datetime(2026, 11, 15, 20, 30), "2026-11-15T19:30:00.000Z"),  # noqa: DTZ001 - a time without zone is the case
    ],
)
def test_a_time_is_parsed(text: object, moment: str) -> None:
    assert written_as(text) == moment


@pytest.mark.parametrize(
    "text",
    ["1969-12-31T23:59:59Z", "1969-12-31", "0001-01-01T00:00:00Z", "0001-01-01T00:00+14:00", datetime(1, 1, 1)],  # noqa: DTZ001
)
@pytest.mark.parametrize("local", [BERLIN, None])
def test_a_time_before_1970_counts_as_1970(text: object, local: tzinfo | None) -> None:
    assert parse_time_ms(text, subject="run_at", local=local) == 0


def test_a_time_in_a_dst_gap_has_the_offset_before_it() -> None:
    assert written_as("2026-03-29T02:30") == "2026-03-29T01:30:00.000Z"


def test_of_a_repeated_time_the_first_is_used() -> None:
    assert written_as("2026-10-25T02:30") == "2026-10-25T00:30:00.000Z"


def test_without_a_zone_the_zone_of_the_host_is_used() -> None:
    moment = datetime(2026, 11, 15, 20, 30).astimezone()
    ms = parse_time_ms("2026-11-15 20:30", subject="run_at", local=None)
    assert from_ms(ms) == moment


@pytest.mark.parametrize(
    "text, problem",
    [
        (5, "expected a time, got 5"),
        (True, "expected a time, got true"),
        ("", "expected a time, got ''"),
        ("tomorrow", "expected a time, got 'tomorrow'"),
        ("1763238467", "expected a time, got '1763238467'"),
        ("2026-11-15x20:30", "expected a time, got '2026-11-15x20:30'"),
        ("2026-11-15T2", "expected a time, got '2026-11-15T2'"),
        ("20261115T2", "expected a time, got '20261115T2'"),
        ("20261115T203", "expected a time, got '20261115T203'"),
        ("20261115 2030", "expected a time, got '20261115 2030'"),
        ("2026111520", "expected a time, got '2026111520'"),
        ("٢٠٢٦-11-15", "expected a time, got '٢٠٢٦-11-15'"),
        ("2026-02-30", "there is no such time: '2026-02-30'"),
        ("2026-13-01", "there is no such time: '2026-13-01'"),
        ("2026-11-15T24:00", "there is no such time: '2026-11-15T24:00'"),
        ("2026-11-15T23:59:60Z", "there is no such time: '2026-11-15T23:59:60Z'"),
        ("2026-11-15T20:30+24:00", "there is no such time: '2026-11-15T20:30+24:00'"),
        ("2026-11-15T20:30+02:60", "there is no such time: '2026-11-15T20:30+02:60'"),
        ("0000-01-01", "there is no such time: '0000-01-01'"),
        ("20261315", "there is no such time: '20261315'"),
        ("9999-12-31T23:59-01:00", "not after the year 9999: '9999-12-31T23:59-01:00'"),
    ],
)
def test_an_invalid_time_is_rejected_with_the_accepted_forms(text: object, problem: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_time_ms(text, subject="run_at", local=BERLIN)
    assert caught.value.message.startswith(f"run_at: {problem}")
    assert "2026-11-15 20:30" in caught.value.hint


@given(st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC)))  # noqa: DTZ001 - bounds
def test_a_formatted_time_is_parsed_unchanged(moment: datetime) -> None:
    ms = parse_time_ms(moment, subject="x", local=None)
    assert parse_time_ms(iso(from_ms(ms)), subject="x", local=None) == ms


@given(st.one_of(st.text("0123456789-:T Z+."), st.datetimes(), st.text()))
def test_any_value_is_a_time_or_rejected(value: object) -> None:
    try:
        assert parse_time_ms(value, subject="x", local=None) >= 0
    except InvalidInput as refused:
        assert_readable(refused)


NOW = 1_800_000_000_000


@pytest.mark.parametrize(
    "distance_ms, said",
    [(0, "now"), (-999, "now"), (999, "now"), (-1_000, "1s ago"), (20_000, "in 20s"), (-180_000, "3m ago")],
)
def test_a_time_is_humanized_relative_to_now(distance_ms: int, said: str) -> None:
    assert humanize_time(NOW + distance_ms, NOW) == said


@pytest.mark.parametrize(
    "ms, said",
    [(0, "0s"), (59_999, "59s"), (60_000, "1m"), (3_599_999, "59m"), (18_000_000, "5h"), (12 * 86_400_000, "12d")],
)
def test_a_humanized_duration_is_in_its_largest_unit_rounded_down(ms: int, said: str) -> None:
    assert humanize_duration(ms) == said


@pytest.mark.parametrize(
    "ms, said",
    [
        (0, "0ms"),
        (340, "340ms"),
        (1_250, "1.25s"),
        (9_999, "9.99s"),
        (12_500, "12.5s"),
        (59_999, "59.9s"),
        (125_000, "2m 05s"),
        (11_040_000, "3h 04m"),
        (2 * 86_400_000 + 3 * 3_600_000, "2d 03h"),
    ],
)
def test_a_duration_has_about_three_digits_and_is_never_rounded_up(ms: int, said: str) -> None:
    assert humanize_elapsed(ms) == said


@pytest.mark.parametrize(
    "text, indices",
    [
        ("1-3", [1, 2, 3]),
        ("7", [7]),
        ("1,3,7", [1, 3, 7]),
        ("0-9:3", [0, 3, 6, 9]),
        ("1-10:4", [1, 5, 9]),
        ("9, 1-2", [9, 1, 2]),
        ("5-5", [5]),
        (str(MAX_ARRAY_INDEX), [MAX_ARRAY_INDEX]),
    ],
)
def test_a_range_is_parsed(text: str, indices: list[int]) -> None:
    assert parse_array(text, subject="--array") == (indices, None)
    assert parse_array(f"{text}%4", subject="--array") == (indices, 4)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "a",
            "-1",
            "1-",
            "1--2",
            "3-1",
            "1-9:0",
            "1-9:",
            "1,,2",
            "1;2",
            "1-3,2",
            "1" * 40,
            str(MAX_ARRAY_INDEX + 1),
        ),
        *(
            "1-1000001",
            "1-1000000,2000000",
            "1-100%",
            "1-100%0",
            "1-100%x",
            "1-100%-1",
            "1-100%4%4",
            "1-100%1000001",
            "%4",
        ),
    ],
)
def test_an_invalid_range_is_rejected(text: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        parse_array(text, subject="--array")
    assert raised.value.message.startswith("--array: ")
    assert_readable(raised.value)


@pytest.mark.parametrize("text", ["1,\n1", "1%\n4\n4", "1\x1b[2J", "2-\n1"])
def test_an_error_is_on_one_line(text: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        parse_array(text, subject="--array")
    assert refusal.value.message.isprintable()


class Color(StrEnum):
    RED = "red"


class Thing(NamedTuple):
    name: str
    color: Color
    made_at: datetime | None


def test_a_value_has_the_form_of_json_at_every_depth() -> None:
    made_at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    things = (Thing("a", Color.RED, made_at), Thing("b", Color.RED, None))
    first = {"name": "a", "color": "red", "made_at": "2026-01-02T03:04:05.000Z"}
    found = to_json({"things": things, "count": 2, "part": 0.5, "more": False})
    assert found == {"things": [first, {**first, "name": "b", "made_at": None}], "count": 2, "part": 0.5, "more": False}
    assert type(found["things"][0]["color"]) is str
