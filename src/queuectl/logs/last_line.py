"""The last line that a run printed, which is shown beside its error: `last_output` of a job.

The supervisor keeps the end of what a run printed, behind the redaction of secrets, and in memory: so it is right on a full disk, too.
Where no supervisor reports the end of a run (it was adopted or rescued), the line is read from the log.
"""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Final

from queuectl.logs.markers import LOST, is_lost_line

if TYPE_CHECKING:
    from queuectl.jobs.model import Claim

MAX_CHARS: Final = 200
TAIL_BYTES: Final = 4096  # 200 characters, each with a color of its own
MORE_TAIL_BYTES: Final = 256 * 1024  # of a log, if the end of the output is blank

# "Erase this line" and "go to its first column" overwrite what is there, as `\r` does.
_ERASES_LINE: Final = re.compile(r"\x1b\[2K|\r\x1b\[0?K")
_FIRST_COLUMN: Final = re.compile(r"\x1b\[[01]?G")
_ESCAPE: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*(?:[@-~]|\Z)"  # colors and cursor movements
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|\Z)"  # titles, links, and other strings
    r"|\x1b[ -/]*(?:[0-~]|\Z)"
)
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]+")


class OutputTail:
    """The end of what a run has printed."""

    __slots__ = ("_data", "_is_cut")

    def __init__(self) -> None:
        self._data = b""
        self._is_cut = False

    def add(self, data: bytes) -> None:
        if len(self._data) + len(data) > TAIL_BYTES:
            self._is_cut = True
            self._data = (self._data + data if len(data) < TAIL_BYTES else data)[-TAIL_BYTES:]
        else:
            self._data += data

    def last_line(self, *, has_secrets: bool) -> str | None:
        return last_line(self._data, is_cut=self._is_cut, has_secrets=has_secrets) if self._data else None


def last_line(data: bytes, *, is_cut: bool, has_secrets: bool) -> str | None:
    """The last line that is not blank, as a terminal would show it; None if all are. `is_cut`: more was printed before it. `has_secrets`: the
    redaction has not seen a secret with an escape sequence in it, so what is on both sides of one must not become one word."""
    gap = " " if has_secrets else ""
    stop = len(data.rstrip(b"\r\n"))
    while stop > 0:
        start = data.rfind(b"\n", 0, stop) + 1
        if text := _visible(data[start:stop].decode("utf-8", "replace"), gap):
            return _shortened(text, has_start=start > 0 or not is_cut)
        stop = start - 1
    return None


def read_last_output(claim: Claim, log_from: int | None, log_to: int | None) -> str | None:
    """The last line of the run of this claim, from its log; None also if that cannot be read. `log_to` None: unknown."""
    if log_from is None:
        return None
    # Here, since the supervisor needs no reader.
    from queuectl.errors import Unavailable
    from queuectl.logs.reader import Span, before_end_marker, open_log

    with contextlib.suppress(OSError, Unavailable):  # the end of the run counts more than this line
        log = open_log(claim.log)
        if log is None:
            return None
        with log:
            if log_to is None:
                log_to = before_end_marker(log, Span(log_from, max(log_from, log.size)), is_running=False)
            for size in (TAIL_BYTES, MORE_TAIL_BYTES):
                begin = max(log_from, log.first, log_to - size)
                data = _without_gaps(log.at(Span(begin, max(begin, log_to))))
                found = last_line(data, is_cut=begin > log_from, has_secrets=bool(claim.secrets))
                if found is not None:
                    return found
    return None


def _without_gaps(data: bytes) -> bytes:
    """Without the lines of ours that stand for output that could not be written."""
    if LOST not in data:
        return data
    return b"".join(line for line in data.splitlines(keepends=True) if not is_lost_line(line))


def _visible(line: str, gap: str) -> str:
    if "\x1b" in line:
        line = _FIRST_COLUMN.sub("\r", _ERASES_LINE.sub("\r \r", line))
    # The cursor may stand in the first column, and nothing is overwritten yet.
    line = line.rstrip("\r").rpartition("\r")[2]
    if "\x1b" in line or "\x9b" in line:
        line = _ESCAPE.sub(gap, line)
    return _CONTROL.sub(gap, line.replace("\t", " ")).strip()


def _shortened(text: str, *, has_start: bool) -> str:
    if not has_start:
        text = text.lstrip("\ufffd")  # the rest of a character
        return "…" + text[1 - MAX_CHARS :]
    return text if len(text) <= MAX_CHARS else text[: MAX_CHARS - 1] + "…"
