"""Sizes as people write them (`64KiB`, `1.5GiB`, `10MB`, `1000`), kept in bytes."""

from __future__ import annotations

import re
from typing import Final

from queuectl.errors import InvalidInput
from queuectl.job.shown import shown

LARGEST: Final = 2**50

HINT: Final = "a number of bytes or a size like 64KiB, 1.5GiB, 10MB; at most 1024TiB"

_BINARY: Final = (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))
_DECIMAL: Final = (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3))
# A bare letter is binary, as `ls -h`, `du -h` and `dd` have it.
_UNITS: Final = {
    "": 1,
    "b": 1,
    **{name.lower(): size for name, size in _BINARY + _DECIMAL},
    **{name[0].lower(): size for name, size in _BINARY},
}


def parse_size(value: object, *, subject: str) -> int:
    """Whole bytes of a number or of a text; InvalidInput, which names `subject`, for everything else."""
    if isinstance(value, str):
        found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?i?b?)", value.strip().lower())
        if not found or found[2] not in _UNITS:
            raise InvalidInput(subject, f"not a size: {shown(value)}", hint=HINT)
        size = float(found[1]) * _UNITS[found[2]]
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        size = value
    else:
        raise InvalidInput(subject, f"expected a size, got {shown(value)}", hint=HINT)
    if not 0 <= size <= LARGEST:
        raise InvalidInput(subject, f"a size from 0 to 1024TiB, not {shown(value)}", hint=HINT)
    return round(size)


def short_size(size: int) -> str:
    """About how much, for people: three digits at most."""
    for name, unit in _BINARY:
        if size >= unit:
            return f"{size / unit:.1f}{name}" if size < 10 * unit else f"{size // unit}{name}"
    return f"{size}B"


def format_size(size: int) -> str:
    """The form in the largest unit that needs no fraction; `parse_size` reads it back as the same."""
    for name, unit in _BINARY + _DECIMAL:
        if size and size % unit == 0:
            return f"{size // unit}{name}"
    return str(size)
