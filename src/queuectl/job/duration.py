"""Durations as people write them (`90`, `90s`, `1.5h`, `1h30m`), kept in whole milliseconds."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from queuectl.errors import InvalidInput
from queuectl.job.shown import shown

SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
LONGEST_MS: Final = 36_525 * DAY_MS  # 100 years

HINT: Final = "a number of seconds or a duration like 500ms, 90s, 1.5h, 1h30m, 2d, 1w; at most 100 years"

_UNITS: Final = {"ms": 1, "s": SECOND_MS, "m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS, "w": 7 * DAY_MS}
_NUMBER: Final = r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+)"
_PART: Final = _NUMBER + r"\s*(ms|[smhdw])\s*"


def parse_duration_ms(value: object, *, subject: str) -> int:
    """Milliseconds of a number of seconds, a text or a timedelta; InvalidInput, which names `subject`, for everything else.

    What is more than nothing is at least 1 ms: rounded to 0 it would mean "none" where 0 does.
    """
    if isinstance(value, str):
        ms = _text_ms(value, subject)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        # Clamped first, since an integer can be too large for a float; in this order NaN stays NaN.
        ms = max(min(value, LONGEST_MS), -1) * 1000.0
    elif isinstance(value, timedelta):
        ms = value / timedelta(milliseconds=1)
    else:
        raise InvalidInput(subject, f"expected a duration, got {shown(value)}", hint=HINT)
    if 0 < ms < 1:
        return 1
    if 0 <= ms <= LONGEST_MS:
        return round(ms)
    if ms < 0:
        raise InvalidInput(subject, f"a duration cannot be negative: {shown(value)}", hint=HINT)
    if ms > LONGEST_MS:
        raise InvalidInput(subject, f"over 100 years: {shown(value)}", hint=HINT)
    raise InvalidInput(subject, f"not a duration: {shown(value)}", hint=HINT)


def _text_ms(text: str, subject: str) -> float:
    wanted = text.strip().lower()
    # Patterns are compiled at first use (re keeps them): most processes never read a duration.
    if re.fullmatch(_NUMBER, wanted):
        return float(wanted) * 1000
    if re.fullmatch(f"(?:{_PART})+", wanted):
        return sum(float(number) * _UNITS[unit] for number, unit in re.findall(_PART, wanted))
    if re.fullmatch(rf"-\s*(?:{_NUMBER}|(?:{_PART})+)", wanted):
        return -1.0
    raise InvalidInput(subject, f"not a duration: {shown(text)}", hint=HINT)


def format_duration(ms: int) -> str:
    """The shortest form in days, hours, minutes and seconds that `parse_duration_ms` reads back as the same."""
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
