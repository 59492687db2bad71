"""What is understood as a schedule, and how the rest is refused."""

from __future__ import annotations

import pytest

from queuectl.errors import InvalidInput
from queuectl.job.cron.expression import NICKNAMES, Calendar, Every, normalise, parse_expression
from queuectl.job.cron.field import DAY, HOUR, MINUTE, MONTH, SECOND, WEEKDAY, Kind, parse_field


def calendar(text: str) -> Calendar:
    found = parse_expression(text)
    assert isinstance(found, Calendar)
    return found


@pytest.mark.parametrize(
    "text, kind, numbers",
    [
        ("5", MINUTE, (5,)),
        ("*", HOUR, tuple(range(24))),
        ("*/20", MINUTE, (0, 20, 40)),
        ("*/24", HOUR, (0,)),
        ("1-5", HOUR, (1, 2, 3, 4, 5)),
        ("10-30/10", SECOND, (10, 20, 30)),
        ("1,3-4,*/20", MINUTE, (0, 1, 3, 4, 20, 40)),
        ("007", HOUR, (7,)),
        ("JAN,mar-May", MONTH, (1, 3, 4, 5)),
        ("MON-FRI", WEEKDAY, (1, 2, 3, 4, 5)),
        ("7", WEEKDAY, (0,)),
        ("0,7", WEEKDAY, (0,)),
        ("FRI-SUN", WEEKDAY, (0, 5, 6)),
        ("SUN-TUE", WEEKDAY, (0, 1, 2)),
        ("5-7", WEEKDAY, (0, 5, 6)),
        ("*/2", WEEKDAY, (0, 2, 4, 6)),
        ("31", DAY, (31,)),
    ],
)
def test_a_field_allows_the_numbers_it_names(text: str, kind: Kind, numbers: tuple[int, ...]) -> None:
    assert parse_field(text, kind).numbers == numbers


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
        ("0-99 * * * *", "minute: found '99', expected 0-59"),
        ("0-999999999 * * * *", "minute: found '999999999', expected 0-59"),
        ("* 22-6 * * *", "hour: '22-6' ends before it begins"),
        ("*/0 * * * *", "minute: found the step 0 in '*/0', expected 1-60"),
        ("*/90 * * * *", "minute: found the step 90 in '*/90', expected 1-60"),
        ("5/15 * * * *", "minute: '5/15' has a step and no range; write 5-59/15"),
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
        ("  ", "blank"),
        ("* " * 600, "1200 characters, over 1000"),
        ("@reboot", "found '@reboot', expected a name like @daily"),
        ("@daily 5", "found '@daily 5', expected a name like @daily"),
        ("every", "every: how long?"),
        ("every 500ms", "every: found '500ms', expected at least 1s"),
        ("every soon", "every: not a duration: 'soon'"),
        ("every -5s", "every: a duration cannot be negative: '-5s'"),
    ],
)
def test_a_bad_expression_is_refused_with_the_field_what_was_found_and_its_range(text: str, problem: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_expression(text)
    assert refused.value.message == f"schedule: {problem}"
    assert refused.value.hint


def test_a_name_that_nearly_is_one_is_told() -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_expression("@dayly")
    assert refused.value.hint == "did you mean '@daily'?"


@pytest.mark.parametrize("name", NICKNAMES)
def test_a_nickname_is_short_for_five_fields(name: str) -> None:
    assert parse_expression(name.upper()) == parse_expression(NICKNAMES[name])


def test_five_fields_begin_with_minutes_and_six_with_seconds() -> None:
    assert calendar("1 2 3 4 5") == calendar("0 1 2 3 4 5")
    assert calendar("9 1 2 3 4 5").seconds == (9,)


@pytest.mark.parametrize(
    "text, follows",
    [("30 2 * * *", False), ("*/5 2 * * *", True), ("0 * * * *", True), ("0 */2 * * *", True), ("* 30 2 * * *", False)],
)
def test_minutes_or_hours_with_a_star_follow_elapsed_time(text: str, follows: bool) -> None:
    assert calendar(text).follows_elapsed_time is follows


def test_every_takes_any_duration_from_a_second_on() -> None:
    assert parse_expression("every 90s") == Every(90_000)
    assert parse_expression("EVERY 1h 30m") == Every(5_400_000)


def test_an_expression_is_kept_with_single_blanks() -> None:
    assert normalise("  0  2 *\t* * ") == "0 2 * * *"
