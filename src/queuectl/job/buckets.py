"""Times in buckets: how many took up to how long, and what can be said of all of them by that."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate
from typing import Final, NamedTuple

# In seconds, from the fastest command to a day. Others? Also: measured.sql of each store, count_out.sql of PostgreSQL's, and a migration: what
# has been counted stays in the buckets that it is in.
BOUNDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14_400, 86_400)
BOUNDS_MS: Final = tuple(round(bound * 1000) for bound in BOUNDS)


class Times(NamedTuple):
    """How many are in each bucket (up to its bound; those in the last one are beyond all), and how long all of them took."""

    counts: tuple[int, ...] = (0,) * (len(BOUNDS) + 1)
    total_ms: int = 0

    @property
    def jobs(self) -> int:
        return sum(self.counts)


def bucket_of(ms: int) -> int:
    return bisect_left(BOUNDS_MS, ms)


def times_of(buckets: Iterable[tuple[int, int, int]]) -> Times:
    """From a bucket, how many are in it, and how long they took: each bucket any number of times."""
    counts, total = [0] * (len(BOUNDS) + 1), 0
    for bucket, jobs, ms in buckets:
        counts[bucket] += jobs
        total += ms
    return Times(tuple(counts), total)


def add(one: Times, other: Times) -> Times:
    counts = tuple(a + b for a, b in zip(one.counts, other.counts, strict=True))
    return Times(counts, one.total_ms + other.total_ms)


def percentile_ms(times: Times, part: float) -> float | None:
    """What this part of all (0.95) did not exceed, as if those of a bucket were spread evenly over it. None if there are none.

    Of those beyond the last bound nothing more is known: then it is that bound.
    """
    if not times.jobs:
        return None
    wanted = part * times.jobs
    reached = list(accumulate(times.counts))
    bucket = next(place for place, so_far in enumerate(reached) if so_far >= wanted and so_far > 0)
    if bucket == len(BOUNDS_MS):
        return float(BOUNDS_MS[-1])
    lower = BOUNDS_MS[bucket - 1] if bucket else 0
    into = wanted - (reached[bucket] - times.counts[bucket])
    return lower + (BOUNDS_MS[bucket] - lower) * into / times.counts[bucket]


def pack(times: Times) -> str:
    """As a text for the store: the sum, then the counts as far as there are any."""
    counts = list(times.counts)
    while counts and not counts[-1]:
        counts.pop()
    return json.dumps([times.total_ms, *counts], separators=(",", ":")) if counts else "[]"


def unpack(text: str) -> Times:
    total, *counts = json.loads(text) or [0]
    return Times(tuple(counts) + (0,) * (len(BOUNDS) + 1 - len(counts)), total)
