"""What a run may use, as the forms of the pages have it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from queuectl.job.newjob import PackedLimits
from queuectl.job.resources import LIMITS

_EXAMPLES: Final = {
    "memory": "2GiB",
    "cpu_time": "30s",
    "nice": "-20 to 19",
    "open_files": "256",
    "processes": "64",
    "file_size": "1GiB",
}


class Field(NamedTuple):
    name: str
    label: str
    example: str


FIELDS: Final = tuple(Field(name, limit.words.capitalize(), _EXAMPLES[name]) for name, limit in LIMITS.items())


def typed(limits: PackedLimits | None) -> Mapping[str, str | None]:
    """As one would type each of them, so that it is read back as the same; None where there is no limit."""
    given = limits or {}
    return {name: limit.text(given[name]) if name in given else None for name, limit in LIMITS.items()}
