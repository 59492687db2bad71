"""How long a log may become, and the line that stands where the beginning of one is gone.

Offsets that are recorded count every byte that was ever written into a log. The first line of a file says how many of them
are gone, so whoever has the file can tell where each of them is. That line is ours, whatever a job prints: a file begins with
a START line or with this one, and jobs print behind it.

A log that is full is cut. Its newest half moves, from its end on, into a file beside it; the old one becomes shorter by what
has moved, so both together take up no more than one did; when all has moved, the new one takes the place of the old one.
While that goes on, the first line of the old one says what moves. So whoever is killed in the middle leaves a log that can be
read, and the next one who writes goes on with it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from queuectl.units import format_size

# No line that says what is gone is longer: three numbers of up to 19 digits, and a limit.
LONGEST_HEAD: Final = 160

# Added to the name of a log: the file that will take its place.
BESIDE: Final = ".cut"

_BEGIN: Final = b"--- "
_GONE: Final = b" bytes of earlier output are gone (log-limit "
_MOVING: Final = b", moving "
_END: Final = b") ---"


class Bounds(NamedTuple):
    """A log is cut before it becomes longer than `full`, a line of ours may be written up to `frame`; when it is cut, up to
    `kept` bytes stay."""

    full: int
    frame: int
    kept: int


def bounds(limit: int) -> Bounds:
    return Bounds(limit, limit + limit // 16, limit // 2)


class Head(NamedTuple):
    """What the first line of a file says: `gone` bytes came before the one that is at place `start`.

    `moving`: up to which place the file reached when what is behind `start` began to move. What is not here any more is in the
    file beside it, behind a line of its own.
    """

    gone: int
    start: int
    limit: bytes  # as it was when they went, in words
    moving: int | None = None

    @property
    def line(self) -> bytes:
        """That begins the file to which it moves, or will have moved."""
        return gone_line(self.gone, self.limit)

    def beside(self, place: int) -> int:
        """Where a byte of this file is in that one."""
        return place - self.start + len(self.line)


WHOLE: Final = Head(0, 0, b"")


def gone_line(count: int, limit: bytes) -> bytes:
    return b"%b%d%b%b%b\n" % (_BEGIN, count, _GONE, limit, _END)


def moving_line(count: int, limit: bytes, start: int, stop: int) -> bytes:
    return b"%b%d%b%b%b%d-%d%b\n" % (_BEGIN, count, _GONE, limit, _MOVING, start, stop, _END)


def lost_line(count: int, why: str) -> bytes:
    """Where output could not be written."""
    return b"--- %d bytes could not be written: %b ---\n" % (count, why.encode("utf-8", "replace"))


def limit_words(limit: int) -> bytes:
    return format_size(limit).encode()


def read_head(data: bytes) -> Head:
    """Of the first bytes of a file, LONGEST_HEAD of them or all there are."""
    line, newline, _ = data.partition(b"\n")
    count, found, rest = line.removeprefix(_BEGIN).partition(_GONE)
    if not (newline and found and line.startswith(_BEGIN) and rest.endswith(_END) and count.isdigit()):
        return WHOLE
    limit, moving, places = rest.removesuffix(_END).partition(_MOVING)
    if not moving:
        return Head(int(count), len(line) + 1, limit)
    start, _, stop = places.partition(b"-")
    return Head(int(count), int(start), limit, int(stop)) if start.isdigit() and stop.isdigit() else WHOLE
