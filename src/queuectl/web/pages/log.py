"""The end of a job's log, for its page, with the colors of ANSI sequences."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from queuectl.config import host_name
from queuectl.errors import NotFound, Unavailable
from queuectl.operations import logs
from queuectl.operations.logs import LogView
from queuectl.store.reads import Reads

# A terminal sequence: a color (CSI … m), another CSI sequence, a title or link (OSC), a character set; or a control character,
# including those that change the direction of text. The length of a color sequence is limited: a job may print very long ones.
_SEQUENCE: Final = re.compile(
    r"\x1b\[([0-9;:]{0,64})m|\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)
_PLAIN: Final[dict[int, tuple[str, str]]] = {1: ("bold", "b"), 2: ("dim", "d"), 3: ("italic", "i"), 4: ("under", "u")}
_OFF: Final = {22: ("bold", "dim"), 23: ("italic",), 24: ("under",), 39: ("fg",), 49: ("bg",)}


class Piece(NamedTuple):
    classes: str
    text: str


class Painter:
    """Splits text into pieces with CSS classes. Colors last until they are changed, also over lines."""

    def __init__(self) -> None:
        self._style: dict[str, str] = {}

    def lines(self, text: str) -> list[list[Piece]]:
        return [self._line(line) for line in text.split("\n")]

    def _line(self, line: str) -> list[Piece]:
        # A progress bar is written over itself with carriage returns: only the last one is visible.
        line = line.rstrip("\r").rpartition("\r")[2]
        pieces, start = [], 0
        for found in _SEQUENCE.finditer(line):
            pieces += self._piece(line[start : found.start()])
            start = found.end()
            if found[1] is not None:
                self._paint(found[1])
        return pieces + self._piece(line[start:])

    def _piece(self, text: str) -> list[Piece]:
        return [Piece(" ".join(sorted(self._style.values())), text)] if text else []

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
        """Map 256 or 16 million colors to the nearest of the 16 that the style sheet has."""
        kind = given.pop(0) if given else 0
        if kind == 5 and given:
            self._style[name] = f"t-{name}{_nearest_of_256(given.pop(0))}"
        elif kind == 2 and len(given) >= 3:
            self._style[name] = f"t-{name}{_nearest(given.pop(0), given.pop(0), given.pop(0))}"


def _nearest_of_256(code: int) -> int:
    if code < 16:
        return code
    if code < 232:
        code -= 16
        return _nearest(*(51 * (code // step % 6) for step in (36, 6, 1)))
    return _nearest(*[8 + 10 * (min(code, 255) - 232)] * 3)


def _nearest(red: int, green: int, blue: int) -> int:
    brightest = max(red, green, blue)
    if brightest - min(red, green, blue) < 40:
        return 0 if brightest < 64 else 8 if brightest < 128 else 7 if brightest < 208 else 15
    bits = sum(bit for bit, part in ((1, red), (2, green), (4, blue)) if part * 2 > brightest)
    return bits + (8 if brightest > 200 else 0)


TAIL_LINES: Final = 500  # lines
MAX_BYTES: Final = 256 * 1024  # lines may be long


class LogLine(NamedTuple):
    pieces: list[Piece]
    is_mark: bool  # a START or END marker
    is_hit: bool


class Log(NamedTuple):
    lines: list[LogLine]
    is_cut: bool  # earlier output is not shown
    hits: int
    problem: str | None = None


def read_log(reads: Reads, job_id: str, *, run: int | None, find: str | None) -> Log:
    data, size = bytearray(), 0
    try:
        for piece in logs.read_log(reads, job_id, LogView(run=run, tail=TAIL_LINES), host=host_name()):
            size += len(piece)
            data = (data + piece)[-MAX_BYTES:]
    except (NotFound, Unavailable) as error:
        return Log([], False, 0, error.message)
    text = bytes(data).decode("utf-8", "replace").removesuffix("\n")
    painted = Painter().lines(text) if text else []
    lines = [_line(pieces, find) for pieces in painted]
    return Log(lines, size > len(data) or len(lines) >= TAIL_LINES, sum(line.is_hit for line in lines))


def _line(pieces: list[Piece], find: str | None) -> LogLine:
    text = "".join(piece.text for piece in pieces)
    is_hit = find is not None and find.lower() in text.lower()
    return LogLine(pieces, text.startswith(("--- START ", "--- END ")), is_hit)
