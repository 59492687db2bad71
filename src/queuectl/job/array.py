"""The indices of an array of jobs: `1-100`, `1,3,7`, `0-90:10`; and how many of them run at a time: `1-100%4`."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from queuectl.errors import InvalidInput
from queuectl.job.shown import shown

VARIABLE: Final = "QUEUECTL_ARRAY_INDEX"  # what each job of an array finds its index in
MOST: Final = 1_000_000
HIGHEST: Final = 2**31 - 1
HINT: Final = "like 1-100, 1,3,7, 0-90:10 or 1-100%4"
KEY: Final = "array:"  # with what the key of an array with a limit begins

_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_PART: Final = re.compile(r"([0-9]+)(?:-([0-9]+)(?::([0-9]+))?)?")


class Indices(NamedTuple):
    indices: list[int]  # in the order given
    places: int | None  # at most so many at a time; None: any number


def parse_array(text: str, *, subject: str) -> Indices:
    """Raises InvalidInput."""
    wanted, percent, limit = text.partition("%")
    places = _places(limit.strip(), subject) if percent else None
    indices: list[int] = []
    for part in wanted.split(","):
        span = _span(part.strip(), subject)
        if len(indices) + len(span) > MOST:
            raise InvalidInput(subject, f"more than {MOST:,} jobs", hint="make several arrays of it")
        indices += span
    if len(set(indices)) < len(indices):
        raise InvalidInput(subject, f"an index is in it twice: {shown(text)}", hint=HINT)
    return Indices(indices, places)


def is_of_array(key: str | None) -> bool:
    return key is not None and key.startswith(KEY)


def _places(text: str, subject: str) -> int:
    if _NUMBER.fullmatch(text) is None or not 1 <= int(text) <= MOST:
        raise InvalidInput(subject, f"not a number of jobs from 1 to {MOST:,}: {shown('%' + text)}", hint=HINT)
    return int(text)


def _span(part: str, subject: str) -> range:
    if (match := _PART.fullmatch(part)) is None or len(part) > 32:
        raise InvalidInput(subject, f"not a range of indices: {shown(part)}", hint=HINT)
    first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
    if max(first, last) > HIGHEST:
        raise InvalidInput(subject, f"over {HIGHEST}: {shown(part)}", hint=HINT)
    if last < first or step < 1:
        raise InvalidInput(subject, f"goes nowhere: {shown(part)}", hint=HINT)
    return range(first, last + 1, step)
