"""From the bytes that a job prints to lines that are safe to show: colours stay, whatever else would order the terminal about goes."""

from __future__ import annotations

import codecs
import re
from typing import Final

from rich.text import Text

from queuectl.job.printable import printable

LONGEST: Final = 4_096  # characters of a line; the rest of it is left out
MOST: Final = 2_000  # lines that are kept

_COLOUR: Final = re.compile(r"\x1b\[[0-9;:]*m")
# Any other sequence, whole: CSI, then OSC, DCS, SOS, PM and APC with all that they hold, then those of two characters.
_ORDER: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]|\x9b[0-?]*[ -/]*[@-~]"
)


class Lines:
    """Cuts what comes into lines, in bounded memory, however long they are."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.begun = ""  # of a line that has not ended

    def feed(self, data: bytes, *, final: bool = False) -> list[str]:
        *ended, last = (self.begun + self._decoder.decode(data, final)).split("\n")
        if final and last:
            ended, last = [*ended, last], ""
        # Who draws a bar sends returns: only what stands there last is worth keeping.
        self.begun = last.rpartition("\r")[2][-LONGEST:] if not last.endswith("\r") else last[-LONGEST:]
        return ended[-MOST:]


def safe(line: str) -> Text:
    """One line: with its colours, without any other order to the terminal, and with what is left of control characters escaped."""
    line = line.rstrip("\r").rpartition("\r")[2][:LONGEST].expandtabs(8)
    coloured = Text()
    at, style = 0, ""
    for found in [*_COLOUR.finditer(line), None]:
        text = line[at : found.start() if found else None]
        coloured.append_text(_with(style, printable(_ORDER.sub("", text))))
        if found:
            style, at = _after(style, found[0]), found.end()
    return coloured


def _with(style: str, text: str) -> Text:
    return Text.from_ansi(style + text, end="") if style and text else Text(text)


def _after(style: str, code: str) -> str:
    """The colours that hold after one more code. A reset forgets what was before, so this does not grow without end."""
    return "" if code in ("\x1b[m", "\x1b[0m") else (style + code)[-512:]
