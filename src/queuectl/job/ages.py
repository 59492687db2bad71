"""Ages and durations, in the words of people."""

from __future__ import annotations

_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000


def age(moment_ms: int, now_ms: int) -> str:
    """When something was or will be, seen from now: `3m ago`, `in 20s`, `now`."""
    distance = moment_ms - now_ms
    if abs(distance) < _SECOND:
        return "now"
    return f"in {rough(distance)}" if distance > 0 else f"{rough(-distance)} ago"


def rough(ms: int) -> str:
    """A duration in its largest unit, rounded down: `3m`, `5h`, `12d`."""
    for size, unit in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "m")):
        if ms >= size:
            return f"{ms // size}{unit}"
    return f"{ms // _SECOND}s"


def took(ms: int) -> str:
    """A duration with about three digits: `340ms`, `1.25s`, `12.5s`, `2m 05s`, `3h 04m`, `2d 03h`."""
    if ms < _SECOND:
        return f"{ms}ms"
    if ms < 10 * _SECOND:
        return f"{ms // 10 / 100:.2f}s"  # cut, not rounded: 9999 ms is not 10.00 s
    if ms < _MINUTE:
        return f"{ms // 100 / 10:.1f}s"
    if ms < _HOUR:
        return f"{ms // _MINUTE}m {ms % _MINUTE // _SECOND:02d}s"
    if ms < _DAY:
        return f"{ms // _HOUR}h {ms % _HOUR // _MINUTE:02d}m"
    return f"{ms // _DAY}d {ms % _DAY // _HOUR:02d}h"
