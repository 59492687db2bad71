"""The seam for what charts are drawn of, and what of it is the same for every dialect.

Nothing is written for it when a job moves: once a minute one of all workers looks at what is counted anyway (see `moves`), and
at the times of the jobs completed since. What is read is read without a lock; the row of `sampling` lets one of those who have
seen the same write.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from queuectl.job.buckets import Times, bucket_of, pack, times_of, unpack
from queuectl.job.points import ALL, Counts, Look, Point, Span, merge, points
from queuectl.store.measures import Histogram
from queuectl.store.totals import oldest_of, tally_of, totals_of

Row = tuple[Any, ...]

# An end is written down some time after it came, by a worker that may have had to wait. What comes later than this is counted, but
# its times are not: they would have to be looked for among all that have ended.
LATE_MS: Final = 5000
EVER: Final = 2**63 - 1  # later than any moment
ATTEMPTS: Final = 3  # somebody may remove jobs at the same moment
_FAR_MS: Final = 3_600_000
_SPANS: Final = (Span.MINUTE, Span.HOUR)


class SampleReads(Protocol):
    def points(self, span: Span, *, since_ms: int, queue: str = ALL) -> list[Point]:
        """What happened in a queue (ALL: in all but that of the calls, OTHERS: in those beyond the busiest) in each minute or hour that began then or
        later, oldest first. There is none for a time when nobody looked; the one behind it says how long it covers."""
        ...


class Samples(SampleReads, Protocol):
    def sample(self) -> bool:
        """Write down what has happened since the last time, and remove what is older than it is kept, in one transaction. False
        if somebody has in this minute: of all that call, one writes."""
        ...


class Sampling(NamedTuple):
    """When somebody last looked, up to which end of a job its times are counted, and how often those of others were since."""

    last_ms: int | None
    until_ms: int
    removals: int

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Sampling:
        return cls(*rows[0]) if rows else cls(None, 0, 0)

    def since(self, now_ms: int) -> int:
        """After which end the times of jobs are not in `buckets`."""
        # Far ahead it is by a clock that was wrong; a little, by one that was put back since.
        return now_ms if self.until_ms > now_ms + _FAR_MS else self.until_ms

    def window(self, now_ms: int) -> tuple[int, int]:
        """After which end, and up to which, the times of jobs are to be counted now. Not those of a long past, which somebody has
        imported, or when nobody could look: a worker has other things to do."""
        since = max(self.since(now_ms), now_ms - _FAR_MS)
        return since, max(since, now_ms - LATE_MS)


class Answers(NamedTuple):
    """What a store says at one moment: the rows of the statements of these names."""

    moves: Sequence[Row]
    tally: Sequence[Row]
    oldest_waiting: Sequence[Row]
    counters: Sequence[Row]
    measured: Sequence[Row]
    first_created: Sequence[Row]
    minute: Sequence[Row]  # points_of
    hour: Sequence[Row]


class Sample(NamedTuple):
    """What is to be written: the values of the statements of these names."""

    note_sample: dict[str, Any]
    add_to_bucket: list[Row]
    set_counters: list[Row]
    put_point: list[Row]
    thin_points: list[dict[str, Any]]


def sampled(sampling: Sampling, answers: Answers, *, now_ms: int) -> Sample:
    totals = {queue: Counts(**counts) for queue, counts in totals_of(answers.moves).items()}
    then = {queue: Counts(*counts) for queue, *counts in answers.counters}
    first_ms = answers.first_created[0][0] if answers.first_created else now_ms
    look = Look(
        now_ms=now_ms,
        last_ms=first_ms if sampling.last_ms is None else sampling.last_ms,
        totals=totals,
        then=then,
        tally=tally_of(answers.tally),
        oldest_ms=oldest_of(answers.oldest_waiting, now_ms=now_ms),
        times=times_by_queue(answers.measured),
    )
    new = points(look)
    _, until = sampling.window(now_ms)
    return Sample(
        note_sample={"at": now_ms, "until": until, "last": sampling.last_ms, "since": sampling.until_ms}
        | {"removals": sampling.removals},
        # In one order for all: two who add to the same do not wait for each other.
        add_to_bucket=sorted(answers.measured),
        set_counters=[(queue, *counts) for queue, counts in sorted(totals.items()) if then.get(queue) != counts],
        put_point=[
            _row(span, point)
            for span, there in zip(_SPANS, (answers.minute, answers.hour), strict=True)
            for point in merge(map(point_of, there), new, span)
        ],
        thin_points=[{"span": span.value, "before": now_ms - span.kept_ms} for span in _SPANS],
    )


def points_asked(now_ms: int) -> list[dict[str, Any]]:
    """The values of `points_of`, for this minute and this hour."""
    return [{"span": span.value, "at": span.begin(now_ms)} for span in _SPANS]


def point_of(row: Row) -> Point:
    """From the columns of `points` and `points_of`."""
    at, queue, covers, *counts, waiting, running, oldest, run, wait = row
    return Point(at, queue, covers, Counts(*counts), waiting, running, oldest, unpack(run), unpack(wait))


def _row(span: Span, point: Point) -> Row:
    gauges = (point.waiting, point.running, point.oldest_ms)
    return (
        span.value,
        point.queue,
        point.at_ms,
        point.covers_ms,
        *point.counts,
        *gauges,
        pack(point.run),
        pack(point.wait),
    )


def times_by_queue(buckets: Iterable[Row]) -> dict[str, tuple[Times, Times]]:
    """Run and waiting times, from the columns of `buckets` and `measured`."""
    found: dict[str, dict[str, list[tuple[int, int, int]]]] = {}
    for queue, what, bucket, jobs, ms in buckets:
        found.setdefault(queue, {"run": [], "wait": []})[what].append((bucket, jobs, ms))
    return {queue: (times_of(of["run"]), times_of(of["wait"])) for queue, of in found.items()}


def bucket_rows(jobs: Iterable[tuple[str, int | None, int | None]]) -> list[Row]:
    """The values of `add_to_bucket` for some jobs: the queue of each, and how long it ran and waited, where that is known."""
    found: dict[tuple[str, str, int], tuple[int, int]] = {}
    for queue, ran_ms, waited_ms in jobs:
        for what, ms in (("run", ran_ms), ("wait", waited_ms)):
            if ms is not None:
                bucket = (queue, what, bucket_of(ms))
                count, total = found.get(bucket, (0, 0))
                found[bucket] = (count + 1, total + ms)
    return [(*bucket, *sums) for bucket, sums in found.items()]


def histograms_of(buckets: Iterable[Row]) -> dict[str, tuple[Histogram, Histogram]]:
    return {queue: (Histogram.of(run), Histogram.of(wait)) for queue, (run, wait) in times_by_queue(buckets).items()}
