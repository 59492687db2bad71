"""Numbered lines of a log: a window of them, those that contain a text, and the part of a line that a terminal would show.

Lines are counted from 1 in what is kept of the log, with its markers. The functions read a log of any size once, in bounded memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

MAX_LINE_BYTES: Final = 256 * 1024  # of a longer line, only the end is searched

# A terminal sequence: a color (CSI … m), another CSI sequence, a title or link (OSC), a character set; or a control character,
# including those that change the direction of text. The length of a color sequence is limited: a job may print very long ones.
SEQUENCE: Final = re.compile(
    r"\x1b\[([0-9;:]{0,64})m|\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)


def latest(line: str) -> str:
    """What is behind the last carriage return: a progress bar is written over itself. Those at the end overwrite nothing."""
    return line.rstrip("\r").rpartition("\r")[2]


def visible(line: str) -> str:
    return SEQUENCE.sub("", latest(line))


class Window(NamedTuple):
    """Consecutive lines of a log."""

    first: int  # the number of the first line
    lines: list[str]
    total: int  # lines in the log

    @property
    def last(self) -> int:
        return self.first + len(self.lines) - 1


def read_window(pieces: Iterable[bytes], *, first: int | None, count: int, max_bytes: int) -> Window:
    """Up to `count` lines from line `first` on; None: the last ones. Fewer if they are longer than `max_bytes` together: of the last
    lines, the first ones are missing, else the last ones. A line is cut only if it is longer than that by itself."""
    kept, newlines, has_open_line = bytearray(), 0, False
    for piece in pieces:
        found = piece.count(b"\n")
        if first is None:
            kept = (kept + piece)[-max_bytes:]
        elif newlines + found >= first - 1 and newlines < first - 1 + count and len(kept) <= max_bytes:
            start = 0
            for _ in range(first - 1 - newlines):
                start = piece.find(b"\n", start) + 1
            kept += piece[start:]
        newlines += found
        has_open_line = not piece.endswith(b"\n")
    total = newlines + has_open_line
    if first is None:
        lines = bytes(kept).removesuffix(b"\n").split(b"\n")[-count:] if kept and count else []
        if len(kept) == max_bytes and 1 < len(lines) < count:
            del lines[0]
        return Window(total - len(lines) + 1, _decode(lines), total)
    lines = bytes(kept[:max_bytes]).split(b"\n")
    # The last one is empty or cut, unless the log ends within a line.
    if len(lines) <= count and (not lines[-1] or len(kept) > max_bytes > len(lines[-1])):
        lines.pop()
    return Window(first, _decode(lines[:count]), total)


def _decode(lines: list[bytes]) -> list[str]:
    return [line.decode("utf-8", "replace") for line in lines]


class Match(NamedTuple):
    line: int
    text: str  # as a terminal would show it; of a long line, the surroundings


class Matches(NamedTuple):
    items: list[Match]
    next_line: int | None  # where to continue; None: the log was searched to its end


TEXT_BEFORE, MAX_TEXT = 100, 300  # characters of a long line


def search(pieces: Iterable[bytes], text: str, *, from_line: int, limit: int) -> Matches:
    """The first `limit` lines with `text` from line `from_line` on, in upper or lower case. What a terminal would not show is ignored."""
    wanted, number, found = text.lower(), 1, list[Match]()
    for block in _whole_lines(pieces):
        count = block.count(b"\n")
        if number + count >= from_line:
            for index, line in _candidates(block.decode("utf-8", "replace"), wanted):
                shown = visible(line)
                place = shown.lower().find(wanted)
                if place < 0 or number + index < from_line:
                    continue
                if len(found) == limit:
                    return Matches(found, number + index)
                start = max(0, place - TEXT_BEFORE)
                found.append(Match(number + index, shown[start : start + MAX_TEXT]))
        number += count
    return Matches(found, None)


def _whole_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Blocks of complete lines; the last one may have no newline."""
    rest = b""
    for piece in pieces:
        end = piece.rfind(b"\n") + 1
        if end:
            yield rest + piece[:end]
            rest = piece[end:]
        else:
            rest = (rest + piece)[-MAX_LINE_BYTES:]
    if rest:
        yield rest


def _candidates(text: str, wanted: str) -> Iterator[tuple[int, str]]:
    """The lines that may contain `wanted`, with their index. Searching the whole block at once is fast when there are few."""
    folded = (SEQUENCE.sub("", text) if "\x1b" in text else text).lower()
    place = folded.find(wanted)
    if place < 0:
        return
    lines, index, counted = text.split("\n"), 0, 0
    while place >= 0:
        index += folded.count("\n", counted, place)
        counted = place
        yield index, lines[index]
        place = folded.find("\n", place)
        place = folded.find(wanted, place) if place >= 0 else -1
