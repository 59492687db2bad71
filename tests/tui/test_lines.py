from __future__ import annotations

import pytest

from queuectl.tui.log_pane import MAX_LINE_LENGTH, MAX_LINES, LineSplitter, safe
from queuectl.tui.view_model import Rate


@pytest.mark.parametrize(
    "line, shown",
    [
        ("plain", "plain"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("a\x1b[2Jb\x1b[10;10Hc", "abc"),
        ("\x1b]0;title\x07x\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "xlink"),
        ("\x1bPq#0\x1b\\after", "after"),
        ("bell\x07 nul\x00", "bell\\x07 nul\\x00"),
        ("10%\r20%\r30%", "30%"),
        ("windows\r", "windows"),
        ("tab\tx", "tab     x"),
        ("\u202eover", "\\u202eover"),
        ("\x1b", "\\x1b"),
        ("[bold]no markup[/bold]", "[bold]no markup[/bold]"),
    ],
)
def test_a_line_keeps_its_text_and_loses_terminal_sequences(line: str, shown: str) -> None:
    assert safe(line).plain == shown


def test_colours_of_a_line_stay() -> None:
    text = safe("\x1b[1;31mred\x1b[0m plain")
    assert [(span.start, span.end, str(span.style)) for span in text.spans] == [(0, 3, "bold color(1)")]


def test_a_line_of_many_colours_is_no_other_text() -> None:
    text = safe("".join(f"\x1b[3{number % 8}mx" for number in range(300)))
    assert text.plain == "x" * 300
    assert str(text.spans[-1].style) == "color(3)"


def test_lines_are_cut_where_they_end_however_they_come() -> None:
    lines = LineSplitter()
    data = "ä one\ntwo\nthree".encode()
    found = [line for byte in data for line in lines.feed(bytes([byte]))]
    assert (found, lines.partial) == (["ä one", "two"], "three")
    assert lines.feed(b"", final=True) == ["three"]


def test_output_without_end_takes_bounded_memory() -> None:
    lines = LineSplitter()
    for _ in range(100):
        assert lines.feed(b"x" * 100_000) == []
    assert len(lines.partial) <= MAX_LINE_LENGTH
    assert len(lines.feed(b"\n" * 100_000)) <= MAX_LINES
    assert len(safe("x" * 1_000_000).plain) <= MAX_LINE_LENGTH


@pytest.mark.parametrize("rate, words", [(1234.5, "1,234/s"), (2.5, "2.5/s"), (0.5, "30/min"), (0, "0/min")])
def test_a_rate_has_the_unit_that_it_is_read_in(rate: float, words: str) -> None:
    seen = Rate()
    for second in range(0, 41, 2):
        seen.see(float(second), int(second * rate))
    assert str(seen) == words


def test_a_rate_is_that_of_the_last_minute_in_bounded_memory() -> None:
    seen = Rate()
    for tick in range(10_000):
        seen.see(tick / 10, 0 if tick < 9_400 else tick - 9_400)
    assert seen.per_second == pytest.approx(10, rel=0.02)
    assert len(seen._seen) < 130
    seen.see(2000.0, 0)  # another store
    assert str(seen) == "…"
