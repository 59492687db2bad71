from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuectl.policy.pattern import matches, matches_all

LONGEST = 131_071


@pytest.mark.parametrize(
    "pattern, word",
    [
        ("report", "report"),
        ("*.sql", "day.sql"),
        ("*.sql", ".sql"),
        ("/srv/*/x", "/srv/a/x"),
        ("/srv/**", "/srv/a/b/c"),
        ("/srv/***/c", "/srv/a/b/c"),
        ("d?y", "day"),
        ("?", "?"),
        ("*", "*"),
        ("*", ""),
        ("--since=*", "--since=today"),
        ("-*", "-v"),
        ("**", "a/b"),
        ("**", "a..b"),
        ("*a*b*", "xxaxxbxx"),
        ("", ""),
    ],
)
def test_an_argument_matches_its_pattern(pattern: str, word: str) -> None:
    assert matches(pattern, word)


@pytest.mark.parametrize(
    "pattern, word",
    [
        ("report", "reports"),
        ("*.sql", "a/day.sql"),
        ("/srv/*", "/srv/a/b"),
        ("/srv/*", "/srv/.."),
        ("/srv/**", "/srv/../etc/shadow"),
        ("/srv/**/x", "/srv/a/../../x"),
        ("d?y", "d/y"),
        ("?", ""),
        ("*", "--output=/etc/passwd"),
        ("**", "-rf"),
        ("?v", "-v"),
        ("", "a"),
        ("*a", "b"),
        ("[ab]", "a"),
        ("a.c", "abc"),
        ("/srv/*.sql", "/srv/x.sql\n/etc/shadow"),
    ],
)
def test_an_argument_cannot_trick_a_pattern(pattern: str, word: str) -> None:
    assert not matches(pattern, word)


@pytest.mark.parametrize(
    "patterns, words, does",
    [
        ((), (), True),
        ((), ("x",), False),
        (("-v", "*"), ("-v", "x"), True),
        (("-v", "*"), ("-v",), False),
        (("-v", "*"), ("-v", "x", "y"), False),
        (("-v", "..."), ("-v",), True),
        (("-v", "..."), ("-v", "--anything", "x/../y"), True),
        (("-v", "..."), ("-x", "y"), False),
        (("*.csv...",), (), True),
        (("*.csv...",), ("a.csv", "b.csv"), True),
        (("*.csv...",), ("a.csv", "b.txt"), False),
        (("*.csv...",), ("a.csv", "-x"), False),
    ],
)
def test_arguments_match_one_by_one_and_the_last_pattern_may_match_many(
    patterns: tuple[str, ...], words: tuple[str, ...], does: bool
) -> None:
    assert matches_all(patterns, words) is does


def test_no_pattern_takes_long_for_a_huge_argument() -> None:
    # A matcher that goes back would need longer than the world will last.
    assert not matches("*a*a*a*a*a*a*a*a*a*a*a*a*b", "a" * LONGEST)
    assert matches("**/" * 20 + "x", "/" * LONGEST + "x")


@given(
    st.text(alphabet="ab/*?.-", max_size=8),
    st.text(alphabet="ab/.-", max_size=8),
)
def test_a_pattern_matches_like_its_regular_expression(pattern: str, word: str) -> None:
    steps = re.findall(r"\*\*|.", pattern)
    meant = "".join({"**": ".*", "*": "[^/]*", "?": "[^/]"}.get(step, re.escape(step)) for step in steps)
    is_plain = "*" not in pattern and "?" not in pattern
    leads_out = "/" in pattern and ".." in word.split("/")
    is_option = word.startswith("-") and not pattern.startswith("-")
    allowed = is_plain or not (leads_out or is_option)
    assert matches(pattern, word) == (allowed and re.fullmatch(meant, word, re.DOTALL) is not None)
