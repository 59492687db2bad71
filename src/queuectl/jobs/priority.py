"""Priority and ageing: the rank that orders the waiting jobs of a queue.

The rank is fixed when a job starts to wait, so that ageing never has to update a row. `priority + waiting time` grows equally for
all waiting jobs, so the *order* of two jobs does not change while both wait. Sorting by `start of waiting - priority * (value of a
point)` gives that order, and an index holds it. Smaller ranks run first; equal ranks run in the order of enqueue.

The SQL version of `rank` is the statement `rerank` of each dialect; a property test keeps both equal.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, assert_never

from queuectl.errors import InvalidInput
from queuectl.units import format_duration, parse_duration_ms

# Each class has a field of its own: tuples compare by content, and empty ones would all be equal.


class Strict(NamedTuple):
    """No ageing: a job waits as long as there is one with a higher priority."""

    kind: Literal["off"] = "off"


class ByTime(NamedTuple):
    """Each `step_ms` since the job was first eligible adds one point."""

    step_ms: int


class ByEnqueues(NamedTuple):
    """Each later enqueue adds one point, except those while the job ran."""

    kind: Literal["enqueues"] = "enqueues"


Ageing = Strict | ByTime | ByEnqueues


class Standing(NamedTuple):
    """The fields of a job that determine its rank."""

    priority: int
    seq: int
    eligible_ms: int  # max(created_at, first run_at)
    missed: int  # enqueues while it ran


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
    """The priority plus the points for waiting, rounded down."""
    match ageing:
        case Strict():
            return job.priority
        case ByTime(step_ms):
            return job.priority + max(0, now_ms - job.eligible_ms) // step_ms
        case ByEnqueues():
            return job.priority + max(0, last_seq - job.seq - job.missed)
        case unreachable:
            assert_never(unreachable)


AGEING_HINT: Final = "off, enqueues, or the time that is worth one point of priority, like 10m"


def parse_ageing(text: str, *, subject: str) -> Ageing:
    word = text.strip().lower()
    if word == "off":
        return Strict()
    if word == "enqueues":
        return ByEnqueues()
    try:
        step_ms = parse_duration_ms(word, subject=subject)
    except InvalidInput as error:
        raise InvalidInput(subject, error.problem, hint=AGEING_HINT) from error
    if step_ms == 0:
        raise InvalidInput(subject, "the time that is worth one point cannot be 0", hint=AGEING_HINT)
    return ByTime(step_ms)


def format_ageing(ageing: Ageing) -> str:
    match ageing:
        case Strict():
            return "off"
        case ByTime(step_ms):
            return format_duration(step_ms)
        case ByEnqueues():
            return "enqueues"
        case unreachable:
            assert_never(unreachable)
