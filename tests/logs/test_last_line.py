"""The last line that a run printed."""

from __future__ import annotations

import random

import pytest

from queuectl.logs.last_line import MAX_CHARS, TAIL_BYTES, OutputTail, last_line


def shown(data: bytes) -> str | None:
    return last_line(data, is_cut=False, has_secrets=False)


@pytest.mark.parametrize(
    "data, line",
    [
        (b"", None),
        (b"\n \t\r\n", None),
        (b"one\ntwo", "two"),
        (b"one\ntwo\n\n  \n", "two"),
        (b"dos\r\n", "dos"),
        (b"\ttab\tin it \n", "tab in it"),
        (b"\x1b[1;31mred\x1b[0m and \x1b[38;2;1;2;3mtrue color\x1b[m\n", "red and true color"),
        (b"\x1b]0;title\x07text \x1b]8;;https://x.example\x1b\\link\x1b]8;;\x1b\\\n", "text link"),
        (b"cut off \x1b[3", "cut off"),
        (b"only color\n\x1b[0m\n", "only color"),
        (b"10%\r50%\r99%", "99%"),
        (b"10%\r50%\r99%\r", "99%"),
        (b"before\n10%\r    \r\n", "before"),
        (b"before\n10%\r\x1b[K", "before"),
        (b"10%\x1b[2K\x1b[1G20%\n", "20%"),
        (b"remote: done\x1b[K\n", "remote: done"),
        (b"\xff\xfe caf\xc3\xa9\n", "\ufffd\ufffd caf\xe9"),
        (b"nul\x00 bell\x07 del\x7f\n", "nul bell del"),
        ("separator\u2028 and \u009b1mC1\n".encode(), "separator and C1"),
    ],
)
def test_it_is_what_a_terminal_shows_in_the_last_line_that_is_not_blank(data: bytes, line: str | None) -> None:
    assert shown(data) == line


def test_a_long_line_keeps_its_beginning() -> None:
    assert shown(b"Error: " + b"x" * 500) == "Error: " + "x" * (MAX_CHARS - 8) + "…"
    assert shown(b"x" * MAX_CHARS) == "x" * MAX_CHARS


def test_a_line_whose_beginning_is_not_kept_shows_its_end() -> None:
    tail = OutputTail()
    for _ in range(100):
        tail.add("ä".encode() * 1000)
    tail.add(b" the end")
    found = tail.last_line(has_secrets=False)
    assert found is not None
    assert (found[:2], found[-9:], len(found)) == ("…ä", "ä the end", MAX_CHARS)


def test_an_escape_sequence_never_joins_the_parts_of_a_secret() -> None:
    assert last_line(b"pass\x1b[1mword \x00x", is_cut=False, has_secrets=True) == "pass word  x"


def test_the_size_of_the_pieces_does_not_matter() -> None:
    chance = random.Random(1)
    data = b"".join(b"line %d \x1b[31m%s\n" % (at, b"y" * chance.randrange(300)) for at in range(100))
    for _ in range(50):
        tail, rest = OutputTail(), data
        while rest:
            size = chance.randrange(1, 2 * TAIL_BYTES)
            tail.add(rest[:size])
            rest = rest[size:]
        assert tail.last_line(has_secrets=False) == shown(data)
