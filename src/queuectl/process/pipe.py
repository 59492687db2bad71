"""What a pump knows of one of its pipes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from queuectl.process.relief import Handed, Masks

if TYPE_CHECKING:
    from queuectl.output.marks import Mask
    from queuectl.output.masking import Mark

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
        "marks",
        "mask",
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
        mask: Mask | None = None,
    ) -> None:
        self.fd = fd
        self.handed = handed
        self.log = log
        self.log_from = log_from  # where its output begins
        self.born = born
        self.is_watched = False
        self.is_closed = fd == NO_PIPE
        self.mask = mask  # takes secrets out of what comes
        self.held: bytes | None = None  # what was read and waits for room in the log
        self.marks: list[Mark] = []  # where they were taken out of that
        self.lost = 0  # bytes that could not be written, and of which the log says nothing yet
        self.why = ""
        self.again_at = 0.0

    def masked(self, data: bytes | memoryview, *, is_last: bool = False) -> memoryview:
        """What of it can be written now, without secrets."""
        assert self.mask is not None
        text, self.marks = self.mask.feed(bytes(data), is_last=is_last)
        return memoryview(text)


def mask_of(masks: Masks, log: str, *, is_first: bool = False) -> Mask | None:
    if not masks:
        return None
    from queuectl.output.marks import Mask  # here, since few jobs have secrets, and a keeper imports little

    return Mask(masks, log, is_first=is_first)
