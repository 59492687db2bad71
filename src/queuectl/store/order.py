"""In which order jobs are listed: the same words in every dialect."""

from __future__ import annotations

from typing import Final

from queuectl.store.protocol import Sort

_KEYS: Final = {
    Sort.CREATED: "seq",
    Sort.PRIORITY: "priority",
    Sort.STATE: "state",
    Sort.QUEUE: "queue",
    Sort.RUN_AT: "run_at",
    Sort.FINISHED: "finished_at",
    Sort.DURATION: "duration_ms",
}


def order_by(sort: Sort, *, descending: bool) -> str:
    """By the key, what has none last, and ties in the order of enqueue, the newest first."""
    if sort is Sort.CREATED:
        return f" order by seq {'desc' if descending else 'asc'}"
    key = _KEYS[sort]
    return f" order by {key} is null, {key} {'desc' if descending else 'asc'}, seq desc"
