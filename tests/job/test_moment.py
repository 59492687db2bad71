from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuectl.errors import InvalidInput
from queuectl.job.model import from_ms, iso
from queuectl.job.moment import parse_moment_ms
from tests.job.said import assert_well_said


class Berlin(tzinfo):
    """Central Europe in 2026, also on a machine that has no time zones installed."""

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
    """How a moment shows after it was read by somebody in Berlin."""
    return iso(from_ms(parse_moment_ms(text, subject="run_at", local=BERLIN)))


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
def test_a_moment_is_read_as_people_write_it(text: object, moment: str) -> None:
    assert written_as(text) == moment


@pytest.mark.parametrize(
    "text",
    ["1969-12-31T23:59:59Z", "1969-12-31", "0001-01-01T00:00:00Z", "0001-01-01T00:00+14:00", datetime(1, 1, 1)],  # noqa: DTZ001
)
@pytest.mark.parametrize("local", [BERLIN, None])
def test_a_time_before_1970_has_passed_like_its_first_moment(text: object, local: tzinfo | None) -> None:
    assert parse_moment_ms(text, subject="run_at", local=local) == 0


def test_a_time_that_the_clocks_skip_is_taken_as_if_they_did_not() -> None:
    assert written_as("2026-03-29T02:30") == "2026-03-29T01:30:00.000Z"


def test_of_a_time_that_comes_twice_the_first_is_meant() -> None:
    assert written_as("2026-10-25T02:30") == "2026-10-25T00:30:00.000Z"


def test_without_a_zone_at_all_the_machine_says_what_is_local() -> None:
    moment = datetime(2026, 11, 15, 20, 30).astimezone()
    ms = parse_moment_ms("2026-11-15 20:30", subject="run_at", local=None)
    assert from_ms(ms) == moment


@pytest.mark.parametrize(
    "text, problem",
    [
        (5, "expected a time, got 5"),
        (True, "expected a time, got true"),
        ("", "not a time: ''"),
        ("tomorrow", "not a time: 'tomorrow'"),
        ("1763238467", "not a time: '1763238467'"),
        ("2026-11-15x20:30", "not a time: '2026-11-15x20:30'"),
        ("2026-11-15T2", "not a time: '2026-11-15T2'"),
        ("20261115T2", "not a time: '20261115T2'"),
        ("20261115T203", "not a time: '20261115T203'"),
        ("20261115 2030", "not a time: '20261115 2030'"),
        ("2026111520", "not a time: '2026111520'"),
        ("٢٠٢٦-11-15", "not a time: '٢٠٢٦-11-15'"),
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
def test_what_is_no_moment_is_refused_with_the_forms_that_are(text: object, problem: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_moment_ms(text, subject="run_at", local=BERLIN)
    assert caught.value.message.startswith(f"run_at: {problem}")
    assert "2026-11-15 20:30" in caught.value.hint


@given(st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC)))  # noqa: DTZ001 - bounds
def test_a_written_moment_reads_back_as_the_same(moment: datetime) -> None:
    ms = parse_moment_ms(moment, subject="x", local=None)
    assert parse_moment_ms(iso(from_ms(ms)), subject="x", local=None) == ms


@given(st.one_of(st.text("0123456789-:T Z+."), st.datetimes(), st.text()))
def test_any_value_is_a_moment_or_refused(value: object) -> None:
    try:
        assert parse_moment_ms(value, subject="x", local=None) >= 0
    except InvalidInput as refused:
        assert_well_said(refused)
