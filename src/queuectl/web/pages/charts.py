"""Charts as numbers for SVG: places and sizes only, so that nothing of a job can become a part of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

WIDTH: Final = 600
HEIGHT: Final = 120
GAP: Final = 0.2  # of the width of a bar


class Bar(NamedTuple):
    x: float
    y: float
    width: float
    height: float
    kind: str
    title: str


class Bars(NamedTuple):
    bars: list[Bar]
    top: float  # what the height stands for


class Lines(NamedTuple):
    paths: dict[str, str]  # the kind of each line, and its way
    top: float


def stack(values: Sequence[dict[str, float]], titles: Sequence[str]) -> Bars:
    """Bars of several kinds on top of each other, the first kind lowest."""
    top = ceiling(max((sum(one.values()) for one in values), default=0))
    wide = WIDTH / max(1, len(values))
    bars = []
    for index, (one, title) in enumerate(zip(values, titles, strict=True)):
        y = float(HEIGHT)
        for kind, value in one.items():
            if value > 0:
                # One that is small beside the others is still there to see.
                height = max(1.5, value / top * HEIGHT)
                y = max(0.0, y - height)
                bars.append(Bar(r(index * wide), r(y), r(wide * (1 - GAP)), r(height), kind, title))
    return Bars(bars, top)


def lines(series: dict[str, Sequence[float | None]]) -> Lines:
    """Lines with gaps where nothing is known. One that stands alone is drawn as a short dash."""
    top = ceiling(max((value for values in series.values() for value in values if value is not None), default=0))
    return Lines({kind: _path(values, top) for kind, values in series.items()}, top)


def _path(values: Sequence[float | None], top: float) -> str:
    wide, words, is_drawing = WIDTH / max(1, len(values)), [], False
    for index, value in enumerate(values):
        if value is None:
            is_drawing = False
            continue
        y = r(HEIGHT - min(1.0, value / top) * (HEIGHT - 2) - 1)
        if not is_drawing:
            words.append(f"M{r(index * wide + wide * 0.25)} {y}")
        words.append(f"L{r(index * wide + wide * 0.5)} {y}")
        is_drawing = True
    return "".join(words)


def ceiling(value: float) -> float:
    """The next number that is easy to read: 1, 2 or 5, and zeros."""
    if value <= 0:
        return 1.0
    size = 1.0
    while size < value:
        size *= 10
    while size / 10 >= value:
        size /= 10
    return next(size * share for share in (0.1, 0.2, 0.5, 1.0) if size * share >= value)


def r(value: float) -> float:
    return round(value, 2)
