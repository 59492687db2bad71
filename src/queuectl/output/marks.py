"""Where secrets were taken out of a log, in a file beside it: which, and which bytes of it; never what it is.

So whoever may know the secrets, because they are told to them as to the worker, can have the bytes as they were printed: see
`put back`, `logs --raw`. A short fingerprint, with salt, tells whether a secret is still the one that it was: of all that it could
be, one in 65,536 has the same, so it gives nothing away that would help to guess it.

A line for each run, one for each part of a secret behind it, and one for each place. A file that becomes too long is not
continued: what is printed from then on stays `***`, also for those who may know.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from queuectl.output.log import Gone, Log, Span
from queuectl.output.masking import STARS, Mark, Masking, Part, parts_of

SUFFIX: Final = ".masked"  # added to the name of a log
LARGEST: Final = 1 << 20
_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Known(Protocol):
    """Who may know the secrets of this host, and is told them."""

    def value(self, entry: str) -> bytes | None:
        """As it is now; None: it cannot be had."""
        ...

    def differs(self, entry: str) -> None:
        """It is not what it was when a job printed it."""
        ...


class Mask:
    """Of one run: takes secrets out of what it prints, and writes down where."""

    def __init__(self, secrets: Sequence[tuple[str, bytes]], log: str, *, is_first: bool) -> None:
        self._parts = parts_of(secrets)
        self._masking = Masking(self._parts)
        self._path = log + SUFFIX
        self._is_begun = False
        if is_first:
            with contextlib.suppress(OSError):  # there is none, as a rule
                os.unlink(self._path)

    @property
    def is_holding(self) -> bool:
        return self._masking.is_holding

    def feed(self, data: bytes, *, is_last: bool = False) -> tuple[bytes, list[Mark]]:
        return self._masking.feed(data, is_last=is_last)

    def note(self, marks: Sequence[Mark], at: int) -> None:
        """Before what they are about is written to the log, from byte `at` on. What cannot be noted cannot be put back: no more."""
        lines = [_line(mark, at) for mark in marks]
        with contextlib.suppress(OSError):
            fd = os.open(self._path, _FLAGS, 0o600)
            try:
                if not self._is_begun:
                    lines = [*self._head(), *lines]
                if os.fstat(fd).st_size + sum(map(len, lines)) <= LARGEST:
                    os.write(fd, b"".join(lines))
                    self._is_begun = True
            finally:
                os.close(fd)

    def _head(self) -> Iterator[bytes]:
        salt = os.urandom(16)
        yield b"run %b\n" % salt.hex().encode()
        for part in self._parts:
            yield b"part %b %d %b\n" % (part.entry.encode(), part.line, fingerprint(part, salt).encode())


def fingerprint(part: Part, salt: bytes) -> str:
    import hashlib  # here, since few jobs print what they should not, and a keeper imports little

    return hashlib.blake2b(part.text, digest_size=2, salt=salt).hexdigest()


def _line(mark: Mark, at: int) -> bytes:
    pieces = ",".join(f"{part}:{start}-{stop}" for part, start, stop in mark.pieces)
    return f"at {mark.at + at} {mark.length} {pieces}\n".encode()


# ── putting back ────────────────────────────────────────────────────────────────────────────────────────────────────


class _Place(NamedTuple):
    at: int
    text: bytes | None  # None: it cannot be had (any more)


class RawLog(Log):
    """A log with the secrets in it, as far as they are known. By the offsets of the log as it is."""

    def __init__(self, path: str, *, known: Known) -> None:
        super().__init__(path)
        self._marks = path + SUFFIX
        self._known = known

    def pieces(self, spans: Sequence[Span]) -> Iterator[bytes | Gone]:
        for span in spans:
            place = span.start
            # Read for each: a run under way goes on to write there, always before it writes to the log.
            for at, text in self._places():
                behind = at + len(STARS)
                if at >= span.stop:
                    break
                if at < self.first or behind <= place:
                    continue
                if at >= place:
                    yield from super().pieces([Span(place, at)])
                    stars = self.at(Span(at, behind))
                    yield stars if text is None or stars != STARS else text
                place = behind  # where we begin within it: it was given out with what came before
            if place < span.stop:
                yield from super().pieces([Span(place, span.stop)])

    def _places(self) -> list[_Place]:
        try:
            with open(os.open(self._marks, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
                lines = file.read(LARGEST).splitlines()
        except OSError:
            return []
        found, parts, salt = list[_Place](), list[bytes | None](), b""
        for line in lines:
            match line.decode("ascii", "replace").split(" "):
                case ["run", text]:
                    parts, salt = [], _hex(text)
                case ["part", entry, number, mark]:
                    parts.append(self._part(entry, number, mark, salt))
                case ["at", _, "0", pieces] if found:  # it goes on from the one before
                    before, more = found[-1].text, _joined(pieces, parts)
                    found[-1] = found[-1]._replace(text=None if before is None or more is None else before + more)
                case ["at", at, _, pieces] if at.isdigit():
                    found.append(_Place(int(at), _joined(pieces, parts)))
                case _:
                    pass
        return found

    def _part(self, entry: str, number: str, mark: str, salt: bytes) -> bytes | None:
        value = self._known.value(entry)
        if value is None or not number.isdigit():
            return None
        lines = value.splitlines()[int(number) :]
        part = Part(entry, int(number), lines[0] if lines else b"")
        if fingerprint(part, salt) == mark:
            return part.text
        self._known.differs(entry)
        return None


def _joined(pieces: str, parts: Sequence[bytes | None]) -> bytes | None:
    text = b""
    for piece in pieces.split(","):
        number, _, span = piece.partition(":")
        start, _, stop = span.partition("-")
        if not (number.isdigit() and start.isdigit() and stop.isdigit()) or int(number) >= len(parts):
            return None
        part = parts[int(number)]
        if part is None:
            return None
        text += part[int(start) : int(stop)]
    return text


def _hex(text: str) -> bytes:
    try:
        return bytes.fromhex(text)[:16]
    except ValueError:
        return b""
