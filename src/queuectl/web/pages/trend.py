"""How it went over time: what was completed and what failed, and how long jobs waited and ran."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from queuectl.job.buckets import Times, percentile_ms
from queuectl.job.buckets import add as add_times
from queuectl.job.duration import DAY_MS, HOUR_MS, MINUTE_MS
from queuectl.job.model import from_ms
from queuectl.job.points import Point
from queuectl.job.points import Span as Step
from queuectl.web.desk import Desk
from queuectl.web.pages import charts
from queuectl.web.pages.charts import Bars, Lines
from queuectl.web.pages.wording import exact, number, span

PARTS: Final = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))


class Window(NamedTuple):
    """How far back one looks, and how much time a bar stands for."""

    name: str
    label: str
    ms: int
    bar_ms: int
    step: Step

    @property
    def words(self) -> str:
        return f"In the last {self.label.removeprefix('1 ')}"

    def begin(self, now_ms: int) -> int:
        """By whole bars, so that they do not change their shape from one look to the next; the last one is under way."""
        return now_ms - now_ms % self.bar_ms + self.bar_ms - self.ms


WINDOWS: Final = (
    Window("hour", "1 hour", HOUR_MS, MINUTE_MS, Step.MINUTE),
    Window("day", "24 hours", DAY_MS, 15 * MINUTE_MS, Step.MINUTE),
    Window("week", "7 days", 7 * DAY_MS, 2 * HOUR_MS, Step.HOUR),
    Window("quarter", "90 days", 90 * DAY_MS, DAY_MS, Step.HOUR),
)


class Flow(NamedTuple):
    """What became of runs, in numbers that need not be whole: a point may lie over several bars."""

    completed: float = 0
    failed: float = 0  # and tried again
    dead: float = 0

    def __add__(self, other: object) -> Flow:
        assert isinstance(other, Flow)
        return Flow(self.completed + other.completed, self.failed + other.failed, self.dead + other.dead)

    def share(self, part: float) -> Flow:
        return Flow(self.completed * part, self.failed * part, self.dead * part)


class Spread(NamedTuple):
    """Waiting or run times: their lines, those of the whole window, and the words for it."""

    lines: Lines
    whole: dict[str, float | None]
    words: str


class Runs(NamedTuple):
    """What became of runs: bars, all of them together, and the words for it."""

    bars: Bars
    total: Flow
    words: str


class Trend(NamedTuple):
    window: Window
    is_empty: bool
    flow: Runs
    waits: Spread
    runs: Spread


def trend(desk: Desk, name: str | None) -> Trend:
    window = next((one for one in WINDOWS if one.name == name), WINDOWS[0])
    now_ms = desk.reads.now_ms()
    return draw(desk.reads.points(window.step, since_ms=window.begin(now_ms)), window, now_ms)


def lately(desk: Desk, queue: str) -> Runs:
    """Of one queue, the last hour."""
    window, now_ms = WINDOWS[0], desk.reads.now_ms()
    return draw_runs(desk.reads.points(window.step, since_ms=window.begin(now_ms), queue=queue), window, now_ms)


def draw(points: Sequence[Point], window: Window, now_ms: int) -> Trend:
    bars = window.ms // window.bar_ms
    waits, runs = [Times()] * bars, [Times()] * bars
    for point in points:
        last = (_stop(point, window, now_ms) - 1) // window.bar_ms
        if last >= 0:
            waits[last], runs[last] = add_times(waits[last], point.wait), add_times(runs[last], point.run)
    flow = draw_runs(points, window, now_ms)
    return Trend(window, not any(flow.total), flow, _spread("waiting", waits, window), _spread("run", runs, window))


def draw_runs(points: Sequence[Point], window: Window, now_ms: int) -> Runs:
    begin = window.begin(now_ms)
    flows = [Flow()] * (window.ms // window.bar_ms)
    for point in points:
        stop = _stop(point, window, now_ms)
        for index, part in _bars(stop - max(1, point.covers_ms), stop, window.bar_ms):
            flows[index] += _flow(point).share(part)
    total = sum(flows, Flow())
    titles = [_title(flow, begin + index * window.bar_ms) for index, flow in enumerate(flows)]
    return Runs(charts.stack([flow._asdict() for flow in flows], titles), total, f"{window.words}: {_told(total)}")


def _flow(point: Point) -> Flow:
    counts = point.counts
    return Flow(counts.completed, max(0, counts.failed - counts.dead), counts.dead)


def _stop(point: Point, window: Window, now_ms: int) -> int:
    """Where in the window it ends. A minute is looked at as soon as the next one begins, an hour at its last minute."""
    end = point.at_ms if window.step is Step.MINUTE else point.at_ms + window.step.ms
    return min(end, now_ms) - window.begin(now_ms)


def _bars(start: int, stop: int, bar_ms: int) -> Iterator[tuple[int, float]]:
    """The bars over which this time lies, and which part of it is in each; what was before the first one is not shown."""
    for index in range(max(0, start // bar_ms), (stop - 1) // bar_ms + 1):
        yield index, (min(stop, (index + 1) * bar_ms) - max(start, index * bar_ms)) / (stop - start)


def _spread(name: str, times: Sequence[Times], window: Window) -> Spread:
    lines = charts.lines({part: [percentile_ms(one, share) for one in times] for part, share in PARTS})
    together = Times()
    for one in times:
        together = add_times(together, one)
    whole = {part: percentile_ms(together, share) for part, share in PARTS}
    said = ", ".join(f"{part} {span(value)}" for part, value in whole.items())
    return Spread(lines, whole, f"{window.words}, {name} times: {said}")


def _title(flow: Flow, at_ms: int) -> str:
    return f"{exact(from_ms(at_ms))[:16]}: {_told(flow)}"


def _told(flow: Flow) -> str:
    return ", ".join(
        f"{number(round(value))} {kind}" for kind, value in flow._asdict().items() if kind == "completed" or value
    )
