"""Tables, escaping of control characters, ages and durations."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuectl.cli.app import App, paint
from queuectl.cli.tables import STATE_STYLE, Column, cell_width, fit, lay_out
from queuectl.jobs.states import State
from queuectl.text import escape_control, escape_json
from queuectl.units import humanize_elapsed, humanize_time

ROWS = [{"id": "a", "text": "x" * 50, "n": "1", "note": ""}, {"id": "b2", "text": "日本語" * 10, "n": "22", "note": ""}]
COLUMNS: list[Column[dict[str, str]]] = [
    Column("ID", lambda row: row["id"], style="bold"),
    Column("TEXT", lambda row: row["text"], flexible=True),
    Column("N", lambda row: row["n"], right=True),
    Column("NOTE", lambda row: row["note"], optional=True),
]


def test_a_table_in_a_pipe_is_neither_cut_nor_colored() -> None:
    lines = list(lay_out(ROWS, COLUMNS, width=None, color=False))
    assert lines[0].split() == ["ID", "TEXT", "N"]
    assert ROWS[0]["text"] in lines[1]
    assert ROWS[1]["text"] in lines[2]
    assert len({cell_width(line) for line in lines}) == 1


@pytest.mark.parametrize("width", [20, 40, 60, 80])
def test_a_table_on_a_terminal_cuts_what_is_flexible(width: int) -> None:
    lines = list(lay_out(ROWS, COLUMNS, width=width, color=False))
    assert all(cell_width(line) <= width for line in lines)
    assert ("…" in lines[2]) is (width < 68)


def test_the_widest_of_several_flexible_columns_is_cut_first() -> None:
    columns: list[Column[str]] = [
        Column("A", lambda row: row * 10, flexible=True),
        Column("B", lambda row: row * 40, flexible=True),
    ]
    (_, line) = lay_out(["x"], columns, width=40, color=False)
    assert line == "x" * 10 + "  " + "x" * 27 + "…"


def test_a_cell_cannot_break_its_table() -> None:
    columns: list[Column[str]] = [Column("A", lambda row: row)]
    (_, line) = lay_out(["a\nb\x1b[2J"], columns, width=80, color=True)
    assert line == "a\\nb\\x1b[2J"


@pytest.mark.parametrize(
    "text, width, cut", [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("日本語", 5, "日本…"), ("日本", 3, "日…")]
)
def test_a_cut_text_fits_its_width(text: str, width: int, cut: str) -> None:
    assert fit(text, width) == cut


@given(st.text())
def test_unprintable_characters_are_escaped(text: str) -> None:
    shown = escape_control(text)
    shown.encode()
    assert not [char for char in shown if ord(char) < 32 or 0x7F <= ord(char) < 0xA0]
    if text.isprintable():
        assert shown == text


def test_a_byte_that_is_not_utf_8_is_shown_as_one() -> None:
    assert escape_control(b"caf\xe9".decode("utf-8", "surrogateescape")) == "caf\\xe9"
    assert escape_control("\ud800\u202e") == "\\ud800\\u202e"
    assert escape_control("👩\u200d👧") == "👩\u200d👧"


def test_json_stays_json_when_it_is_made_printable() -> None:
    assert escape_json('"\x9b\udcff"') == '"\\u009b\\udcff"'
    assert escape_json('{\n  "a": 1\n}') == '{\n  "a": 1\n}'


@pytest.mark.parametrize(
    "ms, shown",
    [
        (0, "now"),
        (-999, "now"),
        (-1000, "1s ago"),
        (61_000, "in 1m"),
        (-7_200_000, "2h ago"),
        (-86_400_000 * 400, "400d ago"),
    ],
)
def test_an_age_is_one_number_and_one_unit(ms: int, shown: str) -> None:
    assert humanize_time(1_000_000 + ms, 1_000_000) == shown


@pytest.mark.parametrize(
    "ms, shown",
    [
        (0, "0ms"),
        (999, "999ms"),
        (1250, "1.25s"),
        (12_340, "12.3s"),
        (59_999, "59.9s"),
        (125_000, "2m 05s"),
        (3_599_999, "59m 59s"),
        (11_040_000, "3h 04m"),
        (183_600_000, "2d 03h"),
    ],
)
def test_a_duration_has_about_three_digits(ms: int, shown: str) -> None:
    assert humanize_elapsed(ms) == shown


def test_every_state_has_a_color_that_exists() -> None:
    assert set(STATE_STYLE) == set(State)
    assert all(paint("x", style, color=True).startswith("\x1b[") for style in STATE_STYLE.values())
    assert paint("x", "bold red", color=False) == "x"


SPARING: list[Column[str]] = [
    Column("NAME", lambda row: row * 10),
    Column("WANTED", lambda row: row * 20, flexible=True),
    Column("FIRST", lambda row: row * 5, spare=2),
    Column("SECOND", lambda row: row * 5, spare=1),
]


@pytest.mark.parametrize(
    "width, titles",
    [
        (80, ["NAME", "WANTED", "FIRST", "SECOND"]),
        (36, ["NAME", "WANTED", "FIRST", "SECOND"]),
        (34, ["NAME", "WANTED", "SECOND"]),
        (27, ["NAME", "WANTED"]),
        (20, ["NAME", "WANTED"]),
    ],
)
def test_spare_columns_are_omitted_before_a_row_breaks(width: int, titles: list[str]) -> None:
    lines = list(lay_out(["x"], SPARING, width=width, color=False))
    assert lines[0].split() == titles
    assert all(cell_width(line) <= width for line in lines)


@given(st.lists(st.text(min_size=1, max_size=60), min_size=1, max_size=5), st.integers(20, 60))
def test_a_row_is_one_line_whatever_is_in_it(cells: list[str], width: int) -> None:
    columns: list[Column[str]] = [Column("A", lambda row: row), Column("B", lambda row: row, flexible=True)]
    assert all(cell_width(line) <= width for line in lay_out(cells, columns, width=width, color=False))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_waiting_for_a_locked_database_is_reported_once_after_two_seconds(home: Path) -> None:
    terminal = Terminal()
    app = App(stdin=io.StringIO(), stdout=io.StringIO(), stderr=terminal)
    for waited in (0.2, 0.7, 1.9):
        app.on_locked(str(home / "queue.db"), waited, dict)
    assert not terminal.getvalue()
    for waited in (2.1, 2.6, 20.0):
        app.on_locked(str(home / "queue.db"), waited, dict)
    assert len(terminal.getvalue().splitlines()) == 1
