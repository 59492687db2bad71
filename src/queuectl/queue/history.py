"""What happened over time, as every surface tells it."""

from __future__ import annotations

from typing import Any, Final

from queuectl.job.buckets import Times, percentile_ms
from queuectl.job.model import from_ms, iso
from queuectl.job.points import Point

_PARTS: Final = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))


def point_to_dict(point: Point) -> dict[str, Any]:
    """Times are of the jobs that were completed in it; percentiles are read from buckets, as those of a histogram are."""
    return {
        "at": iso(from_ms(point.at_ms)),
        "covers_ms": point.covers_ms,
        **point.counts._asdict(),
        "waiting": point.waiting,
        "running": point.running,
        "oldest_waiting_ms": point.oldest_ms,
        "duration_ms": _spread(point.run),
        "wait_ms": _spread(point.wait),
    }


def _spread(times: Times) -> dict[str, float | None]:
    average = times.total_ms / times.jobs if times.jobs else None
    return {"count": times.jobs, "avg": average, **{name: percentile_ms(times, part) for name, part in _PARTS}}
