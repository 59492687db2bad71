"""The seam for moving a whole store: what a copy consists of, and what each dialect gives and takes for it.

Between the two go pages of plain rows, with the same columns and values in every dialect. What only one dialect needs it
leaves out when it gives, and makes up when it takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple, Protocol

from queuectl.job.audit import Act, Actor
from queuectl.job.model import Worker

Row = tuple[Any, ...]


class Table(NamedTuple):
    name: str
    order: str  # to read it in; by an index
    page: int = 100  # rows at a time: a job may hold a megabyte of words


AUDIT: Final = ("audit", "audit_ends")
SAMPLES: Final = ("points", "counters", "buckets", "sampling")

# Everything but the workers, who belong to where they work. In this order: what is referred to comes first.
# New table? Also: copied.sql and is_untouched.sql of each dialect.
TABLES: Final = (
    Table("config", "key"),
    Table("batches", "name"),
    Table("queues", "name"),
    Table("starts", "queue, number"),
    Table("jobs", "seq"),
    Table("runs", "job, number"),
    Table("output", "job, run, at", page=16),
    Table("job_tags", "tag, job"),
    Table("edges", "child, parent"),
    Table("moves", "queue, was, now, ending"),
    Table("schedules", "name"),
    Table("ticks", "schedule, at, by_hand"),
    Table("alerts", "name"),
    Table("requests", "key"),
    Table("calls", "at, job, run, happening"),
    Table("points", "span, queue, at"),
    Table("counters", "queue"),
    Table("buckets", "queue, what, bucket"),
    Table("sampling", "one"),
    Table("audit_ends", "one"),
    Table("audit", "seq"),
)


class Dump(Protocol):
    """A store as it was at one moment, however long the reader takes and whoever writes meanwhile."""

    def counts(self) -> dict[str, int]:
        """How much there is of each thing, in words for people: jobs, runs and so on."""
        ...

    def running(self) -> int:
        """How many jobs are processing."""
        ...

    def config(self) -> dict[str, str]: ...

    def last_seq(self) -> int: ...

    def columns(self, table: Table) -> Sequence[str]:
        """What every dialect has in this table."""
        ...

    def size(self, table: Table) -> int:
        """How many rows `pages` will give."""
        ...

    def pages(self, table: Table) -> Iterator[list[Row]]:
        """All rows, in the order of the table and of `columns`, in bounded memory."""
        ...


class Load(Protocol):
    """A store to be filled: nobody else can add to it until all of it is committed, or nothing."""

    def is_untouched(self) -> bool:
        """Whether it has no job, no setting and no history, and never had a job."""
        ...

    def make_room(self) -> None:
        """Remove what may be there although nobody has used it: points for charts of nothing."""
        ...

    def clear(self) -> None:
        """Remove all there is, settings, counters and workers too."""
        ...

    def add(self, table: Table, columns: Sequence[str], rows: Iterable[Row]) -> None: ...

    def moved(self, moves: Sequence[Row]) -> None:
        """Count passages between states on top of those that came along, see store/counting.py."""
        ...

    def counts(self) -> dict[str, int]:
        """As `Dump.counts`, of what is there by now."""
        ...

    def record(self, act: Act, /) -> None:
        """In the audit: last of all."""
        ...

    def finish(self, *, last_seq: int) -> None:
        """When all of it is there: sequence numbers go on after `last_seq`, and the settings are in force."""
        ...


class Movable(Protocol):
    """As much of a store as a copy needs."""

    actor: Actor | None  # see store/auditing.py

    def close(self) -> None: ...

    def workers(self) -> list[Worker]: ...

    @property
    def shown(self) -> str:
        """Its address, without what is secret in it."""
        ...

    def identity(self) -> str:
        """Two of them are the same if it is the same store, whatever the addresses are."""
        ...

    def now_ms(self) -> int:
        """The time by the clock that rules there."""
        ...

    def dump(self) -> AbstractContextManager[Dump]: ...

    def load(self) -> AbstractContextManager[Load]:
        """Commits at the end; any exception leaves the store as it was."""
        ...
