"""How things look to people: colours, sizes, and by their name here the ages and durations of job/ages.py.

New state? It needs its colour here.
"""

from __future__ import annotations

from typing import Final

from queuectl.job.ages import age as age
from queuectl.job.ages import rough as rough
from queuectl.job.ages import took as took
from queuectl.job.lifecycle import State

STATE_STYLE: Final = {
    State.BLOCKED: "magenta",
    State.PENDING: "yellow",
    State.PROCESSING: "cyan",
    State.FAILED: "orange",
    State.COMPLETED: "green",
    State.DEAD: "red",
    State.CANCELLED: "dim",
}

_CODES: Final = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
    "orange": "38;5;208",
}


def paint(text: str, style: str | None, *, colour: bool) -> str:
    """`text` in `style`, one or more names ("bold red"); unchanged without a style or without colour."""
    if not colour or not style or not text:
        return text
    return f"\x1b[{';'.join(_CODES[name] for name in style.split())}m{text}\x1b[0m"


def room(size: int) -> str:
    """So many bytes with about three digits: `812 B`, `3.4 KiB`, `1.2 GiB`."""
    if size < 1024:
        return f"{size} B"
    amount = float(size)
    for unit in ("KiB", "MiB", "GiB"):
        amount /= 1024
        if amount < 1024:
            return f"{amount:.1f} {unit}"
    return f"{amount / 1024:.1f} TiB"
