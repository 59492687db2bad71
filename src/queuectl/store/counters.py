"""Counters, distributions, and the samples that charts are drawn from.

State changes write no samples. Once a minute, one of the workers compares the counters with those of the last sample, and adds the
times of the runs that ended since. It reads without locks; a version in the row of `sampling` lets one of several writers win.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from queuectl.jobs.outcome import Ending
from queuectl.jobs.states import State
from queuectl.jobs.stats import (
    ALL_QUEUES,
    Counts,
    Point,
    Snapshot,
    Span,
    TimeBuckets,
    bucket_of,
    build_histogram,
    build_points,
    is_due,
    merge_points,
    pack_histogram,
    unpack_histogram,
)
from queuectl.store.conflicts import retry_conflicts
from queuectl.store.transactions import OUTSIDE, Transactions
from queuectl.store.types import Row

# A run is settled some time after its end, by a worker that may have had to wait. The times of runs that are settled later than this
# are not counted: finding them would need a scan of all jobs that have ended.
LATE_MS: Final = 5000
EVER: Final = 2**63 - 1  # later than any time
BUCKET_COLUMNS: Final = 5  # of `measured`; the last one, the longest time, is only for samples
MAX_UNSAMPLED_TIMES: Final = 10_000  # jobs; their times are read one by one
SAMPLE_ATTEMPTS: Final = 3  # jobs may be pruned concurrently
_MAX_WINDOW_MS: Final = 3_600_000
_SPANS: Final = (Span.MINUTE, Span.HOUR)
_FAILED_ENDINGS: Final = {Ending.FAILED, Ending.TIMEOUT, Ending.SIGNALLED, Ending.UNSTARTABLE}


def tally_of(rows: Iterable[Row]) -> dict[str, dict[State, int]]:
    """From the columns of `tally`."""
    tally: dict[str, dict[State, int]] = {}
    for queue, state, jobs in rows:
        tally.setdefault(queue, dict.fromkeys(State, 0))[State(state)] = jobs
    return tally


def totals_of(moves: Iterable[Row]) -> dict[str, dict[str, int]]:
    """From the columns of `moves`."""
    totals: dict[str, dict[str, int]] = {}
    for queue, was, now, ending, jobs in moves:
        of = totals.setdefault(queue, dict.fromkeys(Counts._fields, 0))
        of["enqueued"] += jobs * (was == OUTSIDE)
        of["started"] += jobs * (now == State.PROCESSING)
        of["completed"] += jobs * (now == State.COMPLETED)
        of["dead"] += jobs * (now == State.DEAD)
        retried = (was, now) == (State.FAILED, State.PROCESSING) or (
            now == State.PENDING and was in (State.FAILED, State.DEAD, State.CANCELLED)
        )
        of["retried"] += jobs * retried
        of["failed"] += jobs * (ending in _FAILED_ENDINGS)
        of["rescued"] += jobs * (ending == Ending.LOST)
    return totals


def oldest_of(rows: Iterable[Row], *, now_ms: int) -> dict[str, int]:
    """The waiting time by queue, from the columns of `oldest_waiting`."""
    return {queue: max(0, now_ms - since) for queue, since in rows}


class Sampling(NamedTuple):
    """The time of the last sample, the end of the runs that are counted in `buckets`, and how many removals counted runs since."""

    last_ms: int | None
    until_ms: int
    removals: int

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Sampling:
        return cls(*rows[0]) if rows else cls(None, 0, 0)

    def since(self, now_ms: int) -> int:
        """Runs that ended after this are not in `buckets`."""
        # Far ahead: written by a wrong clock. A little ahead: the clock was set back since.
        return now_ms if self.until_ms > now_ms + _MAX_WINDOW_MS else self.until_ms

    def window(self, now_ms: int) -> tuple[int, int]:
        """Runs that ended after the first time and up to the second are to be counted now. A long past, of imported jobs or of a time
        without workers, is left out to bound the cost."""
        since = max(self.since(now_ms), now_ms - _MAX_WINDOW_MS)
        return since, max(since, now_ms - LATE_MS)


class SampleInput(NamedTuple):
    """The rows of the statements with these names, as of one moment."""

    moves: Sequence[Row]
    tally: Sequence[Row]
    oldest_waiting: Sequence[Row]
    counters: Sequence[Row]
    measured: Sequence[Row]
    first_created: Sequence[Row]
    minute: Sequence[Row]  # points_of
    hour: Sequence[Row]

    @property
    def completed(self) -> int:
        """The jobs that were completed since the last sample."""
        then = sum(Counts(*counts).completed for _, *counts in self.counters)
        return sum(counts["completed"] for counts in totals_of(self.moves).values()) - then


class Sample(NamedTuple):
    """The values of the statements with these names."""

    note_sample: dict[str, Any]
    add_to_bucket: list[Row]
    set_counters: list[Row]
    put_point: list[Row]
    thin_points: list[dict[str, Any]]


def snapshot_of(sampling: Sampling, answers: SampleInput, *, now_ms: int) -> Snapshot:
    first_ms = answers.first_created[0][0] if answers.first_created else now_ms
    return Snapshot(
        now_ms=now_ms,
        last_ms=first_ms if sampling.last_ms is None else sampling.last_ms,
        totals={queue: Counts(**counts) for queue, counts in totals_of(answers.moves).items()},
        then={queue: Counts(*counts) for queue, *counts in answers.counters},
        tally=tally_of(answers.tally),
        oldest_ms=oldest_of(answers.oldest_waiting, now_ms=now_ms),
        times=times_by_queue(answers.measured),
    )


def sampled(sampling: Sampling, answers: SampleInput, *, now_ms: int) -> Sample:
    snapshot = snapshot_of(sampling, answers, now_ms=now_ms)
    new = build_points(snapshot)
    _, until = sampling.window(now_ms)
    return Sample(
        note_sample={"at": now_ms, "until": until, "last": sampling.last_ms, "since": sampling.until_ms}
        | {"removals": sampling.removals},
        # In one order for all callers, so that they do not deadlock.
        add_to_bucket=sorted(row[:BUCKET_COLUMNS] for row in answers.measured),
        set_counters=[
            (queue, *counts) for queue, counts in sorted(snapshot.totals.items()) if snapshot.then.get(queue) != counts
        ],
        put_point=[
            _row(span, point)
            for span, there in zip(_SPANS, (answers.minute, answers.hour), strict=True)
            for point in merge_points(map(point_of, there), new, span)
        ],
        thin_points=[{"span": span.value, "before": now_ms - span.kept_ms} for span in _SPANS],
    )


def point_of(row: Row) -> Point:
    """From the columns of `points` and `points_of`."""
    at, queue, covers, *counts, waiting, running, oldest, run, wait = row
    return Point(
        at, queue, covers, Counts(*counts), waiting, running, oldest, unpack_histogram(run), unpack_histogram(wait)
    )


def _row(span: Span, point: Point) -> Row:
    gauges = (point.waiting, point.running, point.oldest_ms)
    return (
        span.value,
        point.queue,
        point.at_ms,
        point.covers_ms,
        *point.counts,
        *gauges,
        pack_histogram(point.run),
        pack_histogram(point.wait),
    )


def times_by_queue(buckets: Iterable[Row]) -> dict[str, tuple[TimeBuckets, TimeBuckets]]:
    """Run times and waiting times, from the columns of `buckets` or `measured`."""
    found: dict[str, dict[str, list[tuple[int, ...]]]] = {}
    for queue, what, *bucket in buckets:
        found.setdefault(queue, {"run": [], "wait": []})[what].append(tuple(bucket))
    return {queue: (build_histogram(of["run"]), build_histogram(of["wait"])) for queue, of in found.items()}


def bucket_rows(jobs: Iterable[tuple[str, int | None, int | None]]) -> list[Row]:
    """The values of `add_to_bucket`. `jobs`: queue, run time and waiting time, as far as they are known."""
    found: dict[tuple[str, str, int], tuple[int, int]] = {}
    for queue, ran_ms, waited_ms in jobs:
        for what, ms in (("run", ran_ms), ("wait", waited_ms)):
            if ms is not None:
                bucket = (queue, what, bucket_of(ms))
                count, total = found.get(bucket, (0, 0))
                found[bucket] = (count + 1, total + ms)
    return [(*bucket, *sums) for bucket, sums in found.items()]


class Samples:
    """The samples of a store, and the distributions of its run times."""

    def __init__(self, tx: Transactions) -> None:
        self._tx = tx

    def points(self, span: Span, *, since_ms: int, queue: str = ALL_QUEUES) -> list[Point]:
        """Samples of a queue (ALL: of all but webhook deliveries; OTHERS: of those beyond the busiest) for each minute or hour since
        then, oldest first. A time without a worker has none; the next sample says how long a time it covers."""
        values = {"span": span.value, "since": since_ms, "queue": queue}
        return [point_of(row) for row in self._tx.all("points", values)]

    def unsampled(self) -> list[Point]:
        """The points of the time since the last sample, as `record` would write them now: with those, charts agree with the counts
        of jobs. Of very many completed jobs, only the times of the latest ones are included."""
        with self._tx.snapshot():
            state, now = self._state(), self._tx.clock.now_ms()
            moves, tally, oldest, counters, first = self._tx.each(
                ("moves", ()), ("tally", ()), ("oldest_waiting", {"now": now}), ("counters", ()), ("first_created", ())
            )
            found = SampleInput(moves, tally, oldest, counters, (), first, (), ())
            if found.completed > 0:
                since, _ = state.window(now)
                since = max(since, now - (now - since) * MAX_UNSAMPLED_TIMES // found.completed)
                found = found._replace(measured=self._tx.all("measured", {"since": since, "until": now}))
        return build_points(snapshot_of(state, found, now_ms=now))

    def histograms(self) -> dict[str, tuple[TimeBuckets, TimeBuckets]]:
        """For each queue: run time and waiting time of all jobs ever completed, in the buckets of jobs/stats.py. They never
        decrease, and cost the same at any number of jobs. Runs that were settled too late are missing, see LATE_MS."""
        # As of one moment: else the times of a job that is removed meanwhile would be counted twice, or not at all.
        with self._tx.snapshot():
            since = self._state().since(self._tx.clock.now_ms())
            counted, measured = self._tx.each(("buckets", ()), ("measured", {"since": since, "until": EVER}))
        return times_by_queue(counted + [row[:BUCKET_COLUMNS] for row in measured])

    def record(self) -> bool:
        """Write samples for the time since the last ones, and remove those past their retention, in one transaction. False if it was
        done in this minute: of all callers, one writes."""
        for _ in range(SAMPLE_ATTEMPTS):
            state, now = self._state(), self._tx.clock.now_ms()
            if not is_due(state.last_ms, now):
                return False
            if self._sample(state, now):
                return True
        return False

    @retry_conflicts
    def _sample(self, state: Sampling, now: int) -> bool:
        since, until = state.window(now)
        found = self._tx.each(
            ("moves", ()),
            ("tally", ()),
            ("oldest_waiting", {"now": now}),
            ("counters", ()),
            ("measured", {"since": since, "until": until}),
            ("first_created", ()),
            *(("points_of", values) for values in ({"span": span.value, "at": span.begin(now)} for span in _SPANS)),
        )
        sample = sampled(state, SampleInput(*found), now_ms=now)
        with self._tx.write():
            if not self._tx.execute("note_sample", sample.note_sample):
                return False
            for name in ("add_to_bucket", "set_counters", "put_point", "thin_points"):
                self._tx.defer_each(name, getattr(sample, name))
        return True

    def _state(self) -> Sampling:
        return Sampling.of(self._tx.all("sampling"))
