from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuectl.errors import InvalidInput
from queuectl.job.shown import shown
from queuectl.job.size import LARGEST, format_size, parse_size, short_size


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
def test_a_size_is_read_as_people_write_it(written: object, size: int) -> None:
    assert parse_size(written, subject="log-limit") == size


@pytest.mark.parametrize(
    "written", [True, None, [], "", "much", "1i", "-1", -1, 10**400, float("nan"), "1025TiB", "9" * 999], ids=shown
)
def test_what_is_no_size_is_refused_with_the_forms_that_are(written: object) -> None:
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
def test_about_how_much_takes_three_digits(size: int, text: str) -> None:
    assert short_size(size) == text


@given(st.integers(0, LARGEST))
def test_a_written_size_reads_back_as_the_same(size: int) -> None:
    assert parse_size(format_size(size), subject="x") == size
