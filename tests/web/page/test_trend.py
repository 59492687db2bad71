"""Charts over time: nothing is missing, nothing is counted twice, and the axes have units that are easy to read."""

from __future__ import annotations

import pytest

from queuectl.jobs.stats import ALL_QUEUES, Counts, Point, build_histogram
from queuectl.units import DAY_MS, HOUR_MS, MINUTE_MS
from queuectl.web.pages.trend import (
    HEIGHT,
    MIN_BARS,
    SPARK_HEIGHT,
    WIDTH,
    WINDOWS,
    Trend,
    Window,
    clock_ticks,
    count_scale,
    draw,
    sparkline,
    time_scale,
)

NOW = 1_800_000_000_000 + 90_000
MINUTE = 60_000
HOUR = WINDOWS[1]
# Every minute of the window has a point, so that it begins at its begin.
QUIET = [Point(NOW - NOW % MINUTE - 59 * MINUTE, ALL_QUEUES, MINUTE, Counts(enqueued=1))]


def minute(ago: int, *, covers: int = 1, **counts: int) -> Point:
    """Looked at so many minutes ago."""
    return Point(NOW - NOW % MINUTE - ago * MINUTE, ALL_QUEUES, covers * MINUTE, Counts(**counts))


def kinds(drawn: Trend, kind: str) -> float:
    return sum(bar.height for bar in drawn.flow.bars if bar.kind == kind)


@pytest.mark.parametrize("window", WINDOWS, ids=lambda window: window.name)
def test_the_bars_contain_all_runs(window: Window) -> None:
    points = [minute(ago, completed=50, failed=20, dead=10) for ago in (1, 2, 3)]
    drawn = draw(points, window, NOW)
    assert tuple(drawn.flow.whole.values()) == pytest.approx((150, 30, 30))
    assert kinds(drawn, "completed") == pytest.approx(5 * kinds(drawn, "failed"), rel=0.05)


@pytest.mark.parametrize("window", WINDOWS, ids=lambda window: window.name)
def test_the_minute_that_runs_is_included(window: Window) -> None:
    running = Point(NOW - NOW % MINUTE, ALL_QUEUES, 30_000, Counts(completed=7))
    drawn = draw([minute(1, completed=50)], window, NOW, running=running)
    assert drawn.flow.whole["completed"] == pytest.approx(57)
    assert drawn.flow.readings[-1].x + drawn.flow.readings[-1].width == pytest.approx(WIDTH, abs=1)


def test_the_window_begins_at_the_first_event() -> None:
    assert len(draw([minute(2, completed=1)], HOUR, NOW).flow.readings) == 1
    assert draw([minute(2, completed=1)], HOUR, NOW).flow.readings[0].width == pytest.approx(WIDTH / MIN_BARS)
    assert draw([minute(29, completed=1)], HOUR, NOW).flow.readings[0].width == pytest.approx(WIDTH / 31, abs=0.01)
    assert draw([minute(300, completed=1)], HOUR, NOW).is_empty


def test_a_late_sample_is_spread_over_its_period() -> None:
    drawn = draw([minute(2, covers=10, completed=100)], HOUR, NOW).flow
    assert len(drawn.bars) == 10
    assert len({bar.height for bar in drawn.bars}) == 1


def test_runs_before_the_window_are_not_shown() -> None:
    half = draw([minute(50, covers=18, completed=100)], HOUR, NOW)
    assert len(half.flow.bars) == 9
    assert half.flow.whole["completed"] == pytest.approx(50)
    assert draw([minute(59, completed=100)], HOUR, NOW).flow.bars == []


def test_bars_are_stacked_within_the_chart_and_small_ones_are_visible() -> None:
    bars = draw([minute(3, completed=10_000, failed=1, dead=1)], HOUR, NOW).flow.bars
    assert [bar.kind for bar in bars] == ["completed", "dead"]
    assert bars[0].y + bars[0].height == HEIGHT
    assert all(bar.y >= 0 and bar.height > 1 and bar.x + bar.width <= WIDTH for bar in bars)


def test_percentiles_are_those_of_each_bar_and_of_all() -> None:
    slow, fast = build_histogram([(10, 10, 80_000)]), build_histogram([(0, 10, 50)])
    points = [minute(9, completed=1)._replace(wait=slow), minute(3)._replace(wait=fast)]
    waits = draw(points, HOUR, NOW).waits
    assert waits.paths["p99"].count("M") == 2  # with a gap
    assert waits.whole["p50"] == pytest.approx(10)
    assert (waits.whole["p99"] or 0) > 10_000
    assert waits.summary.startswith("In the last hour, wait times: p50 10ms")
    assert [one.text.partition(",")[0] for one in waits.readings] == ["p50 20s", "p50 5ms"]


def test_without_data_nothing_is_drawn() -> None:
    empty = draw([], HOUR, NOW)
    assert empty.is_empty
    assert empty.flow.bars == []


@pytest.mark.parametrize(
    "top, labels",
    [
        (0, "0 1"),
        (1, "0 1"),
        (7, "0 2 4 6 8"),
        (42, "0 20 40 60"),
        (250, "0 100 200 300"),
        (4000, "0 1,000 2,000 3,000 4,000"),
    ],
)
def test_an_axis_of_counts_has_round_steps(top: float, labels: str) -> None:
    assert " ".join(tick.label for tick in count_scale(top).ticks) == labels


@pytest.mark.parametrize(
    "least, most, labels",
    [
        (800, 900, "1s 500ms"),
        (12, 900, "1s 200ms 50ms 10ms"),
        (3000, 500_000, "10m 2m 30s 5s 1s"),
        (5, 5_000_000, "2h 2m 2s 50ms 1ms"),
    ],
)
def test_an_axis_of_times_is_logarithmic_and_has_steps_of_a_clock(least: float, most: float, labels: str) -> None:
    scale = time_scale([least, most])
    assert " ".join(tick.label for tick in scale.ticks) == labels
    assert all(0 <= tick.at <= HEIGHT for tick in scale.ticks)
    assert 0 <= scale.y(most) < scale.y(least) <= HEIGHT


@pytest.mark.parametrize(
    "length, labels",
    [
        (15 * MINUTE_MS, "22:05 22:10"),
        (HOUR_MS, "22:10 22:20 22:30 22:40 22:50"),
        (DAY_MS, "00:00 04:00 08:00"),
        (7 * DAY_MS, "Nov 23 Nov 24 Nov 25"),
    ],
)
def test_the_time_axis_has_round_times_of_the_clock(length: int, labels: str) -> None:
    begin = 1_795_298_400_000  # 2026-11-21 22:00 UTC
    found = " ".join(tick.label for tick in clock_ticks(begin, begin + length))
    assert found.startswith(labels) or labels in found, found


def test_a_sparkline_has_a_bar_for_each_value_that_is_not_zero() -> None:
    drawn = sparkline([0, 5, 10], "15 runs", ["dead", "dead", "completed"])
    assert [(bar.kind, bar.height) for bar in drawn.bars] == [("dead", SPARK_HEIGHT / 2), ("completed", SPARK_HEIGHT)]
