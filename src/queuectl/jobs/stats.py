"""Statistics: histograms of run and wait times, and the time series behind the charts."""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce
from itertools import accumulate
from typing import Any, Final, NamedTuple

from queuectl.jobs.states import State
from queuectl.text import WEBHOOK_QUEUE
from queuectl.units import from_ms, iso

# Upper bounds in seconds. A change also needs the statements `measured` and `count_out`, and a migration: counts stay in their buckets.
BOUNDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14_400, 86_400)
BOUNDS_MS: Final = tuple(round(bound * 1000) for bound in BOUNDS)


class TimeBuckets(NamedTuple):
    """A histogram: the count in each bucket (the last one is beyond all bounds), the sum, and the longest time.

    The longest is None if it is unknown: the totals of all time are stored without it.
    """

    counts: tuple[int, ...] = (0,) * (len(BOUNDS) + 1)
    total_ms: int = 0
    longest_ms: int | None = None

    @property
    def jobs(self) -> int:
        return sum(self.counts)

    @property
    def cumulative(self) -> list[tuple[float, int]]:
        """The number of jobs up to each upper bound in seconds."""
        return list(zip(BOUNDS, accumulate(self.counts), strict=False))


def bucket_of(ms: int) -> int:
    return bisect_left(BOUNDS_MS, ms)


def build_histogram(buckets: Iterable[tuple[int, ...]]) -> TimeBuckets:
    """From tuples of bucket, count, sum and, if it is known, the longest time; a bucket may occur several times."""
    counts, total, known = [0] * (len(BOUNDS) + 1), 0, list[int]()
    for bucket, jobs, ms, *longest in buckets:
        counts[bucket] += jobs
        total += ms
        known += longest
    return TimeBuckets(tuple(counts), total, max(known, default=None))


def add_histograms(one: TimeBuckets, other: TimeBuckets) -> TimeBuckets:
    counts = tuple(a + b for a, b in zip(one.counts, other.counts, strict=True))
    known = [longest for longest in (one.longest_ms, other.longest_ms) if longest is not None]
    return TimeBuckets(counts, one.total_ms + other.total_ms, max(known, default=None))


def percentile_ms(times: TimeBuckets, part: float) -> float | None:
    """The percentile (`part` is 0.95 for p95), interpolated within its bucket. None if the histogram is empty.

    A bucket ends at the longest time. If that is unknown, the percentile beyond the last bound is that bound.
    """
    if not times.jobs:
        return None
    wanted = part * times.jobs
    reached = list(accumulate(times.counts))
    bucket = next(place for place, so_far in enumerate(reached) if so_far >= wanted and so_far > 0)
    lower = BOUNDS_MS[bucket - 1] if bucket else 0
    ends = [*BOUNDS_MS[bucket : bucket + 1], *([] if times.longest_ms is None else [times.longest_ms])]
    upper = max(lower, min(ends, default=lower))
    into = wanted - (reached[bucket] - times.counts[bucket])
    return lower + (upper - lower) * into / times.counts[bucket]


def pack_histogram(times: TimeBuckets) -> str:
    """The stored form: the sum, the longest time, then the counts without trailing zeros."""
    counts = list(times.counts)
    while counts and not counts[-1]:
        counts.pop()
    return json.dumps([times.total_ms, times.longest_ms, *counts], separators=(",", ":")) if counts else "[]"


def unpack_histogram(text: str) -> TimeBuckets:
    total, longest, *counts = json.loads(text) or [0, None]
    return TimeBuckets(tuple(counts) + (0,) * (len(BOUNDS) + 1 - len(counts)), total, longest)


_PERCENTILES: Final = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))

# Not valid as names of queues.
ALL_QUEUES: Final = ""  # except that of webhook deliveries
OTHER_QUEUES: Final = "*"  # all but the busiest
MAX_NAMED_QUEUES: Final = 50  # stored by name, for each minute and hour


class Span(StrEnum):
    """The resolution of a point, and how long points are kept."""

    MINUTE = "minute"
    HOUR = "hour"

    @property
    def ms(self) -> int:
        return 60_000 if self is Span.MINUTE else 3_600_000

    @property
    def kept_ms(self) -> int:
        return 24 * 3_600_000 if self is Span.MINUTE else 90 * 24 * 3_600_000

    def begin(self, now_ms: int) -> int:
        """The start of the minute or hour of this time."""
        return now_ms - now_ms % self.ms


class Counts(NamedTuple):
    """The number of events of each kind."""

    enqueued: int = 0
    started: int = 0
    completed: int = 0
    failed: int = 0
    dead: int = 0
    retried: int = 0
    rescued: int = 0


class Point(NamedTuple):
    """The events in the `covers_ms` before a sample, which was taken in the minute or hour that starts at `at_ms`.

    `covers_ms` is more than a minute if no worker took samples before. The gauges of an hour are the maxima of its minutes.
    """

    at_ms: int
    queue: str
    covers_ms: int
    counts: Counts
    waiting: int = 0
    running: int = 0
    oldest_ms: int | None = None  # waiting time of the oldest due job
    run: TimeBuckets = TimeBuckets()  # of the completed jobs
    wait: TimeBuckets = TimeBuckets()

    @property
    def is_quiet(self) -> bool:
        return not any(self.counts) and not self.waiting and not self.running

    def to_dict(self) -> dict[str, Any]:
        """Times are of the completed jobs; percentiles are interpolated from a histogram."""
        return {
            "at": iso(from_ms(self.at_ms)),
            "covers_ms": self.covers_ms,
            **self.counts._asdict(),
            "waiting": self.waiting,
            "running": self.running,
            "oldest_waiting_ms": self.oldest_ms,
            "duration_ms": _summarize(self.run),
            "wait_ms": _summarize(self.wait),
        }


