"""A part of a job's log, for its page, with the colors of ANSI sequences."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from queuectl.config import host_name
from queuectl.errors import NotFound, Unavailable
from queuectl.logs.lines import SEQUENCE, Matches, Window, latest
from queuectl.operations.logs import read_lines, search_log
from queuectl.store.reads import Reads

_PLAIN: Final[dict[int, tuple[str, str]]] = {1: ("bold", "b"), 2: ("dim", "d"), 3: ("italic", "i"), 4: ("under", "u")}
_OFF: Final = {22: ("bold", "dim"), 23: ("italic",), 24: ("under",), 39: ("fg",), 49: ("bg",)}
_LEVELS: Final = (0, 95, 135, 175, 215, 255)  # of red, green and blue in the cube of 216 colors


class Piece(NamedTuple):
    """Text in one style. `fg` and `bg`: exact colors like #ff8700, which the script applies: the content security policy forbids them
    in the page. Without script, the classes have the nearest of the 16 colors of the style sheet."""

    classes: str
    text: str
    fg: str = ""
    bg: str = ""


class Painter:
    """Splits text into pieces with CSS classes. Colors last until they are changed, also over lines."""

    def __init__(self) -> None:
        self._style: dict[str, str] = {}  # a class, or for fg and bg a class and a color

    @property
    def style(self) -> Mapping[str, str]:
        return dict(self._style)

    def lines(self, text: str) -> list[list[Piece]]:
        return [self.line(line) for line in text.split("\n")]

    def line(self, line: str) -> list[Piece]:
        line = latest(line)
        pieces, start = [], 0
        for found in SEQUENCE.finditer(line):
            pieces += self._piece(line[start : found.start()])
            start = found.end()
            if found[1] is not None:
                self._paint(found[1])
        return pieces + self._piece(line[start:])

    def _piece(self, text: str) -> list[Piece]:
        if not text:
            return []
        classes = sorted(value.partition(" ")[0] for value in self._style.values())
        fg, bg = (self._style.get(name, "").partition(" ")[2] for name in ("fg", "bg"))
        return [Piece(" ".join(classes), text, fg, bg)]

    def _paint(self, codes: str) -> None:
        given = [int(code) if code else 0 for code in re.split("[;:]", codes)]
        while given:
            code = given.pop(0)
            if code == 0:
                self._style.clear()
            elif code in _PLAIN:
                name, letter = _PLAIN[code]
                self._style[name] = f"t-{letter}"
            elif code in _OFF:
                for name in _OFF[code]:
                    self._style.pop(name, None)
            elif code in {38, 48}:
                self._extended("fg" if code == 38 else "bg", given)
            else:
                self._simple(code)

    def _simple(self, code: int) -> None:
        for name, first in (("fg", 30), ("bg", 40), ("fg", 90), ("bg", 100)):
            if first <= code < first + 8:
                self._style[name] = f"t-{name}{code - first + (8 if first >= 90 else 0)}"

    def _extended(self, name: str, given: list[int]) -> None:
        """One of 256 or 16 million colors."""
        kind = given.pop(0) if given else 0
        if kind == 5 and given:
            code = min(given.pop(0), 255)
            self._style[name] = f"t-{name}{code}" if code < 16 else _color(name, *_rgb(code))
        elif kind == 2 and len(given) >= 3:
            self._style[name] = _color(name, *(min(given.pop(0), 255) for _ in range(3)))


def _rgb(code: int) -> tuple[int, int, int]:
    """A color of the palette of 256, from 16 on."""
    if code >= 232:
        return (8 + 10 * (code - 232),) * 3
    red, green, blue = (_LEVELS[(code - 16) // step % 6] for step in (36, 6, 1))
    return red, green, blue


def _color(name: str, red: int, green: int, blue: int) -> str:
    return f"t-{name}{_nearest(red, green, blue)} #{red:02x}{green:02x}{blue:02x}"


def _nearest(red: int, green: int, blue: int) -> int:
    brightest = max(red, green, blue)
    if brightest - min(red, green, blue) < 40:
        return 0 if brightest < 64 else 8 if brightest < 128 else 7 if brightest < 208 else 15
    bits = sum(bit for bit, part in ((1, red), (2, green), (4, blue)) if part * 2 > brightest)
    return bits + (8 if brightest > 200 else 0)


PAGE_LINES: Final = 500  # lines
MAX_BYTES: Final = 256 * 1024  # lines may be long
MAX_HITS: Final = 1000


class LogLine(NamedTuple):
    number: int
    pieces: list[Piece]
    is_mark: bool  # a START or END marker
    is_hit: bool


class Log(NamedTuple):
    """`style`: of the last line, at its beginning, so that the script can render it again when it grows."""

    lines: list[LogLine]
    first: int = 1
    last: int = 0
    total: int = 0
    style: Mapping[str, str] = {}
    at: int | None = None  # the line to show
    hits: Matches | None = None
    problem: str | None = None

    @property
    def earlier(self) -> int | None:
        """Where the lines before these begin."""
        return max(1, self.first - PAGE_LINES) if self.first > 1 else None

    def hit(self, by: int) -> int | None:
        """The match before (-1) or after (1) the line to show, in a circle."""
        numbers = [match.line for match in self.hits.items] if self.hits else []
        here = self.at or 0
        beyond = [number for number in numbers if (number - here) * by > 0]
        return next(iter(beyond[::by] or numbers[::by]), None)


def read_log(
    reads: Reads, job_id: str, *, run: int | None, find: str | None, line: int | None, first: int | None
) -> Log:
    """The last lines; or those from `first` on, those around `line`, or around the first line with the text `find`."""
    host, found = host_name(), None

    def read(begin: int | None) -> Window:
        return read_lines(reads, job_id, run=run, first=begin, count=PAGE_LINES, max_bytes=MAX_BYTES, host=host)

    try:
        if find:
            found = search_log(reads, job_id, find, run=run, from_line=1, limit=MAX_HITS, host=host)
            if line is None and first is None and found.items:
                line = found.items[0].line
        window = read(first if line is None else max(1, line - PAGE_LINES // 2))
        if line is not None and line > window.last:  # the lines before it are too long
            window = read(line)
        if not window.lines:  # beyond the end
            window = read(None)
    except (NotFound, Unavailable) as error:
        return Log([], problem=error.message)
    painter, lines = Painter(), list[LogLine]()
    style = painter.style
    for number, text in enumerate(window.lines, window.first):
        style = painter.style
        lines.append(_line(number, painter.line(text), find))
    return Log(lines, window.first, window.last, window.total, style, line, found)


def _line(number: int, pieces: list[Piece], find: str | None) -> LogLine:
    text = "".join(piece.text for piece in pieces)
    is_hit = find is not None and find.lower() in text.lower()
    return LogLine(number, pieces, text.startswith(("--- START ", "--- END ")), is_hit)
