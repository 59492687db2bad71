"""What a pump knows of one of its pipes."""

from __future__ import annotations

from typing import Final

from queuectl.process.relief import Handed

NO_PIPE: Final = -1


class Pipe:
    """The way into a log: the end of a pipe that is read, by us or by our relief."""

    __slots__ = (
        "again_at",
        "born",
        "fd",
        "handed",
        "held",
        "is_closed",
        "is_watched",
        "log",
        "log_from",
        "lost",
        "why",
    )

    def __init__(self, fd: int, log: str, log_from: int, born: float, handed: Handed | None = None) -> None:
        self.fd = fd
        self.handed = handed
        self.log = log
        self.log_from = log_from  # where its output begins
        self.born = born
        self.is_watched = False
        self.is_closed = fd == NO_PIPE
        self.held: bytes | None = None  # what was read and waits for room in the log
        self.lost = 0  # bytes that could not be written, and of which the log says nothing yet
        self.why = ""
        self.again_at = 0.0
