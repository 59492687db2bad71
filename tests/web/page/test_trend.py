"""Charts over time: nothing is missing, nothing is counted twice."""

from __future__ import annotations

import pytest

from queuectl.jobs.stats import ALL_QUEUES, Counts, Point, build_histogram
from queuectl.web.pages.charts import HEIGHT, WINDOWS, Window, draw

NOW = 1_800_000_000_000 + 90_000
MINUTE = 60_000


def minute(ago: int, *, covers: int = 1, **counts: int) -> Point:
    """Looked at so many minutes ago."""
    return Point(NOW - NOW % MINUTE - ago * MINUTE, ALL_QUEUES, covers * MINUTE, Counts(**counts))


def heights(points: list[Point], window: Window, kind: str) -> float:
    """All bars of a kind together, in what they stand for."""
    drawn = draw(points, window, NOW).flow
    return sum(bar.height for bar in drawn.bars if bar.kind == kind) / HEIGHT * drawn.top


@pytest.mark.parametrize("window", WINDOWS, ids=lambda window: window.name)
def test_the_bars_contain_all_runs(window: Window) -> None:
    points = [minute(ago, completed=50, failed=20, dead=10) for ago in (1, 2, 3)]
    assert heights(points, window, "completed") == pytest.approx(150, rel=0.05)
    assert heights(points, window, "failed") == pytest.approx(30, rel=0.05)
    assert tuple(draw(points, window, NOW).flow.total.values()) == pytest.approx((150, 30, 30))


def test_a_late_sample_is_spread_over_its_period() -> None:
    drawn = draw([minute(2, covers=10, completed=100)], WINDOWS[0], NOW).flow
    assert len(drawn.bars) == 10
    assert {bar.height for bar in drawn.bars} == {HEIGHT}


def test_runs_before_the_window_are_not_shown() -> None:
    half = draw([minute(50, covers=18, completed=100)], WINDOWS[0], NOW)
    assert len(half.flow.bars) == 9
    assert half.flow.total["completed"] == pytest.approx(50)
    assert draw([minute(59, completed=100)], WINDOWS[0], NOW).flow.bars == []


def test_percentiles_are_those_of_each_bar_and_of_all() -> None:
    slow, fast = build_histogram([(10, 10, 80_000)]), build_histogram([(0, 10, 50)])
    points = [minute(9)._replace(wait=slow), minute(3)._replace(wait=fast)]
    waits = draw(points, WINDOWS[0], NOW).waits
    assert waits.paths["p99"].count("M") == 2
    assert waits.whole["p50"] == pytest.approx(10)
    assert (waits.whole["p99"] or 0) > 10_000
    assert waits.summary.startswith("In the last hour, waiting times: p50 10ms")


def test_without_data_nothing_is_drawn() -> None:
    empty = draw([], WINDOWS[0], NOW)
    assert empty.is_empty
    assert empty.flow.bars == []
