"""The indices of an array."""

from __future__ import annotations

import pytest

from queuectl.errors import InvalidInput
from queuectl.job.array import HIGHEST, parse_array
from tests.job.said import assert_well_said


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
        (str(HIGHEST), [HIGHEST]),
    ],
)
def test_a_range_is_read(text: str, indices: list[int]) -> None:
    assert parse_array(text, subject="--array") == (indices, None)
    assert parse_array(f"{text}%4", subject="--array") == (indices, 4)


@pytest.mark.parametrize(
    "text",
    [
        *("", "a", "-1", "1-", "1--2", "3-1", "1-9:0", "1-9:", "1,,2", "1;2", "1-3,2", "1" * 40, str(HIGHEST + 1)),
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
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        parse_array(text, subject="--array")
    assert raised.value.message.startswith("--array: ")
    assert_well_said(raised.value)


@pytest.mark.parametrize("text", ["1,\n1", "1%\n4\n4", "1\x1b[2J", "2-\n1"])
def test_what_is_refused_is_shown_on_one_line(text: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        parse_array(text, subject="--array")
    assert refusal.value.message.isprintable()
