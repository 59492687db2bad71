"""Windows of numbered lines, and the search over a whole log."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuectl.logs.lines import MAX_LINE_BYTES, Match, Matches, Window, read_window, search


def chunks(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


@given(
    st.lists(st.text("ab", max_size=4), max_size=12),
    st.booleans(),
    st.integers(1, 5),
    st.integers(1, 14),
    st.integers(1, 6),
)
def test_a_window_has_the_lines_from_its_first_one_on(
    texts: list[str], ended: bool, size: int, first: int, count: int
) -> None:
    text = "".join(f"{one}\n" for one in texts)
    data = (text if ended else text.removesuffix("\n")).encode()
    lines = data.decode().splitlines()
    found = read_window(chunks(data, size), first=first, count=count, max_bytes=1000)
    assert found == Window(first, lines[first - 1 : first - 1 + count], len(lines))
    tail = read_window(chunks(data, size), first=None, count=count, max_bytes=1000)
    assert tail == Window(max(1, len(lines) - count + 1), lines[-count:], len(lines))


def test_a_window_of_long_lines_has_fewer_but_whole_ones() -> None:
    data = b"".join(b"%d" % number * 30 + b"\n" for number in range(1, 10))
    assert read_window([data], first=2, count=5, max_bytes=80) == Window(2, ["2" * 30, "3" * 30], 9)
    assert read_window([data], first=None, count=5, max_bytes=80) == Window(8, ["8" * 30, "9" * 30], 9)
    assert read_window([b"x" * 100], first=1, count=5, max_bytes=80) == Window(1, ["x" * 80], 1)


def test_a_search_finds_what_a_terminal_would_show_in_upper_and_lower_case() -> None:
    log = b"error 1\n\x1b[31mERR\x1b[1mOR\x1b[0m 2\nerror\r100 %\nnothing\n\xc3\x84rror\nthe last Error"
    found = search(chunks(log, 7), "Error", from_line=1, limit=10)
    assert found == Matches([Match(1, "error 1"), Match(2, "ERROR 2"), Match(6, "the last Error")], None)
    assert search([log], "ärr", from_line=1, limit=10).items == [Match(5, "Ärror")]


def test_a_search_stops_at_its_limit_and_continues_there() -> None:
    log = b"".join(b"hit %d\nmiss\n" % number for number in range(5))
    first = search([log], "hit", from_line=1, limit=2)
    assert ([one.line for one in first.items], first.next_line) == ([1, 3], 5)
    rest = search([log], "hit", from_line=5, limit=9)
    assert ([one.line for one in rest.items], rest.next_line) == ([5, 7, 9], None)


@pytest.mark.parametrize("size", [5000, MAX_LINE_BYTES * 3])
def test_a_match_in_a_long_line_has_its_surroundings(size: int) -> None:
    found = search(chunks(b"x" * size + b"here" + b"y" * 5000 + b"\nnext", 1000), "HERE", from_line=1, limit=9)
    assert found == Matches([Match(1, "x" * 100 + "here" + "y" * 196)], None)
