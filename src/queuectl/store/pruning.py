"""The seam for removing what has ended: in small steps, so that nobody who has something to write waits long for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from queuectl.job.lifecycle import State


class Ended(NamedTuple):
    """A job that has ended. `rows`: how much there is to remove with it, in rows and half pages of text."""

    id: str
    log: str | None
    host: str | None  # where it last ran
    rows: int


class EndedReads(Protocol):
    """Looking for what could be removed. `before_ms`: only jobs that ended then or before."""

    @property
    def shown(self) -> str:
        """Its address, without what is secret in it."""
        ...

    def ended(
        self, state: State, *, before_ms: int, limit: int | None = None, host: str | None = None
    ) -> Iterator[Ended]:
        """The jobs that ended in this final state, the first to end first, in bounded memory.

        With `host`, those that last ran there, nowhere, or on a host that no worker is of: the others are left to workers
        who can reach their logs.
        """
        ...

    def ended_of(self, ids: Sequence[str], state: State, *, before_ms: int, host: str | None = None) -> list[Ended]:
        """The same, of those with these ids: what it costs is theirs, however many others there are."""
        ...

    def count_ended(self, state: State, *, before_ms: int) -> int: ...


class Prunable(EndedReads, Protocol):
    """Removing it. Every step is one transaction, and safe to take at any time by any number at once."""

    def prune(self, ids: Sequence[str], *, before_ms: int) -> dict[str, str | None]:
        """Remove those that have ended, with history, output, tags and edges, in one transaction, after whoever waits for them
        was told. Returns the log of each that is gone by this call; one that was revived, or has ended anew since
        `before_ms`, stays. So do the last of them, where it takes long and others have to wait for it, but never all."""
        ...

    def trim(self, job_id: str, *, before_ms: int, rows: int) -> int:
        """Remove at most so many of the oldest runs of a job that has ended, and at most so many pieces of its output, in one
        transaction; how many in all. For a job that is to be removed and has more than one transaction should hold."""
        ...

    def shrink(self) -> bool:
        """Give back to the disk a little of the room that removed jobs have left. Whether there is more to give back."""
        ...
