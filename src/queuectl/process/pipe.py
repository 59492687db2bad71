"""What a pump knows of one of its pipes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from queuectl.process.relief import Handed, Masks

if TYPE_CHECKING:
    from queuectl.logs.redaction import Redactor

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
        "redactor",
        "why",
    )

    def __init__(
        self,
        fd: int,
        log: str,
        log_from: int,
        born: float,
        handed: Handed | None = None,
        *,
        redactor: Redactor | None = None,
    ) -> None:
        self.fd = fd
        self.handed = handed
        self.log = log
        self.log_from = log_from  # where its output begins
        self.born = born
        self.is_watched = False
        self.is_closed = fd == NO_PIPE
        self.redactor = redactor
        self.held: bytes | None = None  # what was read and waits for room in the log
        self.lost = 0  # bytes that could not be written, and of which the log says nothing yet
        self.why = ""
        self.again_at = 0.0

    def redacted(self, data: bytes | memoryview, *, is_last: bool = False) -> memoryview:
        """Return what of it can be written now, without secrets."""
        assert self.redactor is not None
        return memoryview(self.redactor.feed(bytes(data), is_last=is_last))


def redactor_of(secrets: Masks) -> Redactor | None:
    if not secrets:
        return None
    from queuectl.logs.redaction import Redactor  # here, since few jobs have secrets

    return Redactor(value for _, value in secrets)
