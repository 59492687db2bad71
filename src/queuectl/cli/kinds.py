"""What export and import take along beside jobs, as people and programs are told of it."""

from __future__ import annotations

from typing import Final

# By the kind of the record: how programs call many of them.
KINDS: Final = {"queue": "queues", "schedule": "schedules", "alert": "alerts", "batch": "batches"}
_OF_BATCHES: Final = ("end of a batch", "ends of batches")  # not the batch itself, which is made of its jobs


def count_of(kind: str, count: int) -> str:
    one, many = _OF_BATCHES if kind == "batch" else (kind, KINDS[kind])
    return f"{count:,} {one if count == 1 else many}"
