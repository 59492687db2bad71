"""Percentiles from (value, how often) pairs: one scan of the jobs gives them all."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import accumulate

from queuectl.store.protocol import Spread


def spread(counts: Iterable[tuple[int, int]]) -> Spread:
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
    return next(value for (value, _), so_far in zip(ordered, seen, strict=True) if so_far >= needed)
