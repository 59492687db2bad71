"""ANSI colors become CSS classes, other sequences are dropped; on the server and in the browser alike."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuectl.web.pages.log import Painter, Piece
from tests.web.page.site import Visit

CASES: dict[str, list[tuple[str, ...]]] = {
    "plain": [("", "plain")],
    "\x1b[32mgreen\x1b[0m not": [("t-fg2", "green"), ("", " not")],
    "\x1b[1;31mboth\x1b[22mred": [("t-b t-fg1", "both"), ("t-fg1", "red")],
    "\x1b[mno\x1b[93;44mbright": [("", "no"), ("t-bg4 t-fg11", "bright")],
    "\x1b[38;5;196mred of 256": [("t-fg9", "red of 256", "#ff0000")],
    "\x1b[38;2;0;200;0mgreen of many": [("t-fg2", "green of many", "#00c800")],
    "\x1b[48;5;240mgrey": [("t-bg8", "grey", "", "#585858")],
    "\x1b[38;5;12;1mblue of 16": [("t-b t-fg12", "blue of 16")],
    "\x1b[38;5;999;48;2;1;2;300mboth\x1b[39mback\x1b[49mnone": [
        ("t-bg12 t-fg15", "both", "#eeeeee", "#0102ff"),
        ("t-bg12", "back", "", "#0102ff"),
        ("", "none"),
    ],
    "\x1b[2K\x1b[1Gcleared": [("", "cleared")],
    "\x1b]0;a title\x07text": [("", "text")],
    "\x1b]8;;http://example.org\x1b\\link\x1b]8;;\x1b\\": [("", "link")],
    "10 %\r50 %\r100 %": [("", "100 %")],
    "ends so\r": [("", "ends so")],
    "old\rends in two\r\r": [("", "ends in two")],
    "\x1b(Bset\x07\x00bell": [("", "set"), ("", "bell")],
    "rm \u202eecho\u202c \x9b2Jend\u2028": [("", "rm "), ("", "echo"), ("", " "), ("", "2Jend")],
    "<b>\x1b[3m&amp;": [("", "<b>"), ("t-i", "&amp;")],
    f"\x1b[{'1' * 5000}mlong": [("", "long")],
    f"\x1b[31{';' * 5000}mmany": [("", "many")],
    "\x1b[38mcut \x1b[38;5mshort": [("", "cut "), ("", "short")],
}


def joined(pieces: list[Piece]) -> list[Piece]:
    """As a browser has it: texts of one kind that follow each other are one."""
    found: list[Piece] = []
    for piece in pieces:
        if found and found[-1]._replace(text="") == piece._replace(text=""):
            found[-1] = found[-1]._replace(text=found[-1].text + piece.text)
        else:
            found.append(piece)
    return found


@pytest.mark.parametrize("text", CASES)
def test_colors_become_classes_and_other_sequences_are_dropped(text: str) -> None:
    (line,) = Painter().lines(text)
    assert line == [Piece(*piece) for piece in CASES[text]]


def test_a_color_lasts_over_lines_until_it_is_changed() -> None:
    first, second, third = Painter().lines("\x1b[35mone\ntwo\x1b[39m\nthree")
    assert (first, second, third) == ([Piece("t-fg5", "one")], [Piece("t-fg5", "two")], [Piece("", "three")])


@given(st.text(alphabet="\x1b[]0123456789;:mKab\x07\\ \r<&"))
def test_no_control_character_is_left_for_any_output(text: str) -> None:
    for line in Painter().lines(text):
        for piece in line:
            assert all(name.startswith("t-") for name in piece.classes.split())
            assert piece.text.isprintable()
            assert all(re.fullmatch("(#[0-9a-f]{6})?", color) for color in (piece.fg, piece.bg))


def test_the_browser_renders_colors_as_the_server_does(visit: Visit) -> None:
    page = visit("/")
    painted = page.evaluate(
        """async (texts) => {
          const { Painter } = await import('/static/ansi.js');
          return texts.map((text) => {
            const line = document.createElement('span');
            new Painter().paint(text, line);
            line.normalize();
            const data = (node, name) => node.dataset?.[name] ?? '';
            return [...line.childNodes].map((node) =>
              [[...(node.classList ?? [])].sort().join(' '), node.textContent, data(node, 'fg'), data(node, 'bg')]);
          });
        }""",
        list(CASES),
    )
    for text, found in zip(CASES, painted, strict=True):
        assert joined([Piece(*piece) for piece in found]) == joined([Piece(*piece) for piece in CASES[text]]), text
