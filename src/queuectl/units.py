"""Durations, sizes, times and index ranges: parse user input, and format values."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from enum import Enum
from typing import Any, Final, NamedTuple

from queuectl.errors import InvalidInput
from queuectl.text import short_repr

SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
MAX_DURATION_MS: Final = 36_525 * DAY_MS  # 100 years

DURATION_HINT: Final = "for example, 90 (seconds), 500ms, 1.5h, 1h30m, 2d or 1w; at most 100 years"

_DURATION_UNITS: Final = {"ms": 1, "s": SECOND_MS, "m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS, "w": 7 * DAY_MS}
_NUMBER: Final = r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+)"
_PART: Final = _NUMBER + r"\s*(ms|[smhdw])\s*"


def parse_duration_ms(value: object, *, subject: str) -> int:
    """Parse a number of seconds, a text (`90`, `90s`, `1.5h`, `1h30m`) or a timedelta. Raises InvalidInput for `subject`.

    A positive duration is at least 1 ms: 0 means "none" for some settings.
    """
    if isinstance(value, str):
        ms = _parse_duration_text(value, subject)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        # Clamped first: an integer can be too large for a float. In this order NaN stays NaN.
        ms = max(min(value, MAX_DURATION_MS), -1) * 1000.0
    elif isinstance(value, timedelta):
        ms = value / timedelta(milliseconds=1)
    else:
        raise InvalidInput(subject, f"expected a duration, got {short_repr(value)}", hint=DURATION_HINT)
    if 0 < ms < 1:
        return 1
    if 0 <= ms <= MAX_DURATION_MS:
        return round(ms)
    if ms < 0:
        raise InvalidInput(subject, f"a duration cannot be negative: {short_repr(value)}", hint=DURATION_HINT)
    if ms > MAX_DURATION_MS:
        raise InvalidInput(subject, f"over 100 years: {short_repr(value)}", hint=DURATION_HINT)
    raise InvalidInput(subject, f"expected a duration, got {short_repr(value)}", hint=DURATION_HINT)


def _parse_duration_text(text: str, subject: str) -> float:
    wanted = text.strip().lower()
    # Patterns are compiled at first use (re caches them): most processes never parse a duration.
    if re.fullmatch(_NUMBER, wanted):
        return float(wanted) * 1000
    if re.fullmatch(f"(?:{_PART})+", wanted):
        return sum(float(number) * _DURATION_UNITS[unit] for number, unit in re.findall(_PART, wanted))
    if re.fullmatch(rf"-\s*(?:{_NUMBER}|(?:{_PART})+)", wanted):
        return -1.0
    raise InvalidInput(subject, f"expected a duration, got {short_repr(text)}", hint=DURATION_HINT)


def format_duration(ms: int) -> str:
    """The shortest form in days, hours, minutes and seconds; `parse_duration_ms` accepts it."""
    if 0 < ms < SECOND_MS:
        return f"{ms}ms"
    days, rest = divmod(ms, DAY_MS)
    hours, rest = divmod(rest, HOUR_MS)
    minutes, rest = divmod(rest, MINUTE_MS)
    parts = [f"{count}{unit}" for count, unit in ((days, "d"), (hours, "h"), (minutes, "m")) if count]
    if rest or not parts:
        seconds, millis = divmod(rest, SECOND_MS)
        parts.append(f"{seconds}.{millis:03d}".rstrip("0").rstrip(".") + "s" if millis else f"{seconds}s")
    return "".join(parts)


MAX_SIZE: Final = 2**50

SIZE_HINT: Final = "for example, 65536 (bytes), 64KiB, 1.5GiB or 10MB; at most 1024TiB"

_BINARY: Final = (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))
_DECIMAL: Final = (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3))
# A single letter is binary, as with `ls -h`, `du -h` and `dd`.
_SIZE_UNITS: Final = {
    "": 1,
    "b": 1,
    **{name.lower(): size for name, size in _BINARY + _DECIMAL},
    **{name[0].lower(): size for name, size in _BINARY},
}


def parse_size(value: object, *, subject: str) -> int:
    """Parse a number of bytes or a text (`64KiB`, `1.5GiB`, `10MB`). Raises InvalidInput for `subject`."""
    if isinstance(value, str):
        found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?i?b?)", value.strip().lower())
        if not found or found[2] not in _SIZE_UNITS:
            raise InvalidInput(subject, f"expected a size, got {short_repr(value)}", hint=SIZE_HINT)
        size = float(found[1]) * _SIZE_UNITS[found[2]]
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        size = value
    else:
        raise InvalidInput(subject, f"expected a size, got {short_repr(value)}", hint=SIZE_HINT)
    if not 0 <= size <= MAX_SIZE:
        raise InvalidInput(subject, f"expected a size from 0 to 1024TiB, got {short_repr(value)}", hint=SIZE_HINT)
    return round(size)


def humanize_size(size: int) -> str:
    """Round to at most three digits."""
    for name, unit in _BINARY:
        if size >= unit:
            return f"{size / unit:.1f}{name}" if size < 10 * unit else f"{size // unit}{name}"
    return f"{size}B"


def format_size(size: int) -> str:
    """The exact size in the largest unit that needs no fraction; `parse_size` accepts it."""
    for name, unit in _BINARY + _DECIMAL:
        if size and size % unit == 0:
            return f"{size // unit}{name}"
    return str(size)


TIME_HINT: Final = (
    "for example, 2026-11-15T20:30:00Z, 2026-11-15 20:30+02:00, or in local time 2026-11-15 20:30, 2026-11-15"
)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UTC_OFFSET: Final = r"(?: ?(Z|[+-][0-9]{2}(?::?[0-9]{2})?))?"
_EXTENDED: Final = (
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ]([0-9]{2}(?::[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)?)?)" + _UTC_OFFSET + ")?"
)
_BASIC: Final = r"([0-9]{8})(?:T([0-9]{2}(?:[0-9]{2}(?:[0-9]{2}(?:[.,][0-9]{1,9})?)?)?)" + _UTC_OFFSET + ")?"


def parse_time_ms(value: object, *, subject: str, local: tzinfo | None) -> int:
    """Parse an ISO 8601 text or a datetime to milliseconds since 1970 UTC. Raises InvalidInput for `subject`.

    A time without a zone is in `local`, or in the zone of this host if that is None. A time inside a DST gap is interpreted
    with the offset before the gap; of a time that occurs twice, the first is used. Times before 1970, such as the year 1 that some
    languages write for "no time", count as 1970.
    """
    moment = value if isinstance(value, datetime) else _parse_time_text(value, subject)
    if moment.tzinfo is None and local is not None:
        moment = moment.replace(tzinfo=local)
    if moment.year < _EPOCH.year:
        return 0
    try:
        # In UTC, a time in the year 9999 may be in the year 10000, which datetime does not support.
        exact = moment.astimezone(UTC)
    except (OverflowError, ValueError, OSError) as error:
        raise InvalidInput(subject, f"not after the year 9999: {short_repr(value)}", hint=TIME_HINT) from error
    return max(0, (exact - _EPOCH) // timedelta(milliseconds=1))


def _parse_time_text(value: object, subject: str) -> datetime:
    if not isinstance(value, str):
        raise InvalidInput(subject, f"expected a time, got {short_repr(value)}", hint=TIME_HINT)
    text = value.strip()
    found = re.fullmatch(_EXTENDED, text, re.IGNORECASE) or re.fullmatch(_BASIC, text, re.IGNORECASE)
    if not found:
        raise InvalidInput(subject, f"expected a time, got {short_repr(value)}", hint=TIME_HINT)
    date, time, zone = found.groups(default="")
    try:
        if zone[-2:] > "59" and len(zone) > 3:
            raise ValueError("zone minutes must be in 0..59")
        return datetime.fromisoformat(f"{date}T{time}{zone.upper()}" if time else date)
    except ValueError as error:
        raise InvalidInput(subject, f"there is no such time: {short_repr(value)} ({error})", hint=TIME_HINT) from error


def humanize_time(moment_ms: int, now_ms: int) -> str:
    """A time relative to now: `3m ago`, `in 20s`, `now`."""
    distance = moment_ms - now_ms
    if abs(distance) < SECOND_MS:
        return "now"
    return f"in {humanize_duration(distance)}" if distance > 0 else f"{humanize_duration(-distance)} ago"


def humanize_duration(ms: int) -> str:
    """A duration in its largest unit, rounded down: `3m`, `5h`, `12d`."""
    for size, unit in ((DAY_MS, "d"), (HOUR_MS, "h"), (MINUTE_MS, "m")):
        if ms >= size:
            return f"{ms // size}{unit}"
    return f"{ms // SECOND_MS}s"


def humanize_elapsed(ms: int) -> str:
    """A duration with about three digits: `340ms`, `1.25s`, `12.5s`, `2m 05s`, `3h 04m`, `2d 03h`."""
    if ms < SECOND_MS:
        return f"{ms}ms"
    if ms < 10 * SECOND_MS:
        return f"{ms // 10 / 100:.2f}s"  # truncated: 9999 ms is not 10.00 s
    if ms < MINUTE_MS:
        return f"{ms // 100 / 10:.1f}s"
    if ms < HOUR_MS:
        return f"{ms // MINUTE_MS}m {ms % MINUTE_MS // SECOND_MS:02d}s"
    if ms < DAY_MS:
        return f"{ms // HOUR_MS}h {ms % HOUR_MS // MINUTE_MS:02d}m"
    return f"{ms // DAY_MS}d {ms % DAY_MS // HOUR_MS:02d}h"


def to_seconds(ms: int | None) -> float | None:
    """For JSON: whole seconds as an integer."""
    if ms is None:
        return None
    return ms // 1000 if ms % 1000 == 0 else ms / 1000


def from_ms(ms: int) -> datetime:
    # Not fromtimestamp(ms / 1000): far in the future a float of seconds is off by more than a millisecond.
    return _EPOCH + timedelta(0, 0, ms * 1000)


def to_ms(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def iso(moment: datetime | None) -> str | None:
    """ISO 8601, UTC, milliseconds, Z: the format of all times in JSON."""
    if moment is None:
        return None
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return moment.isoformat("T", "milliseconds")[:23] + "Z"


_PLAIN: Final = frozenset({type(None), str, int, float, bool})


def to_json(value: Any) -> Any:
    """A value in the form that it has in JSON: a time in ISO 8601, an enum by its value, a tuple as a list, or as an object if it has names.
    The same for the items of a collection."""
    if type(value) in _PLAIN:
        return value
    match value:
        case Enum():
            return value.value
        case datetime():
            return iso(value)
        case tuple() | list():
            fields = getattr(value, "_fields", None)
            items = [to_json(one) for one in value]
            return items if fields is None else dict(zip(fields, items, strict=True))
        case _:
            return {key: to_json(one) for key, one in value.items()}


# ── index ranges ────────────────────────────────────────────────────────────────────────────────────────────────────

ARRAY_INDEX_VARIABLE: Final = "QUEUECTL_ARRAY_INDEX"
MAX_ARRAY_JOBS: Final = 1_000_000
MAX_ARRAY_INDEX: Final = 2**31 - 1
ARRAY_HINT: Final = "for example, 1-100, 1,3,7, 0-90:10 or 1-100%4"
ARRAY_KEY_PREFIX: Final = "array:"  # of the concurrency key of an array with a limit


class ArrayIndices(NamedTuple):
    indices: list[int]  # in the order given
    places: int | None  # concurrency; None: no limit


def parse_array(text: str, *, subject: str) -> ArrayIndices:
    """Parse the indices of an array of jobs (`1-100`, `1,3,7`, `0-90:10`) and its concurrency (`1-100%4`). Raises InvalidInput."""
    wanted, percent, limit = text.partition("%")
    places = _parse_array_concurrency(limit.strip(), subject) if percent else None
    indices: list[int] = []
    for part in wanted.split(","):
        span = _parse_index_range(part.strip(), subject)
        if len(indices) + len(span) > MAX_ARRAY_JOBS:
            raise InvalidInput(subject, f"more than {MAX_ARRAY_JOBS:,} jobs", hint="make several arrays of it")
        indices += span
    if len(set(indices)) < len(indices):
        raise InvalidInput(subject, f"an index is in it twice: {short_repr(text)}", hint=ARRAY_HINT)
    return ArrayIndices(indices, places)


def is_array_key(key: str | None) -> bool:
    return key is not None and key.startswith(ARRAY_KEY_PREFIX)


def _parse_array_concurrency(text: str, subject: str) -> int:
    if re.fullmatch("[0-9]{1,9}", text) is None or not 1 <= int(text) <= MAX_ARRAY_JOBS:
        raise InvalidInput(
            subject, f"not a number of jobs from 1 to {MAX_ARRAY_JOBS:,}: {short_repr('%' + text)}", hint=ARRAY_HINT
        )
    return int(text)


def _parse_index_range(part: str, subject: str) -> range:
    if (match := re.fullmatch(r"([0-9]+)(?:-([0-9]+)(?::([0-9]+))?)?", part)) is None or len(part) > 32:
        raise InvalidInput(subject, f"not a range of indices: {short_repr(part)}", hint=ARRAY_HINT)
    first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
    if max(first, last) > MAX_ARRAY_INDEX:
        raise InvalidInput(subject, f"over {MAX_ARRAY_INDEX}: {short_repr(part)}", hint=ARRAY_HINT)
    if last < first or step < 1:
        raise InvalidInput(subject, f"is an empty range: {short_repr(part)}", hint=ARRAY_HINT)
    return range(first, last + 1, step)