def _summarize(times: TimeBuckets) -> dict[str, float | None]:
    average = times.total_ms / times.jobs if times.jobs else None
    return {"count": times.jobs, "avg": average, **{name: percentile_ms(times, part) for name, part in _PERCENTILES}}


class Snapshot(NamedTuple):
    """The input of a point, by queue. `totals`, `then`: cumulative counts, now and at the last sample."""

    now_ms: int
    last_ms: int
    totals: Mapping[str, Counts]
    then: Mapping[str, Counts]
    tally: Mapping[str, Mapping[State, int]]
    oldest_ms: Mapping[str, int]
    times: Mapping[str, tuple[TimeBuckets, TimeBuckets]]


def is_due(last_ms: int | None, now_ms: int) -> bool:
    """Whether there is no sample of this minute. A clock that was set back makes it another minute, too."""
    return last_ms is None or Span.MINUTE.begin(last_ms) != Span.MINUTE.begin(now_ms)


def build_points(snapshot: Snapshot) -> list[Point]:
    """One point for all queues, one for each of the busiest queues, and one for the other active queues, if there are any."""
    active = [
        point
        for queue in sorted({*snapshot.totals, *snapshot.tally})
        if not (point := _point(snapshot, queue)).is_quiet
    ]
    active.sort(key=lambda point: (sum(point.counts), point.waiting + point.running), reverse=True)
    nothing = Point(
        Span.MINUTE.begin(snapshot.now_ms), ALL_QUEUES, max(0, snapshot.now_ms - snapshot.last_ms), Counts()
    )
    together = reduce(_add_queues, (point for point in active if point.queue != WEBHOOK_QUEUE), nothing)
    named, rest = active[:MAX_NAMED_QUEUES], active[MAX_NAMED_QUEUES:]
    others = [reduce(_add_queues, rest, nothing)._replace(queue=OTHER_QUEUES)] if rest else []
    return [together, *named, *others]


def merge_points(existing: Iterable[Point], new: Iterable[Point], span: Span) -> list[Point]:
    """Merge new points into the `existing` ones of a minute or hour; returns those that are new or changed.

    Queues beyond MAX_NAMED_QUEUES are merged into OTHER_QUEUES.
    """
    known = {point.queue: point for point in existing}
    names = sum(queue not in (ALL_QUEUES, OTHER_QUEUES) for queue in known)
    coming: dict[str, Point] = {}
    for point in new:
        queue = point.queue
        if queue not in known and queue not in (ALL_QUEUES, OTHER_QUEUES):
            queue = OTHER_QUEUES if names >= MAX_NAMED_QUEUES else queue
            names += 1
        here = point._replace(at_ms=span.begin(point.at_ms), queue=queue)
        coming[queue] = _add_queues(coming[queue], here) if queue in coming else here
    return [_add_periods(known[queue], point) if queue in known else point for queue, point in coming.items()]


def _point(snapshot: Snapshot, queue: str) -> Point:
    now, then = snapshot.totals.get(queue, Counts()), snapshot.then.get(queue, Counts())
    states = snapshot.tally.get(queue, {})
    run, wait = snapshot.times.get(queue, (TimeBuckets(), TimeBuckets()))
    return Point(
        Span.MINUTE.begin(snapshot.now_ms),
        queue,
        max(0, snapshot.now_ms - snapshot.last_ms),
        Counts(*(a - b for a, b in zip(now, then, strict=True))),
        sum(states.get(state, 0) for state in (State.PENDING, State.FAILED)),
        states.get(State.PROCESSING, 0),
        snapshot.oldest_ms.get(queue),
        run,
        wait,
    )


def _add_queues(one: Point, other: Point) -> Point:
    """Two points of the same time."""
    return _sum(one, other)._replace(
        covers_ms=one.covers_ms, waiting=one.waiting + other.waiting, running=one.running + other.running
    )


def _add_periods(one: Point, other: Point) -> Point:
    """Two points of the same queue, one after the other."""
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
        run=add_histograms(one.run, other.run),
        wait=add_histograms(one.wait, other.wait),
    )


# ── distributions ───────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Spread:
    """A distribution in milliseconds; all None when count is 0."""

    count: int
    avg: float | None
    min: int | None
    max: int | None
    p50: int | None
    p95: int | None
    p99: int | None


class Throughput(NamedTuple):
    minute: int
    hour: int
    day: int


def spread(counts: Iterable[tuple[int, int]]) -> Spread:
    """From pairs of a value and its frequency: one scan of the jobs gives all percentiles."""
    merged: dict[int, int] = {}
    for value, times in counts:
        merged[value] = merged.get(value, 0) + times
    ordered = sorted(merged.items())
    total = sum(merged.values())
    if not total:
        return Spread(0, None, None, None, None, None, None)
    average = sum(value * times for value, times in ordered) / total
    return Spread(
        count=total,
        avg=round(average, 3),
        min=ordered[0][0],
        max=ordered[-1][0],
        p50=_percentile(ordered, total, 0.50),
        p95=_percentile(ordered, total, 0.95),
        p99=_percentile(ordered, total, 0.99),
    )


def _percentile(ordered: Sequence[tuple[int, int]], total: int, part: float) -> int:
    """The smallest value that at least this part of all values does not exceed (nearest rank)."""
    needed = math.ceil(part * total)
    seen = accumulate(times for _, times in ordered)
    return next(value for (value, _), up_to in zip(ordered, seen, strict=True) if up_to >= needed)
