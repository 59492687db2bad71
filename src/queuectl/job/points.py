"""What charts are drawn of: how much of each thing happened between two looks at the store, and how things stood then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import reduce
from typing import Final, NamedTuple

from queuectl.job.buckets import Times
from queuectl.job.buckets import add as add_times
from queuectl.job.lifecycle import State
from queuectl.job.names import WEBHOOKS

# Names that no queue can have.
ALL: Final = ""  # every queue but the one of the webhooks
OTHERS: Final = "*"  # those beyond the busiest
MOST_QUEUES: Final = 50  # that are kept by name, of any minute and of any hour


class Span(StrEnum):
    """How long a point is meant to be, and how long it is kept."""

    MINUTE = "minute"
    HOUR = "hour"

    @property
    def ms(self) -> int:
        return 60_000 if self is Span.MINUTE else 3_600_000

    @property
    def kept_ms(self) -> int:
        return 24 * 3_600_000 if self is Span.MINUTE else 90 * 24 * 3_600_000

    def begin(self, now_ms: int) -> int:
        """The beginning of the minute or hour of this moment."""
        return now_ms - now_ms % self.ms


class Counts(NamedTuple):
    """How often each of these happened."""

    enqueued: int = 0
    started: int = 0
    completed: int = 0
    failed: int = 0
    dead: int = 0
    retried: int = 0
    rescued: int = 0


class Point(NamedTuple):
    """What happened in the `covers_ms` before somebody looked, which was in the minute or hour that begins at `at_ms`.

    `covers_ms` is more than a minute if nobody was there to look before. Of an hour, how things stood is the most of its minutes.
    """

    at_ms: int
    queue: str
    covers_ms: int
    counts: Counts
    waiting: int = 0
    running: int = 0
    oldest_ms: int | None = None  # for how long the oldest that is due had waited
    run: Times = Times()  # of the jobs completed, as far as they were written down in time
    wait: Times = Times()

    @property
    def is_quiet(self) -> bool:
        return not any(self.counts) and not self.waiting and not self.running


class Look(NamedTuple):
    """All that there is to know for a point, each by queue. `totals`, `then`: what ever happened, by now and by the last look."""

    now_ms: int
    last_ms: int
    totals: Mapping[str, Counts]
    then: Mapping[str, Counts]
    tally: Mapping[str, Mapping[State, int]]
    oldest_ms: Mapping[str, int]
    times: Mapping[str, tuple[Times, Times]]


def is_due(last_ms: int | None, now_ms: int) -> bool:
    """Whether nobody has looked in this minute. A clock that was put back makes it another one, too."""
    return last_ms is None or Span.MINUTE.begin(last_ms) != Span.MINUTE.begin(now_ms)


def points(look: Look) -> list[Point]:
    """One for all but the calls, one for each of the busiest queues, and one for the others if there are any that did something."""
    seen = [point for queue in sorted({*look.totals, *look.tally}) if not (point := _point(look, queue)).is_quiet]
    seen.sort(key=lambda point: (sum(point.counts), point.waiting + point.running), reverse=True)
    nothing = Point(Span.MINUTE.begin(look.now_ms), ALL, max(0, look.now_ms - look.last_ms), Counts())
    together = reduce(_together, (point for point in seen if point.queue != WEBHOOKS), nothing)
    named, rest = seen[:MOST_QUEUES], seen[MOST_QUEUES:]
    others = [reduce(_together, rest, nothing)._replace(queue=OTHERS)] if rest else []
    return [together, *named, *others]


def merge(there: Iterable[Point], new: Iterable[Point], span: Span) -> list[Point]:
    """What becomes of the points of a minute or an hour when others come to them: those that are new or have changed.

    A queue that is one too many by name goes to the others.
    """
    known = {point.queue: point for point in there}
    names = sum(queue not in (ALL, OTHERS) for queue in known)
    coming: dict[str, Point] = {}
    for point in new:
        queue = point.queue
        if queue not in known and queue not in (ALL, OTHERS):
            queue = OTHERS if names >= MOST_QUEUES else queue
            names += 1
        here = point._replace(at_ms=span.begin(point.at_ms), queue=queue)
        coming[queue] = _together(coming[queue], here) if queue in coming else here
    return [_in_turn(known[queue], point) if queue in known else point for queue, point in coming.items()]


def _point(look: Look, queue: str) -> Point:
    now, then = look.totals.get(queue, Counts()), look.then.get(queue, Counts())
    states = look.tally.get(queue, {})
    run, wait = look.times.get(queue, (Times(), Times()))
    return Point(
        Span.MINUTE.begin(look.now_ms),
        queue,
        max(0, look.now_ms - look.last_ms),
        Counts(*(a - b for a, b in zip(now, then, strict=True))),
        sum(states.get(state, 0) for state in (State.PENDING, State.FAILED)),
        states.get(State.PROCESSING, 0),
        look.oldest_ms.get(queue),
        run,
        wait,
    )


def _together(one: Point, other: Point) -> Point:
    """Two of the same moment."""
    return _sum(one, other)._replace(
        covers_ms=one.covers_ms, waiting=one.waiting + other.waiting, running=one.running + other.running
    )


def _in_turn(one: Point, other: Point) -> Point:
    """Two of the same queue, one after the other."""
    return _sum(one, other)._replace(
        covers_ms=one.covers_ms + other.covers_ms,
        waiting=max(one.waiting, other.waiting),
        running=max(one.running, other.running),
    )


def _sum(one: Point, other: Point) -> Point:
    ages = [age for age in (one.oldest_ms, other.oldest_ms) if age is not None]
    return one._replace(
        counts=Counts(*(a + b for a, b in zip(one.counts, other.counts, strict=True))),
        oldest_ms=max(ages, default=None),
        run=add_times(one.run, other.run),
        wait=add_times(one.wait, other.wait),
    )
