"""What stands for what in a template."""

from __future__ import annotations

import pytest

from queuectl.errors import InvalidInput, UsageError
from queuectl.job.template import ArgvTemplate, Line, ShellTemplate, quoted
from tests.job.said import assert_well_said


def argv(*words: str, line: str = "a b/c d.tar.gz", columns: list[str] | None = None) -> list[str]:
    filled = ArgvTemplate(words, columns=columns is not None).fill(Line(line, 7, columns))["argv"]
    assert isinstance(filled, list)
    return filled


def test_a_line_and_its_parts() -> None:
    assert argv("x", "{}", "{/}", "{.}", "{n}") == ["x", "a b/c d.tar.gz", "c d.tar.gz", "a b/c d.tar", "7"]


def test_columns_are_counted_from_one() -> None:
    assert argv("{2}-{1}", "{}", line="a,b", columns=["a", "b"]) == ["b-a", "a,b"]


@pytest.mark.parametrize(
    "line, base, stem",
    [
        ("photo.jpg", "photo.jpg", "photo"),
        ("a.d/photo", "photo", "a.d/photo"),
        ("a/.profile", ".profile", "a/.profile"),
        ("a/b/", "b", "a/b/"),
        ("/", "/", "/"),
        ("..", "..", ".."),
        ("a.", "a.", "a"),
        ("...x", "...x", "...x"),
    ],
)
def test_base_names_and_extensions(line: str, base: str, stem: str) -> None:
    assert argv("x", "{/}", "{.}", line=line) == ["x", base, stem]


def test_an_argv_without_a_placeholder_ends_with_the_line() -> None:
    assert argv("gzip", "-k") == ["gzip", "-k", "a b/c d.tar.gz"]


def test_in_an_argv_it_may_stand_anywhere_and_needs_no_quotes() -> None:
    assert argv("x", "--in={}", "'{}'", line="a 'b'") == ["x", "--in=a 'b'", "'a 'b''"]


def test_a_backslash_makes_it_plain_text() -> None:
    assert argv("x", "\\{}", "\\{1}", "{n}") == ["x", "{}", "{1}", "7"]


def test_a_shell_template_quotes_what_it_puts_in() -> None:
    filled = ShellTemplate("gzip <{} >{/}.gz", columns=False).fill(Line("it's/a", 1, None))
    assert filled == {"command": "gzip <'it'\\''s/a' >'a'.gz"}


@pytest.mark.parametrize("word", ["", "a", "2", "if", "a=b"])
def test_also_what_would_need_no_quotes_is_quoted(word: str) -> None:
    assert quoted(word) == f"'{word}'"


def test_a_shell_template_without_a_placeholder_is_refused() -> None:
    with pytest.raises(UsageError, match="no placeholder") as raised:
        ShellTemplate("gzip \\{}", columns=False)
    assert_well_said(raised.value)


def test_a_column_that_the_line_does_not_have_is_refused() -> None:
    with pytest.raises(InvalidInput) as raised:
        argv("x", "{3}", line="a,b", columns=["a", "b"])
    assert raised.value.message == "{3}: the line has 2 columns"


def test_a_column_without_columns_is_refused() -> None:
    with pytest.raises(InvalidInput, match="there is no --colsep"):
        argv("x", "a{1}")
