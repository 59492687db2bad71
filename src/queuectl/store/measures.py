"""What a store can say in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from queuectl.job.buckets import BOUNDS, Times


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
    def of(cls, times: Times) -> Histogram:
        so_far = accumulate(times.counts)
        return cls(tuple(zip(BOUNDS, so_far, strict=False)), times.total_ms / 1000, times.jobs)
