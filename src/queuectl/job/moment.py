"""Moments as people write them: ISO 8601, with or without separators, minutes, seconds, fraction and zone."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final

from queuectl.errors import InvalidInput
from queuectl.job.shown import shown

HINT: Final = "a time like 2026-11-15T20:30:00Z, 2026-11-15 20:30+02:00, or local: 2026-11-15 20:30, 2026-11-15"

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ZONE: Final = r" ?(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?"
_EXTENDED: Final = (
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[T ]([0-9]{2})(?::([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]{1,9}))?)?)?" + _ZONE + ")?"
)
_BASIC: Final = (
    r"([0-9]{4})([0-9]{2})([0-9]{2})"
    r"(?:T([0-9]{2})(?:([0-9]{2})(?:([0-9]{2})(?:[.,]([0-9]{1,9}))?)?)?" + _ZONE + ")?"
)


def parse_moment_ms(value: object, *, subject: str, local: tzinfo | None) -> int:
    """Milliseconds since 1970 UTC of a text or a datetime; InvalidInput, which names `subject`, for everything else.

    Without a zone it is a time of `local`, or of this machine if that is None. A time that the clocks skip is taken as if
    they had not been put forward; of a time that comes twice, the first is meant. What lies before 1970, such as the year 1 that
    some languages write for "no time", has passed as much as 1970 has, and counts as its beginning.
    """
    moment = value if isinstance(value, datetime) else _read(value, subject)
    if moment.tzinfo is None and local is not None:
        moment = moment.replace(tzinfo=local)
    if moment.year < _EPOCH.year:
        return 0
    try:
        # An aware datetime of the year 9999 may lie in the year 10000 of UTC, which does not exist.
        exact = moment.astimezone(UTC)
    except (OverflowError, ValueError, OSError) as error:
        raise InvalidInput(subject, f"not after the year 9999: {shown(value)}", hint=HINT) from error
    return max(0, (exact - _EPOCH) // timedelta(milliseconds=1))


def _read(value: object, subject: str) -> datetime:
    if not isinstance(value, str):
        raise InvalidInput(subject, f"expected a time, got {shown(value)}", hint=HINT)
    text = value.strip()
    found = re.fullmatch(_EXTENDED, text, re.IGNORECASE) or re.fullmatch(_BASIC, text, re.IGNORECASE)
    if not found:
        raise InvalidInput(subject, f"not a time: {shown(value)}", hint=HINT)
    year, month, day, hour, minute, second, fraction, zone = found.groups(default="0")
    try:
        return datetime(
            int(year),
            int(month),
            int(day),
            int(hour),
            int(minute),
            int(second),
            int(fraction.ljust(6, "0")[:6]),
            _zone(zone),
        )
    except ValueError as error:
        raise InvalidInput(subject, f"there is no such time: {shown(value)} ({error})", hint=HINT) from error


def _zone(text: str) -> tzinfo | None:
    if text == "0":
        return None
    if text in {"Z", "z"}:
        return UTC
    digits = text[1:].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if minutes > 59:
        raise ValueError("zone minutes must be in 0..59")
    offset = timedelta(hours=hours, minutes=minutes)
    return timezone(-offset if text[0] == "-" else offset)
