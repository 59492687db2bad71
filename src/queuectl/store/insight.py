"""What can be asked of a store about itself and about the line: for `explain` and `doctor`, never on the way of a job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from queuectl.errors import QueuectlError
from queuectl.job.graph import EdgeState, Need, Otherwise
from queuectl.job.lifecycle import State

ERROR_SHOWN: Final = 200  # characters of an error by which it is told from others
MOST_DEATHS: Final = 20_000  # dead jobs that are gone through for one look: some 50 ms
LAST_RANK: Final = 2**63 - 1  # behind every job there is


class Caution(NamedTuple):
    """A setting of the server that weakens a guarantee."""

    code: str
    message: str
    hint: str


class Health(NamedTuple):
    """What a store found out about itself."""

    engine: str  # with its version, for people
    schema: int  # the version of what is there
    known: int  # the version that this queuectl has
    problems: tuple[str, ...]  # in words; empty: it is sound
    hindrances: tuple[QueuectlError, ...] = ()  # what keeps us from using it, sound as it may be
    cautions: tuple[Caution, ...] = ()


class Link(NamedTuple):
    """A job that waits, or has waited, for another."""

    parent: str
    parent_state: State
    child: str
    child_state: State
    when: Need
    otherwise: Otherwise
    state: EdgeState

    @classmethod
    def of(cls, row: tuple[str, ...]) -> Link:
        parent, parent_state, child, child_state, when, otherwise, state = row
        ends = (parent, State(parent_state), child, State(child_state))
        return cls(*ends, Need(when), Otherwise(otherwise), EdgeState(state))


class Deaths(NamedTuple):
    """Dead jobs that have the same to say for themselves."""

    error: str  # its beginning, if it is long
    queue: str | None  # None: they are of several
    jobs: int
    newest: str  # the id of the one that died last
    at_ms: int  # when that was


class Insight(Protocol):
    def dead_by_error(self, *, limit: int, most: int = MOST_DEATHS) -> list[Deaths]:
        """What jobs are dead of, the most frequent first, as far as the `most` that died last tell: the rest is not counted."""
        ...

    def parents(self, ids: Sequence[str], *, limit: int) -> list[Link]:
        """What these jobs wait for, or have waited for, as far as it is still there; in the order of enqueue."""
        ...

    def children(self, ids: Sequence[str], *, limit: int) -> list[Link]:
        """What waits for these jobs, or has; in the order of enqueue."""
        ...

    def ahead(self, job_id: str, *, queues: tuple[str, ...] | None, most: int) -> int:
        """How many jobs that are due a worker of these queues (the first is served first; None: all, in one order) would
        claim before this one. Counted up to `most`, so that it costs the same at any number of jobs. Raises JobNotFound."""
        ...

    def is_called_off(self, job_id: str) -> bool:
        """Whether a cancel is recorded for the run under way. Raises JobNotFound."""
        ...

    def examine(self) -> Health:
        """Look for damage, references to nothing and what is missing. Reads all of it: it may take a while.

        Raises what keeps it from looking, such as StoreDamaged.
        """
        ...


class Place(NamedTuple):
    """Where a job stands: smaller goes first, within a queue and across all of them."""

    queue: str
    rank: int
    seq: int

    def is_before(self, other: Place) -> bool:
        return (self.rank, self.seq) < (other.rank, other.seq)


def bounds(place: Place, queues: Iterable[str], *, in_one_order: bool) -> list[Place]:
    """For each queue that can hold something to be claimed before `place`: up to where.

    Of `queues` in one order, each up to the same rank; else those named before the job's own to their end.
    """
    if in_one_order:
        return [place._replace(queue=queue) for queue in queues]
    found = []
    for queue in queues:
        if queue == place.queue:
            found.append(place)
            break
        found.append(Place(queue, LAST_RANK, 0))
    return found


def count_late(late: Iterable[Place], limits: Iterable[Place]) -> int:
    """How many of those whose time has come, but whom nobody has let in yet, are before the limit of their queue."""
    by_queue = {limit.queue: limit for limit in limits}
    return sum(one.queue in by_queue and one.is_before(by_queue[one.queue]) for one in late)
