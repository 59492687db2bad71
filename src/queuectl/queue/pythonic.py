"""What Python programs hand over, in the words of JSON and of the store."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from queuectl.errors import InvalidInput, InvalidItem
from queuectl.job.model import Job
from queuectl.job.shown import shown
from queuectl.queue.intake import Fields as Fields
from queuectl.store.protocol import Reads

Names = str | Iterable[str]

# Argument -> how the jobs that it names have to end.
AFTER: Final = {"after": "completed", "after_any": "ended", "after_fail": "failed"}


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
    return plain_fields(job)


def plain_fields(fields: Mapping[str, Any]) -> Fields:
    return {name: plain(value) for name, value in parents(fields).items()}


def parents(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """With `after`, `after_any` and `after_fail`, which Python has as arguments, as the one field that JSON has."""
    given = {name: fields[name] for name in AFTER if fields.get(name) is not None}
    if not given.keys() - {"after"}:
        return fields
    for name, value in given.items():
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise InvalidInput(name, f"expected a list of ids or jobs, got {shown(value)}", hint=f"like {name}=[build]")
    if fields.get("depends_on") is not None:
        raise InvalidInput("depends_on", f"not together with {', '.join(given)}", hint="say all of it in depends_on")
    wanted = [_dependency(one, AFTER[name]) for name, ones in given.items() for one in ones]
    return {**{name: value for name, value in fields.items() if name not in AFTER}, "depends_on": wanted}


def _dependency(one: object, when: str) -> object:
    one = plain(one)
    return {"id": one, "when": when} if isinstance(one, str) else one


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
        case Job():
            return value.id
        case list() | tuple() | set() | frozenset():
            return [plain(item) for item in value]
        case _:
            return value
