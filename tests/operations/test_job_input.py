from __future__ import annotations

import pytest

from queuectl.errors import InvalidInput
from queuectl.operations.job_input import MAX_ENV_FILE_BYTES, parse_env_file


def read(text: str | bytes) -> dict[str, str]:
    return parse_env_file(text if isinstance(text, bytes) else text.encode(), subject="app.env")


def refused(text: str | bytes) -> str:
    with pytest.raises(InvalidInput) as found:
        read(text)
    return found.value.message


@pytest.mark.parametrize(
    "line, value",
    [
        ("A=1", "1"),
        ("  A=1", "1"),
        ("export A=1", "1"),
        ("export\tA= 1 ", "1"),
        ("A=", ""),
        ("A=''", ""),
        ("A=two words", "two words"),
        ("A=a#b", "a#b"),
        ("A=1 # said", "1"),
        ("A=# said", ""),
        ("A='# not said'", "# not said"),
        ("A='a\\nb'", "a\\nb"),
        ('A="a\\nb\\tc\\r"', "a\nb\tc\r"),
        ('A="say \\"hi\\" for \\$5 \\\\ \\x"', 'say "hi" for $5 \\ \\x'),
        ('A="it\'s"  # said', "it's"),
        ("A=$HOME ${B} `id` $(id) ~", "$HOME ${B} `id` $(id) ~"),
        ('A="$HOME"', "$HOME"),
        ("A=b=c", "b=c"),
        ("A=it's", "it's"),
        ("A=a\\nb", "a\\nb"),
        ("A='one\ntwo'", "one\ntwo"),
        ('A="one\n\ntwo"', "one\n\ntwo"),
        ("A=größe", "größe"),
    ],
)
def test_a_value_is_parsed(line: str, value: str) -> None:
    assert read(line) == {"A": value}


def test_comments_and_blank_lines_are_ignored() -> None:
    assert read("# a\n\n  # b\n\t\nA=1\n#\nB=2") == {"A": "1", "B": "2"}


def test_the_last_value_of_a_variable_counts() -> None:
    assert read("A=1\nB=2\nA=3\n") == {"A": "3", "B": "2"}


def test_windows_line_ends_and_a_byte_order_mark_are_accepted() -> None:
    assert read(b"\xef\xbb\xbfA=1\r\nB='x'\r\n") == {"A": "1", "B": "x"}


def test_names_may_have_dots_and_dashes() -> None:
    assert read("my.app-name_1=x") == {"my.app-name_1": "x"}


def test_an_empty_file_has_no_variables() -> None:
    assert read("") == {}


@pytest.mark.parametrize(
    "text, line, problem",
    [
        ("A=1\nhunter2\n", 2, "does not start with NAME="),
        ("A =1", 1, "does not start with NAME="),
        ("=1", 1, "does not start with NAME="),
        ("1A=1", 1, "does not start with NAME="),
        ("# a\n\nA='hunter2\nB=1\n", 3, "no ' to end"),
        ('A="hunter2\n\n', 1, 'no " to end'),
        ("A='a\nb'\nB='x'y", 3, "something follows"),
        ("A='x'#y", 1, "something follows"),
        ("A=1\nB=\0hunter2", 2, "NUL"),
        (b"A=1\nB=hunter2\nC=\xff", 3, "not UTF-8"),
    ],
)
def test_an_error_names_file_and_line_and_never_the_text(text: str | bytes, line: int, problem: str) -> None:
    said = refused(text)
    assert said.startswith(f"app.env, line {line}: ")
    assert problem in said
    assert "hunter2" not in said


def test_a_file_that_is_too_large_is_rejected() -> None:
    assert "larger than 1 MiB" in refused(b"A=" + b"x" * MAX_ENV_FILE_BYTES)
