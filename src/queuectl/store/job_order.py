"""The order of lists of jobs, and positions in it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from queuectl.jobs.states import FINAL
from queuectl.store.types import (
    After,
    Filter,
    Sort,
)

LAST_RANK: Final = 2**63 - 1  # after every job
_SORT_COLUMNS: Final = {
    Sort.CREATED: "seq",
    Sort.PRIORITY: "priority",
    Sort.STATE: "state",
    Sort.QUEUE: "queue",
    Sort.RUN_AT: "run_at",
    Sort.FINISHED: "finished_at",
    Sort.DURATION: "duration_ms",
}


class Order:
    """By a column, nulls last, ties by the order of enqueue, the newest first."""

    def __init__(self, sort: Sort, where: Filter, *, descending: bool) -> None:
        self._column = _SORT_COLUMNS[sort]
        self._descending = descending
        # Not tested for null where that is impossible: no index contains the test.
        have_ended = bool(where.states) and where.states <= FINAL
        self._may_be_null = sort is Sort.DURATION or (sort is Sort.FINISHED and not have_ended)

    @property
    def clause(self) -> str:
        way = "desc" if self._descending else "asc"
        if self._column == "seq":
            return f" order by seq {way}"
        nulls = f"{self._column} is null, " if self._may_be_null else ""
        return f" order by {nulls}{self._column} {way}, seq desc"

    def condition(self, after: After, mark: str) -> tuple[str, list[Any]]:
        """The condition for jobs after this position, and its values. `mark`: the placeholder of the dialect.

        The column is compared twice, so that an index on it can be entered at the position.
        """
        than = "<" if self._descending else ">"
        if self._column == "seq":
            return f"seq {than} {mark}", [after.seq]
        if after.value is None:
            return f"({self._column} is null and seq < {mark})", [after.seq]
        here = f"({self._column} {than}= {mark} and ({self._column} {than} {mark} or seq < {mark}))"
        values = [after.value, after.value, after.seq]
        return (f"({self._column} is null or {here})" if self._may_be_null else here), values


class Position(NamedTuple):
    """The position of a job: smaller goes first, within a queue and across all of them."""

    queue: str
    rank: int
    seq: int

    def is_before(self, other: Position) -> bool:
        return (self.rank, self.seq) < (other.rank, other.seq)


def positions_before(position: Position, queues: Iterable[str], *, in_one_order: bool) -> list[Position]:
    """For each queue with jobs that may be claimed before `position`: up to where.

    Of `queues` in one order, each up to the same rank; else those named before the queue of the job completely.
    """
    if in_one_order:
        return [position._replace(queue=queue) for queue in queues]
    found = []
    for queue in queues:
        if queue == position.queue:
            found.append(position)
            break
        found.append(Position(queue, LAST_RANK, 0))
    return found
