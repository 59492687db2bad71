from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuectl.errors import InvalidInput
from queuectl.job.duration import LONGEST_MS, format_duration, parse_duration_ms
from queuectl.job.shown import shown
from tests.job.said import assert_well_said


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
        ("36525d", LONGEST_MS),
        (timedelta(minutes=1), 60_000),
        (timedelta(microseconds=1), 1),
    ],
)
def test_a_duration_is_read_as_people_write_it(written: object, ms: int) -> None:
    assert parse_duration_ms(written, subject="delay") == ms


@pytest.mark.parametrize("written", ["0.0001", "0.0001ms", 1e-9])
def test_what_is_more_than_nothing_never_becomes_nothing(written: object) -> None:
    assert parse_duration_ms(written, subject="timeout") == 1


@pytest.mark.parametrize(
    "written, problem",
    [
        (True, "expected a duration, got true"),
        (None, "expected a duration, got null"),
        ([1], "expected a duration, got a list"),
        ("", "not a duration: ''"),
        ("soon", "not a duration: 'soon'"),
        ("1h30", "not a duration: '1h30'"),
        ("1e3", "not a duration: '1e3'"),
        ("5.s", "not a duration: '5.s'"),
        ("٣s", "not a duration: '٣s'"),
        ("1y", "not a duration: '1y'"),
        ("nan", "not a duration: 'nan'"),
        (float("nan"), "not a duration: nan"),
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
    ids=shown,
)
def test_what_is_no_duration_is_refused_with_the_forms_that_are(written: object, problem: str) -> None:
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


@given(st.integers(0, LONGEST_MS))
def test_a_written_duration_reads_back_as_the_same(ms: int) -> None:
    assert parse_duration_ms(format_duration(ms), subject="x") == ms


@given(st.integers(0, LONGEST_MS))
def test_seconds_and_milliseconds_agree_to_the_millisecond(ms: int) -> None:
    assert parse_duration_ms(ms / 1000, subject="x") == ms


@given(st.one_of(st.text(), st.floats(), st.integers(), st.text("0123456789.hms -")))
def test_any_value_is_a_duration_in_range_or_refused(value: object) -> None:
    try:
        assert 0 <= parse_duration_ms(value, subject="x") <= LONGEST_MS
    except InvalidInput as refused:
        assert_well_said(refused)
