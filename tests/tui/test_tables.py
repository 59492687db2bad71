from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rich.text import Text

from queuectl.client import Queue
from queuectl.jobs.states import State
from queuectl.tui.tables import (
    batch_columns,
    job_columns,
    note,
    progress_bar,
    queue_columns,
    schedule_columns,
    with_relative_times,
    worker_columns,
)
from queuectl.tui.view_model import SPARK_BARS, Rate, Trend, sparkline, tabs
from queuectl.units import parse_time_ms

NOW = parse_time_ms("2026-11-18T07:00:00Z", subject="now", local=None)


@pytest.mark.parametrize(
    "reason, shown",
    [
        ("retry at 2026-11-18T07:03:00.000Z, attempt 2 of 3", "retry in 3m, attempt 2 of 3"),
        ("not due until 2026-11-18T09:00:00.000Z", "due in 2h"),
        ("rate of the queue reached: next at 2026-11-18T07:00:05.500Z", "rate of the queue reached: next in 5s"),
        ("retry at 2026-11-18T06:59:59.000Z, attempt 2 of 3", "retry now, attempt 2 of 3"),
        ("waits for a free slot", "waits for a free slot"),
    ],
)
def test_a_reason_has_relative_times(reason: str, shown: str) -> None:
    assert with_relative_times(reason, NOW) == shown


def test_columns_fit_into_their_width() -> None:
    for width in range(40, 200):
        for columns in (
            job_columns(width),
            queue_columns(width, is_panel=True),
            queue_columns(width, is_panel=False),
            worker_columns(width, is_panel=False),
            schedule_columns(width),
            batch_columns(width),
        ):
            assert sum(column.width for column in columns) <= width, (width, columns)


def test_a_bar_shows_done_and_failed_parts() -> None:
    assert progress_bar(6, 12).plain == "██████░░░░░░"
    assert progress_bar(12, 12, failed=1).plain == "███████████▒"
    assert progress_bar(0, 0).plain == "░" * 12


def test_a_sparkline_has_a_bar_for_each_value() -> None:
    assert sparkline([0, 1, 100]) == "▁▂█"
    assert sparkline([0, 0]) == "▁▁"
    assert sparkline([]) == ""


def test_a_trend_is_that_of_the_last_minute() -> None:
    trend = Trend()
    for second in range(300):
        trend.see(float(second), second)
    values = trend.values()
    assert len(values) == SPARK_BARS
    assert values == sorted(values)
    assert values[-1] == 299
    assert values[0] >= 299 - 63


def test_bars_of_a_rate_add_up_to_what_was_completed() -> None:
    rate = Rate()
    for second in range(61):
        rate.see(600.0 + second, second * 5)
    assert sum(rate.bars()) == pytest.approx(300)
    assert len(rate.bars()) == SPARK_BARS


def test_bars_of_a_rate_are_even_between_rare_samples() -> None:
    rate = Rate()
    for second in range(0, 61, 5):
        rate.see(600.0 + second, second * 5)
    assert rate.bars() == pytest.approx([15.0] * SPARK_BARS)


@pytest.mark.parametrize(
    "width, shown",
    [(40, " 1 Jobs  2 Dead "), (20, " 1 Jobs  2 Dead "), (12, " 2 Dead ")],
)
def test_the_line_of_tabs_fits(width: int, shown: str) -> None:
    names = {"jobs": ("Jobs", "Jobs"), "dead": ("Dead jobs", "Dead")}
    line = tabs(names, "dead", {}, more=Text(), width=width)
    assert line.plain == (" 1 Jobs  2 Dead jobs " if width == 40 else shown)


def test_the_note_of_a_failure_begins_with_its_last_line(home: Path) -> None:
    with Queue(home) as queue:
        job = queue.enqueue("false", delay="1h")
    failed = replace(
        job,
        state=State.FAILED,
        error="exit code 2",
        last_output="db: timeout\x1b[2J",
        reason="retry at 2026-11-18T07:03:00.000Z, attempt 2 of 3",
    )
    assert note(failed, NOW) == "db: timeout\\x1b[2J (exit code 2)  retry in 3m"
    assert note(replace(failed, last_output=None), NOW) == "exit code 2  retry in 3m"
    assert note(replace(job, reason="not due until 2026-11-18T09:00:00.000Z"), NOW) == "", "the column WHEN has it"
