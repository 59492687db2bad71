"""Run and wait times: histograms and percentiles."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from queuectl.jobs.stats import (
    BOUNDS,
    TimeBuckets,
)


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


@dataclass(frozen=True, slots=True)
class Histogram:
    """Cumulative counts per upper bound in seconds, the sum in seconds and the count."""

    buckets: tuple[tuple[float, int], ...]
    sum: float
    count: int

    @classmethod
    def of(cls, times: TimeBuckets) -> Histogram:
        cumulative = accumulate(times.counts)
        return cls(tuple(zip(BOUNDS, cumulative, strict=False)), times.total_ms / 1000, times.jobs)


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
