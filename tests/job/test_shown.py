from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuectl.job.shown import shown


@pytest.mark.parametrize(
    "value, text",
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (3, "3"),
        (-3.5, "-3.5"),
        (float("nan"), "nan"),
        ("a\nb", r"'a\nb'"),
        ("\ud800", r"'\ud800'"),
        ("x" * 61, "'" + "x" * 59 + "…'"),
        ([1], "a list"),
        ((), "a list"),
        ({}, "an object"),
        (10**5000, "an integer of absurd length"),
        (b"", "a Python bytes"),
    ],
    ids=shown,
)
def test_a_refused_value_is_shown_in_the_words_of_json(value: object, text: str) -> None:
    assert shown(value) == text


@given(st.one_of(st.text(), st.integers(), st.floats()))
def test_a_refused_value_is_shown_on_one_short_line_of_utf_8(value: object) -> None:
    assert shown(value).isprintable()
    assert shown(value).encode()
