"""Taking secrets out of what a job prints, on its way into the log: what is never written there nobody can read, copy or send.

Each becomes `***`. Of a value of several lines each line counts for itself; what is shorter than four bytes stays: it would be found
everywhere. Bytes come in pieces, and a secret may come in several of them: what may be the beginning of one is held back until
that is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

STARS: Final = b"***"
SHORTEST: Final = 4


class Part(NamedTuple):
    """A line of a secret: of which, and the how manieth."""

    entry: str
    line: int
    text: bytes


class Piece(NamedTuple):
    """Some bytes of a part, by its number."""

    part: int
    start: int
    stop: int


class Mark(NamedTuple):
    """Where something was taken out: at this byte of what was given out there are `length` stars in its place, none where it goes on
    from the mark before."""

    at: int
    length: int
    pieces: list[Piece]


class _Segment(NamedTuple):
    """Bytes to take out, all of one part; `found` is where that part begins. `is_new`: they do not go on from those before."""

    start: int
    stop: int
    part: int
    found: int
    is_new: bool


def parts_of(secrets: Iterable[tuple[str, bytes]]) -> list[Part]:
    found: dict[bytes, Part] = {}
    for entry, value in secrets:
        for number, line in enumerate(value.splitlines()):
            if len(line) >= SHORTEST:
                found.setdefault(line, Part(entry, number, line))
    return list(found.values())


class Masking:
    def __init__(self, parts: Sequence[Part]) -> None:
        self._texts = [part.text for part in parts]
        self._held = b""
        self._left: list[_Segment] = []  # at the beginning of what is held: they go on, whatever comes

    def feed(self, data: bytes, *, is_last: bool = False) -> tuple[bytes, list[Mark]]:
        """What may be given out now, and what was taken out of it. `is_last`: nothing more comes for a while."""
        text = self._held + data
        cut = len(text) if is_last else self._may_begin(text)
        segments = self._segments(text)
        out, marks, done = bytearray(), list[Mark](), 0
        for start, stop, part, found, is_new in segments:
            if start >= cut:
                break
            out += text[done:start]
            if is_new:
                marks.append(Mark(len(out), len(STARS), []))
                out += STARS
            elif not marks:
                marks.append(Mark(0, 0, []))
            done = min(stop, cut)
            marks[-1].pieces.append(Piece(part, start - found, done - found))
        out += text[done:cut]
        self._held = text[cut:]
        # Those that begin behind the cut are found again; those that began before it are not.
        self._left = [
            _Segment(max(one.start, cut) - cut, one.stop - cut, one.part, one.found - cut, False)
            for one in segments
            if one.stop > cut > one.found
        ]
        return bytes(out), marks

    @property
    def is_holding(self) -> bool:
        return bool(self._held)

    def _segments(self, text: bytes) -> list[_Segment]:
        """What to take out, in order, each byte once. Secrets that overlap become one."""
        segments = [*self._left]
        end = segments[-1].stop if segments else 0
        for start, stop, part in sorted(self._find(text), key=lambda found: (found[0], -found[1])):
            if stop > end:
                is_new = not segments or start >= end
                segments.append(_Segment(start if is_new else end, stop, part, start, is_new))
                end = stop
        return segments

    def _find(self, text: bytes) -> Iterator[tuple[int, int, int]]:
        for number, wanted in enumerate(self._texts):
            place = text.find(wanted)
            while place >= 0:
                yield place, place + len(wanted), number
                place = text.find(wanted, place + 1)

    def _may_begin(self, text: bytes) -> int:
        """From where on the text may be the beginning of a secret: the first place from which it is."""
        first = len(text)
        for wanted in self._texts:
            place = text.find(wanted[:1], max(0, len(text) - len(wanted) + 1), first)
            while place >= 0:
                if wanted.startswith(text[place:]):
                    first = place
                    break
                place = text.find(wanted[:1], place + 1, first)
        return first
