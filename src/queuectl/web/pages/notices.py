"""What a deed has to say on the page that is shown next, and how to take it back.

They are kept here for a while and an address only names them: a message in the address could be written by anybody.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple

from queuectl.web.desk import Desk

KEPT: Final = 64
MOST_LINES: Final = 8


class Notice(NamedTuple):
    kind: str  # done, part or refused
    text: str
    lines: tuple[str, ...] = ()
    undo: Callable[[Desk], Notice] | None = None


class Board:
    """The latest of them, by a name that nobody guesses."""

    def __init__(self) -> None:
        self._notices: OrderedDict[str, Notice] = OrderedDict()

    def pin(self, notice: Notice) -> str:
        name = secrets.token_urlsafe(9)
        self._notices[name] = notice
        while len(self._notices) > KEPT:
            self._notices.popitem(last=False)
        return name

    def read(self, name: str | None) -> Notice | None:
        return None if name is None else self._notices.get(name)

    def take(self, name: str) -> Notice | None:
        """For its undo, which there is once."""
        return self._notices.pop(name, None)


def done(text: str, *, undo: Callable[[Desk], Notice] | None = None) -> Notice:
    return Notice("done", text, undo=undo)


def refused(text: str, hint: str = "") -> Notice:
    return Notice("refused", text, (hint,) if hint else ())
