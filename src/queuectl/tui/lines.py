"""From the bytes that a job prints to lines that are safe to show: colours stay, whatever else would order the terminal about goes."""

from __future__ import annotations

import codecs
import re
from typing import Final

from rich.text import Text

from queuectl.job.printable import printable

LONGEST: Final = 4_096  # characters of a line; the rest of it is left out
MOST: Final = 2_000  # lines that are kept

# One that is longer than any is no colour, and goes with the other orders.
_COLOUR: Final = re.compile(r"\x1b\[[0-9;:]{0,64}m")
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
    kept, at = [], 0
    for found in _COLOUR.finditer(line):
        kept += [_plain(line[at : found.start()]), found[0]]
        at = found.end()
    # All in one go: to begin anew at each colour with all that were before would take a second for one line.
    return Text.from_ansi("".join([*kept, _plain(line[at:])]), end="")


def _plain(text: str) -> str:
    return printable(_ORDER.sub("", text))
