"""The indices of an array of jobs: `1-100`, `1,3,7`, `0-90:10`."""

from __future__ import annotations

import re
from typing import Final

from queuectl.errors import InvalidInput

VARIABLE: Final = "QUEUECTL_ARRAY_INDEX"  # what each job of an array finds its index in
MOST: Final = 1_000_000
HIGHEST: Final = 2**31 - 1
HINT: Final = "like 1-100, 1,3,7 or 0-90:10"

_PART: Final = re.compile(r"([0-9]+)(?:-([0-9]+)(?::([0-9]+))?)?")


def parse_array(text: str, *, subject: str) -> list[int]:
    """The indices, in the order given. Raises InvalidInput."""
    wanted, percent, limit = text.partition("%")
    if percent:
        raise InvalidInput(
            subject,
            f"%{limit}: how many of an array run at a time is for its queue to say",
            hint="leave it away and give the array a key: queuectl queue set QUEUE --per-key N, then --queue QUEUE --key NAME",
        )
    indices: list[int] = []
    for part in wanted.split(","):
        span = _span(part.strip(), subject)
        if len(indices) + len(span) > MOST:
            raise InvalidInput(subject, f"more than {MOST:,} jobs", hint="make several arrays of it")
        indices += span
    if len(set(indices)) < len(indices):
        raise InvalidInput(subject, f"an index is in it twice: {text}", hint=HINT)
    return indices


def _span(part: str, subject: str) -> range:
    if (match := _PART.fullmatch(part)) is None or len(part) > 32:
        raise InvalidInput(subject, f"not a range of indices: {part[:32]!r}", hint=HINT)
    first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
    if max(first, last) > HIGHEST:
        raise InvalidInput(subject, f"over {HIGHEST}: {part}", hint=HINT)
    if last < first or step < 1:
        raise InvalidInput(subject, f"goes nowhere: {part}", hint=HINT)
    return range(first, last + 1, step)
