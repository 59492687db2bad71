"""Charts over time as SVG: results of runs, wait times and run times, with axes in real units; and sparklines for tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Final, NamedTuple

from queuectl.jobs.stats import ALL_QUEUES, Point, Span, TimeBuckets, add_histograms, percentile_ms
from queuectl.store_threads import WebSession
from queuectl.units import DAY_MS, HOUR_MS, MINUTE_MS, from_ms
from queuectl.web.pages.charts import rounded
from queuectl.web.pages.render import exact, number, short, span

WIDTH: Final = 600
HEIGHT: Final = 120
GAP: Final = 0.2  # of the width of a bar
MIN_BARS: Final = 10  # so that a new database has no chart of one bar

PERCENTILES: Final = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
RESULTS: Final = ("completed", "failed", "dead")  # failed: and retried


class Window(NamedTuple):
    """The period of a chart, and the time of one bar."""

    name: str
    label: str
    ms: int
    bar_ms: int
    step: Span
    bar: str = "minute"

    @property
    def title(self) -> str:
        return f"In the last {self.label.removeprefix('1 ')}"

    def end(self, now_ms: int) -> int:
        """Aligned to whole bars so that they keep their shape; the last bar is incomplete."""
        return now_ms - now_ms % self.bar_ms + self.bar_ms

    def begin(self, now_ms: int) -> int:
        return self.end(now_ms) - self.ms


WINDOWS: Final = (
    Window("quarter-hour", "15 min", 15 * MINUTE_MS, MINUTE_MS, Span.MINUTE),
    Window("hour", "1 hour", HOUR_MS, MINUTE_MS, Span.MINUTE),
    Window("day", "24 hours", DAY_MS, 15 * MINUTE_MS, Span.MINUTE, "15 minutes"),
    Window("week", "7 days", 7 * DAY_MS, 2 * HOUR_MS, Span.HOUR, "2 hours"),
    Window("quarter", "90 days", 90 * DAY_MS, DAY_MS, Span.HOUR, "day"),
)
DEFAULT: Final = WINDOWS[1]


class Period(NamedTuple):
    """What happened from `start` to `stop`, in milliseconds since the begin of the chart."""

    start: int
    stop: int
    point: Point


# ── axes ────────────────────────────────────────────────────────────────────────────────────────────────────────────

SECOND_MS: Final = 1000
TIME_STEPS: Final = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(SECOND_MS * count for count in (1, 2, 5, 10, 30)),
    *(MINUTE_MS * count for count in (1, 2, 5, 10, 30)),
    *(HOUR_MS * count for count in (1, 2, 6, 12)),
    *(DAY_MS * count for count in (1, 2, 7, 30)),
)
CLOCK_STEPS: Final = (
    *(MINUTE_MS * count for count in (1, 2, 5, 10, 15, 30)),
    *(HOUR_MS * count for count in (1, 2, 3, 4, 6, 12)),
    *(DAY_MS * count for count in (1, 2, 7, 14, 30)),
)
MAX_Y_STEPS: Final = 4
MAX_X_TICKS: Final = 7


class Tick(NamedTuple):
    at: float  # on the y axis in units of HEIGHT from the top, on the x axis in percent
    label: str
    ms: int = 0  # on the x axis: the time, for the zone of the reader


class Scale(NamedTuple):
    ticks: list[Tick]
    y: Callable[[float], float]


def count_scale(top: float) -> Scale:
    """From 0 to at least `top`, in steps of 1, 2 or 5 times a power of ten."""
    size, steps = 1.0, (1.0, 2.0, 5.0)
    while size * 10 * MAX_Y_STEPS < top:
        size *= 10
    step = next((size * share for share in steps if size * share * MAX_Y_STEPS >= top), size * 10)
    count = max(1, math.ceil(top / step))

    def y(value: float) -> float:
        return rounded(HEIGHT * (1 - min(1.0, value / (step * count))))

    return Scale([Tick(y(step * index), short(step * index)) for index in range(count + 1)], y)


def time_scale(values: Sequence[float]) -> Scale:
    """A logarithmic scale of times around all values: a single long run would flatten all others of a linear one."""
    least, most = min(values, default=100.0), max(values, default=10_000.0)
    first = max((index for index, step in enumerate(TIME_STEPS) if step <= least), default=0)
    last = min((index for index, step in enumerate(TIME_STEPS) if step >= most), default=len(TIME_STEPS) - 1)
    last = max(last, first + 1)
    every = math.ceil((last - first) / MAX_Y_STEPS)
    first = max(0, last - every * math.ceil((last - first) / every))  # with a label
    low, high = math.log(TIME_STEPS[first]), math.log(TIME_STEPS[last])

    def y(value: float) -> float:
        share = (math.log(max(value, 0.001)) - low) / (high - low)
        return rounded(HEIGHT * (1 - min(1.0, max(0.0, share))))

    return Scale([Tick(y(step), span(step)) for step in TIME_STEPS[last : first - 1 if first else None : -every]], y)


def clock_ticks(begin_ms: int, end_ms: int) -> list[Tick]:
    """Round times of the clock in UTC, without those too close to the edges for their label."""
    length = end_ms - begin_ms
    step = next((one for one in CLOCK_STEPS if length / one <= MAX_X_TICKS), CLOCK_STEPS[-1])
    ticks = []
    for at in range(begin_ms - begin_ms % step + step, end_ms, step):
        share = rounded((at - begin_ms) / length * 100)
        if 4 <= share <= 96:
            moment = from_ms(at)
            ticks.append(Tick(share, f"{moment:%b} {moment.day}" if step >= DAY_MS else f"{moment:%H:%M}", at))
    return ticks


# ── charts ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Bar(NamedTuple):
    x: float
    y: float
    width: float
    height: float
    kind: str


class Reading(NamedTuple):
    """The values of one bar in words; an invisible rectangle over the whole height."""

    x: float
    width: float
    ms: int
    when: str  # UTC
    text: str


class Chart(NamedTuple):
    name: str
    title: str
    whole: dict[str, float | None]  # the values of the whole period, by kind
    ticks: list[Tick]
    bars: list[Bar]
    paths: dict[str, str]
    readings: list[Reading]
    summary: str  # alternative text


class Trend(NamedTuple):
    window: Window
    queue: str
    clock: list[Tick]
    flow: Chart
    waits: Chart
    runs: Chart

    @property
    def is_empty(self) -> bool:
        return not any(self.flow.whole.values())


def trend(session: WebSession, name: str | None, queue: str | None = None) -> Trend:
    """The charts of a window, by its name, for all queues or one. The time since the last sample is included."""
    window = next((one for one in WINDOWS if one.name == name), DEFAULT)
    now_ms, of = session.reads.now_ms(), queue or ALL_QUEUES
    points = session.reads.samples.points(window.step, since_ms=window.begin(now_ms), queue=of)
    return draw(points, window, now_ms, queue=of, running=_running(session.reads.samples.unsampled(), of))


def _running(points: Iterable[Point], queue: str) -> Point | None:
    return next((point for point in points if point.queue == queue), None)


def draw(
    points: Sequence[Point], window: Window, now_ms: int, *, queue: str = "", running: Point | None = None
) -> Trend:
    """`running`: the point of the time since the last sample."""
    end, bar_ms = window.end(now_ms), window.bar_ms
    periods = _periods(points, window, now_ms, running)
    # The window starts with the first event, so that a new database does not have charts that are empty for the most part.
    first = min((one.start for one in periods if any(one.point.counts)), default=window.ms)
    begin = max(window.begin(now_ms), min(first - first % bar_ms, end - min(window.ms, MIN_BARS * bar_ms)))
    count = (end - begin) // bar_ms
    flows = [dict.fromkeys(RESULTS, 0.0) for _ in range(count)]
    waits, runs = [TimeBuckets()] * count, [TimeBuckets()] * count
    for period in periods:
        _spread(period._replace(start=period.start - begin, stop=period.stop - begin), flows, bar_ms)
        last = (period.stop - begin - 1) // bar_ms
        if 0 <= last < count:
            waits[last] = add_histograms(waits[last], period.point.wait)
            runs[last] = add_histograms(runs[last], period.point.run)
    moments = [begin + index * bar_ms for index in range(count)]
    about = window.title + (f", queue {queue}" if queue else "")
    return Trend(
        window,
        queue,
        clock_ticks(begin, end),
        _flow_chart(flows, moments, about, f"Runs per {window.bar}"),
        _time_chart("wait", "Wait time", waits, moments, about),
        _time_chart("run", "Run time", runs, moments, about),
    )


def _periods(points: Sequence[Point], window: Window, now_ms: int, running: Point | None) -> list[Period]:
    """A minute is sampled when the next one begins, an hour in its last minute."""
    late = 0 if window.step is Span.MINUTE else window.step.ms
    stops = [(min(point.at_ms + late, now_ms), point) for point in points]
    if running is not None:
        stops.append((now_ms, running))
    return [Period(stop - max(1, point.covers_ms), stop, point) for stop, point in stops]


def _spread(period: Period, flows: Sequence[dict[str, float]], bar_ms: int) -> None:
    """Add the results of a period to the bars that it overlaps. What lies before the first one is left out."""
    start, stop, counts = period.start, period.stop, period.point.counts
    results = zip(RESULTS, (counts.completed, max(0, counts.failed - counts.dead), counts.dead), strict=True)
    bars = range(max(0, start // bar_ms), min(len(flows) - 1, (stop - 1) // bar_ms) + 1)
    overlaps = [(index, min(stop, (index + 1) * bar_ms) - max(start, index * bar_ms)) for index in bars]
    for kind, count in results:
        for index, overlap in overlaps:
            flows[index][kind] += count * overlap / (stop - start)


def _flow_chart(flows: Sequence[dict[str, float]], moments: Sequence[int], about: str, title: str) -> Chart:
    scale = count_scale(max((sum(flow.values()) for flow in flows), default=0))
    whole = {kind: sum(flow[kind] for flow in flows) for kind in RESULTS}
    texts = [_describe_results(flow) if any(flow.values()) else "" for flow in flows]
    return Chart(
        "runs",
        title,
        dict(whole),
        scale.ticks,
        _stack(flows, scale),
        {},
        _readings(texts, moments),
        f"{about}: {_describe_results(whole)}",
    )


def _time_chart(name: str, title: str, times: Sequence[TimeBuckets], moments: Sequence[int], about: str) -> Chart:
    series = {part: [percentile_ms(one, share) for one in times] for part, share in PERCENTILES}
    scale = time_scale([value for values in series.values() for value in values if value is not None])
    together = reduce(add_histograms, times)
    whole = {part: percentile_ms(together, share) for part, share in PERCENTILES}
    texts = [
        _describe_times(dict(zip(series, values, strict=True))) if values[0] is not None else ""
        for values in zip(*series.values(), strict=True)
    ]
    paths = {part: _path(values, scale) for part, values in series.items()}
    summary = f"{about}, {title.lower()}s: {_describe_times(whole)}"
    return Chart(name, title, whole, scale.ticks, [], paths, _readings(texts, moments), summary)


def _stack(flows: Sequence[Mapping[str, float]], scale: Scale) -> list[Bar]:
    """Bars of several kinds on top of each other, the first kind lowest."""
    wide, bars = WIDTH / max(1, len(flows)), []
    for index, flow in enumerate(flows):
        y = float(HEIGHT)
        for kind, value in flow.items():
            if value > 0:
                # A minimum height, so that small values stay visible.
                height = max(1.5, HEIGHT - scale.y(value))
                y = max(0.0, y - height)
                x = index * wide + wide * GAP / 2
                bars.append(Bar(rounded(x), rounded(y), rounded(wide * (1 - GAP)), rounded(height), kind))
    return bars


def _path(values: Sequence[float | None], scale: Scale) -> str:
    """An SVG path with gaps for missing values. A single value is drawn as a short dash."""
    wide, parts, is_drawing = WIDTH / max(1, len(values)), [], False
    for index, value in enumerate(values):
        if value is None:
            is_drawing = False
            continue
        if not is_drawing:
            parts.append(f"M{rounded(index * wide + wide * 0.25)} {scale.y(value)}")
        parts.append(f"L{rounded(index * wide + wide * 0.5)} {scale.y(value)}")
        is_drawing = True
    return "".join(parts)


def _readings(texts: Sequence[str], moments: Sequence[int]) -> list[Reading]:
    wide = WIDTH / max(1, len(texts))
    return [
        Reading(rounded(index * wide), rounded(wide), at, exact(from_ms(at))[:16] + " UTC", text)
        for index, (text, at) in enumerate(zip(texts, moments, strict=True))
        if text
    ]


def _describe_results(flow: Mapping[str, float]) -> str:
    return ", ".join(f"{number(round(value))} {kind}" for kind, value in flow.items() if kind == "completed" or value)


def _describe_times(times: Mapping[str, float | None]) -> str:
    return ", ".join(f"{part} {span(value)}" for part, value in times.items())


# ── sparklines ──────────────────────────────────────────────────────────────────────────────────────────────────────

SPARK_WIDTH: Final = 120
SPARK_HEIGHT: Final = 24


class Sparkline(NamedTuple):
    bars: list[Bar]
    summary: str  # alternative text


def sparkline(values: Sequence[float], summary: str, kinds: Sequence[str] = ()) -> Sparkline:
    """A bar for each value, the largest as high as a row. `kinds`: states that give the bars their colors."""
    top, wide = max(values, default=0) or 1, SPARK_WIDTH / max(1, len(values))
    bars = []
    for index, value in enumerate(values):
        if value > 0:
            height = rounded(max(2.0, value / top * SPARK_HEIGHT))
            kind = kinds[index] if kinds else "processing"
            bars.append(Bar(rounded(index * wide), SPARK_HEIGHT - height, rounded(wide * (1 - GAP)), height, kind))
    return Sparkline(bars, summary)


def queue_sparkline(session: WebSession, queue: str, unsampled: Sequence[Point]) -> Sparkline:
    """The runs of a queue in each minute of the last half hour. `unsampled`: those of the store, read once for all queues."""
    window, now_ms = Window("", "30 minutes", 30 * MINUTE_MS, MINUTE_MS, Span.MINUTE), session.reads.now_ms()
    points = session.reads.samples.points(window.step, since_ms=window.begin(now_ms), queue=queue)
    begin, flows = window.begin(now_ms), [dict.fromkeys(RESULTS, 0.0) for _ in range(30)]
    for period in _periods(points, window, now_ms, _running(unsampled, queue)):
        _spread(period._replace(start=period.start - begin, stop=period.stop - begin), flows, window.bar_ms)
    total = {kind: sum(flow[kind] for flow in flows) for kind in RESULTS}
    return sparkline([sum(flow.values()) for flow in flows], f"{window.title}: {_describe_results(total)}")
