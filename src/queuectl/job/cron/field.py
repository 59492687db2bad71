"""One field of a cron expression: which numbers it allows, or a refusal that names the field, what was found and its range."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from queuectl.errors import InvalidInput
from queuectl.job.shown import shown

SUBJECT: Final = "schedule"

_MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_ITEM: Final = r"(?:(\*)|([0-9]{1,9}|[A-Z]+)(?:(-)([0-9]{1,9}|[A-Z]+))?)(?:(/)([0-9]{1,9}))?"


class Kind(NamedTuple):
    """What a field counts, from `low` to `high`; `names` are other words for its numbers, from `low` on."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()

    @property
    def range(self) -> str:
        named = f" or {self.names[0]}-{self.names[-1]}" if self.names else ""
        return f"{self.low}-{self.high}{named}"


SECOND: Final = Kind("second", 0, 59)
MINUTE: Final = Kind("minute", 0, 59)
HOUR: Final = Kind("hour", 0, 23)
DAY: Final = Kind("day of month", 1, 31)
MONTH: Final = Kind("month", 1, 12, _MONTHS)
WEEKDAY: Final = Kind("day of week", 0, 7, _WEEKDAYS)  # 0 and 7 are Sunday


class Field(NamedTuple):
    """The numbers allowed, in order. `is_star`: it was written with a `*` at its beginning, so it restricts nothing by
    itself; cron decides by that how the two fields for days go together, and what happens when the clocks change."""

    numbers: tuple[int, ...]
    is_star: bool


def parse_field(text: str, kind: Kind) -> Field:
    numbers: set[int] = set()
    for item in text.split(","):
        numbers.update(_parse_item(item, kind))
    if kind is WEEKDAY:
        numbers = {number % 7 for number in numbers}
    return Field(tuple(sorted(numbers)), text.startswith("*"))


def _parse_item(item: str, kind: Kind) -> range:
    found = re.fullmatch(_ITEM, item, re.IGNORECASE | re.ASCII)
    if not found:
        raise _refuse(item, kind)
    star, first, dash, last, slash, step = found.groups()
    if star:
        # Every day of the week once: 7 is only another word for 0.
        low, high = kind.low, 6 if kind is WEEKDAY else kind.high
    else:
        low = _number(first, kind)
        high = _number(last, kind, is_end=True) if dash else low
    if low > high:
        raise _refuse(item, kind, f"{shown(item)} ends before it begins")
    if not slash:
        return range(low, high + 1)
    most = kind.high - kind.low + 1
    if not 1 <= int(step) <= most:
        raise _refuse(item, kind, f"found the step {int(step)} in {shown(item)}, expected 1-{most}")
    if not star and not dash:
        # Some tools take it for a range up to the end, others for one number.
        raise _refuse(item, kind, f"{shown(item)} has a step and no range; write {first}-{kind.high}/{step}")
    return range(low, high + 1, int(step))


def _number(word: str, kind: Kind, *, is_end: bool = False) -> int:
    if word.upper() in kind.names:
        number = kind.low + kind.names.index(word.upper())
        return 7 if is_end and kind is WEEKDAY and number == 0 else number  # FRI-SUN
    if not word.isdecimal() or not kind.low <= int(word) <= kind.high:
        raise _refuse(word, kind)
    return int(word)


def _refuse(found: str, kind: Kind, problem: str | None = None) -> InvalidInput:
    problem = problem or f"found {shown(found)}, expected {kind.range}"
    hint = f"{kind.name} takes {kind.range}, lists 1,3, ranges 1-5, and steps */2 or 1-5/2"
    return InvalidInput(SUBJECT, f"{kind.name}: {problem}", hint=hint)
