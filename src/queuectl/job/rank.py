"""Who goes first? A key that is fixed when a job starts to wait, so that ageing never has to touch a row.

`priority + waiting` grows alike for everybody who waits, so the *order* of two jobs never changes while both wait.
Sorting by `start of waiting - priority * (what one point is worth)` gives that order once and for all, and an index
holds it. Smaller ranks go first; equal ranks go by sequence, first in, first out.

The SQL twin of `rank` is `rerank.sql` of each store; a property test keeps them equal.
"""

from typing import Literal, NamedTuple, assert_never

# Each kind holds something that no other does: tuples compare by what is in them, and empty ones would all be equal.


class Strict(NamedTuple):
    """No ageing: a lower priority waits as long as there is a higher one."""

    kind: Literal["off"] = "off"


class ByTime(NamedTuple):
    """Each `step_ms` since the job could first have run is worth one point."""

    step_ms: int


class ByEnqueues(NamedTuple):
    """Each later enqueue into the store is worth one point, except those that came while the job ran."""

    kind: Literal["enqueues"] = "enqueues"


Ageing = Strict | ByTime | ByEnqueues


class Standing(NamedTuple):
    """What of a job decides its place in the line."""

    priority: int
    seq: int
    eligible_ms: int  # max(created_at, first run_at): when it could first have run
    missed: int  # enqueues that came while it ran


def rank(ageing: Ageing, job: Standing) -> int:
    match ageing:
        case Strict():
            return -job.priority
        case ByTime(step_ms):
            return job.eligible_ms - job.priority * step_ms
        case ByEnqueues():
            return job.seq + job.missed - job.priority
        case unreachable:
            assert_never(unreachable)


def effective_priority(ageing: Ageing, job: Standing, *, now_ms: int, last_seq: int) -> int:
    """The priority with what waiting has earned so far, rounded down."""
    match ageing:
        case Strict():
            return job.priority
        case ByTime(step_ms):
            return job.priority + max(0, now_ms - job.eligible_ms) // step_ms
        case ByEnqueues():
            return job.priority + max(0, last_seq - job.seq - job.missed)
        case unreachable:
            assert_never(unreachable)
