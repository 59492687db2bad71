"""What Python programs hand over, in the words of JSON and of the store."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from queuectl.errors import InvalidInput, InvalidItem
from queuectl.job.shown import shown
from queuectl.queue.intake import Fields
from queuectl.store.protocol import Reads

Names = str | Iterable[str]


def resolve(reads: Reads, job_id: object) -> str:
    if not isinstance(job_id, str):
        hint = "the id of a job, the beginning of one, or 'last'"
        raise InvalidInput("job_id", f"expected a string, got {shown(job_id)}", hint=hint)
    return reads.resolve(job_id)


def fields_of(job: object, number: int) -> Fields:
    if not isinstance(job, Mapping):
        cause = InvalidInput(
            "job", f"expected a command or its fields, got {shown(job)}", hint='like {"command": "true"}'
        )
        raise InvalidItem(number, cause)
    return {name: plain(value) for name, value in job.items()}


def names(value: Names) -> Iterable[str]:
    return [value] if isinstance(value, str) else value


def plain(value: Any) -> Any:
    """What Python has its own types for, in the words of JSON."""
    match value:
        case timedelta():
            return value.total_seconds()
        case datetime():
            return value.isoformat()
        case os.PathLike():
            return os.fspath(value)
        case tuple() | set() | frozenset():
            return list(value)
        case _:
            return value
