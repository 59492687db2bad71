"""Drawings as SVG: charts over time (completed and failed runs, waiting and run times), and the dependency graph of a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from graphlib import TopologicalSorter
from typing import Final, NamedTuple

from queuectl.jobs.model import Job
from queuectl.jobs.stats import Point, Span, TimeBuckets, add_histograms, percentile_ms
from queuectl.operations.inspect import Graph
from queuectl.store_threads import WebSession
from queuectl.units import DAY_MS, HOUR_MS, MINUTE_MS, from_ms
from queuectl.web.pages.render import command, exact, number, span

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


def stack(values: Sequence[Mapping[str, float]], titles: Sequence[str]) -> tuple[list[Bar], float]:
    """Bars of several kinds on top of each other, the first kind lowest; and the value at the full height."""
    top = ceiling(max((sum(one.values()) for one in values), default=0))
    wide = WIDTH / max(1, len(values))
    bars = []
    for index, (one, title) in enumerate(zip(values, titles, strict=True)):
        y = float(HEIGHT)
        for kind, value in one.items():
            if value > 0:
                # A minimum height, so that small values stay visible.
                height = max(1.5, value / top * HEIGHT)
                y = max(0.0, y - height)
                bars.append(
                    Bar(rounded(index * wide), rounded(y), rounded(wide * (1 - GAP)), rounded(height), kind, title)
                )
    return bars, top


def lines(series: Mapping[str, Sequence[float | None]]) -> tuple[dict[str, str], float]:
    """SVG paths with gaps for missing values, and the value at the full height. A single value is drawn as a short dash."""
    top = ceiling(max((value for values in series.values() for value in values if value is not None), default=0))
    return {kind: _path(values, top) for kind, values in series.items()}, top


def _path(values: Sequence[float | None], top: float) -> str:
    wide, parts, is_drawing = WIDTH / max(1, len(values)), [], False
    for index, value in enumerate(values):
        if value is None:
            is_drawing = False
            continue
        y = rounded(HEIGHT - min(1.0, value / top) * (HEIGHT - 2) - 1)
        if not is_drawing:
            parts.append(f"M{rounded(index * wide + wide * 0.25)} {y}")
        parts.append(f"L{rounded(index * wide + wide * 0.5)} {y}")
        is_drawing = True
    return "".join(parts)


def ceiling(value: float) -> float:
    """Round up to 1, 2 or 5 times a power of ten."""
    if value <= 0:
        return 1.0
    size = 1.0
    while size < value:
        size *= 10
    while size / 10 >= value:
        size /= 10
    return next(size * share for share in (0.1, 0.2, 0.5, 1.0) if size * share >= value)


def rounded(value: float) -> float:
    return round(value, 2)


PERCENTILES: Final = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
RESULTS: Final = ("completed", "failed", "dead")  # failed: and retried


class Window(NamedTuple):
    """The period of a chart, and the time of one bar."""

    name: str
    label: str
    ms: int
    bar_ms: int
    step: Span

    @property
    def title(self) -> str:
        return f"In the last {self.label.removeprefix('1 ')}"

    def begin(self, now_ms: int) -> int:
        """The start, aligned to whole bars so that they keep their shape; the last bar is incomplete."""
        return now_ms - now_ms % self.bar_ms + self.bar_ms - self.ms


WINDOWS: Final = (
    Window("hour", "1 hour", HOUR_MS, MINUTE_MS, Span.MINUTE),
    Window("day", "24 hours", DAY_MS, 15 * MINUTE_MS, Span.MINUTE),
    Window("week", "7 days", 7 * DAY_MS, 2 * HOUR_MS, Span.HOUR),
    Window("quarter", "90 days", 90 * DAY_MS, DAY_MS, Span.HOUR),
)


class Runs(NamedTuple):
    """Results of runs."""

    bars: list[Bar]
    top: float  # the value at the full height
    total: dict[str, float]  # by kind
    summary: str  # alternative text


class Times(NamedTuple):
    """Wait or run times."""

    paths: dict[str, str]  # by percentile
    top: float
    whole: dict[str, float | None]  # the percentiles of the whole window
    summary: str


class Trend(NamedTuple):
    window: Window
    flow: Runs
    waits: Times
    runs: Times

    @property
    def is_empty(self) -> bool:
        return not any(self.flow.total.values())


def trend(session: WebSession, name: str | None) -> Trend:
    window = next((one for one in WINDOWS if one.name == name), WINDOWS[0])
    now_ms = session.reads.now_ms()
    return draw(session.reads.samples.points(window.step, since_ms=window.begin(now_ms)), window, now_ms)


def last_hour(session: WebSession, queue: str) -> Runs:
    """The runs of one queue in the last hour."""
    window, now_ms = WINDOWS[0], session.reads.now_ms()
    return draw_runs(
        session.reads.samples.points(window.step, since_ms=window.begin(now_ms), queue=queue), window, now_ms
    )


def draw(points: Sequence[Point], window: Window, now_ms: int) -> Trend:
    bars = window.ms // window.bar_ms
    waits, runs = [TimeBuckets()] * bars, [TimeBuckets()] * bars
    for point in points:
        last = (_stop(point, window, now_ms) - 1) // window.bar_ms
        if last >= 0:
            waits[last], runs[last] = add_histograms(waits[last], point.wait), add_histograms(runs[last], point.run)
    flow = draw_runs(points, window, now_ms)
    return Trend(window, flow, _times("waiting", waits, window), _times("run", runs, window))


def draw_runs(points: Sequence[Point], window: Window, now_ms: int) -> Runs:
    begin, bar_ms = window.begin(now_ms), window.bar_ms
    flows = [dict.fromkeys(RESULTS, 0.0) for _ in range(window.ms // bar_ms)]
    for point in points:
        counts = point.counts
        results = zip(RESULTS, (counts.completed, max(0, counts.failed - counts.dead), counts.dead), strict=True)
        stop = _stop(point, window, now_ms)
        start = stop - max(1, point.covers_ms)
        # A point may span several bars. What lies before the first one is not drawn.
        overlaps = {
            index: (min(stop, (index + 1) * bar_ms) - max(start, index * bar_ms)) / (stop - start)
            for index in range(max(0, start // bar_ms), (stop - 1) // bar_ms + 1)
        }
        for kind, count in results:
            for index, share in overlaps.items():
                flows[index][kind] += count * share
    total = {kind: sum(flow[kind] for flow in flows) for kind in RESULTS}
    titles = [
        f"{exact(from_ms(begin + index * bar_ms))[:16]}: {_describe_results(flow)}" for index, flow in enumerate(flows)
    ]
    return Runs(*stack(flows, titles), total, f"{window.title}: {_describe_results(total)}")


def _stop(point: Point, window: Window, now_ms: int) -> int:
    """The end of a point within the window. A minute is sampled when the next one begins, an hour in its last minute."""
    end = point.at_ms if window.step is Span.MINUTE else point.at_ms + window.step.ms
    return min(end, now_ms) - window.begin(now_ms)


def _times(name: str, times: Sequence[TimeBuckets], window: Window) -> Times:
    drawn = lines({part: [percentile_ms(one, share) for one in times] for part, share in PERCENTILES})
    together = reduce(add_histograms, times)
    whole = {part: percentile_ms(together, share) for part, share in PERCENTILES}
    text = ", ".join(f"{part} {span(value)}" for part, value in whole.items())
    return Times(*drawn, whole, f"{window.title}, {name} times: {text}")


def _describe_results(flow: Mapping[str, float]) -> str:
    return ", ".join(f"{number(round(value))} {kind}" for kind, value in flow.items() if kind == "completed" or value)


# ── the dependency graph of a job ───────────────────────────────────────────────────────────────────────────────────

MAX_BOXES: Final = 60  # more would be unreadable
BOX_WIDTH, BOX_HEIGHT = 190, 44
COLUMN_WIDTH, ROW_HEIGHT = 250, 60
LABEL_LENGTH: Final = 21


class Box(NamedTuple):
    id: str
    x: int
    y: int
    state: str
    label: str
    title: str
    is_root: bool


class Arrow(NamedTuple):
    path: str
    state: str
    title: str


class GraphDrawing(NamedTuple):
    boxes: list[Box]
    arrows: list[Arrow]
    width: int
    height: int
    left_out: int
    summary: str


def draw_graph(graph: Graph) -> GraphDrawing | None:
    """None for a job without dependencies."""
    if not graph.links:
        return None
    parents: dict[str, list[str]] = {job_id: [] for job_id in graph.nodes}
    children: dict[str, list[str]] = {job_id: [] for job_id in graph.nodes}
    for link in graph.links:
        parents[link.child].append(link.parent)
        children[link.parent].append(link.child)
    kept = _reach(graph.root, parents, children)[:MAX_BOXES]
    columns = _columns({job_id: [one for one in parents[job_id] if one in kept] for job_id in kept})
    places: dict[str, tuple[int, int]] = {}
    rows: dict[int, int] = {}
    for job_id in graph.nodes:
        if job_id in kept:
            column = columns[job_id]
            places[job_id] = (column, rows.get(column, 0))
            rows[column] = rows.get(column, 0) + 1
    tallest = max(rows.values())
    at = {
        job_id: (8 + column * COLUMN_WIDTH, 8 + round((row + (tallest - rows[column]) / 2) * ROW_HEIGHT))
        for job_id, (column, row) in places.items()
    }
    boxes = [_box(graph.nodes[job_id], at[job_id], is_root=job_id == graph.root) for job_id in at]
    arrows = [
        Arrow(
            _curve(at[link.parent], at[link.child]),
            link.state.value,
            f"{link.parent} → {link.child}: {link.when.value}",
        )
        for link in graph.links
        if link.parent in at and link.child in at
    ]
    before, after = (len(_reach(graph.root, links)) - 1 for links in (parents, children))
    summary = f"{before:,} upstream, {after:,} downstream"
    size = (max(rows) * COLUMN_WIDTH + BOX_WIDTH + 16, (tallest - 1) * ROW_HEIGHT + BOX_HEIGHT + 16)
    return GraphDrawing(boxes, arrows, *size, len(graph.nodes) - len(boxes), summary)


def _reach(root: str, *links: Mapping[str, Sequence[str]]) -> list[str]:
    """The root and the jobs that are reachable from it by these links, the closest first."""
    found = [root]
    known = {root}
    for job_id in found:  # grows
        for other in (other for neighbours in links for other in neighbours[job_id]):
            if other not in known:
                known.add(other)
                found.append(other)
    return found


def _columns(parents: Mapping[str, Sequence[str]]) -> Mapping[str, int]:
    """The column of each job, to the right of all its parents."""
    columns: dict[str, int] = {}
    for job_id in TopologicalSorter(parents).static_order():
        columns[job_id] = max((columns[parent] + 1 for parent in parents[job_id]), default=0)
    return columns


def _box(job: Job, at: tuple[int, int], *, is_root: bool) -> Box:
    text = command(job)
    label = text if len(text) <= LABEL_LENGTH else text[: LABEL_LENGTH - 1] + "…"
    return Box(job.id, *at, job.state.value, label, f"{job.id}: {text}", is_root)


def _curve(start: tuple[int, int], end: tuple[int, int]) -> str:
    x, y = start[0] + BOX_WIDTH, start[1] + BOX_HEIGHT // 2
    to_x, to_y = end[0], end[1] + BOX_HEIGHT // 2
    bend = (to_x - x) // 2
    return f"M{x} {y}C{x + bend} {y} {to_x - bend} {to_y} {to_x} {to_y}"
