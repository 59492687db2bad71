"""A day of a zone, cut where its clocks change."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final, NamedTuple

from queuectl.job.cron.day import DAY_SECONDS

_EPOCH_DAY: Final = date(1970, 1, 1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# How far a zone's clocks are from UTC at most, and how often to look whether they have changed.
FARTHEST: Final = 24 * 3600
LOOK_EVERY: Final = 6 * 3600


class Stretch(NamedTuple):
    """Seconds of a day by the clock on the wall, from `since` to `before`, that are `offset` seconds ahead of UTC."""

    since: int
    before: int
    offset: int


def midnight(day: date) -> int:
    """In seconds since 1970, as if the zone were UTC."""
    return (day - _EPOCH_DAY).days * DAY_SECONDS


def offset_at(zone: tzinfo, second: int) -> int:
    offset = (_EPOCH + timedelta(seconds=second)).astimezone(zone).utcoffset()
    assert offset is not None, "a zone knows its offset"
    return int(offset.total_seconds())


def stretches(zone: tzinfo, day: date) -> list[Stretch]:
    """The parts of a day in the order in which they happen. On most days there is one. Where the clocks go forward there is a
    hole between two, where they go back two overlap; a day that was left out altogether has none."""
    start = midnight(day)
    found = []
    for begin, end, offset in _spans(zone, start - FARTHEST, start + DAY_SECONDS + FARTHEST):
        since, before = max(begin + offset - start, 0), min(end + offset - start, DAY_SECONDS)
        if since < before:
            found.append(Stretch(since, before, offset))
    return found


def _spans(zone: tzinfo, begin: int, end: int) -> Iterator[tuple[int, int, int]]:
    """From one second of UTC to another: each time between two changes, and its offset."""
    since, offset = begin, offset_at(zone, begin)
    for look in range(begin, end, LOOK_EVERY):
        after = min(look + LOOK_EVERY, end)
        if (changed := offset_at(zone, after)) != offset:
            at = _change(zone, look, after, offset)
            yield since, at, offset
            since, offset = at, changed
    yield since, end, offset


def _change(zone: tzinfo, low: int, high: int, offset: int) -> int:
    """The first second after `low` with another offset than `low` has; `high` has another."""
    while high - low > 1:
        middle = (low + high) // 2
        if offset_at(zone, middle) == offset:
            low = middle
        else:
            high = middle
    return high
