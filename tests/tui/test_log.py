"""The log of a job: follow, scroll, search and wrap."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from textual.pilot import Pilot

from queuectl.client import Queue
from queuectl.tui.app import Top
from queuectl.tui.job_screen import JobScreen
from queuectl.tui.log_pane import MAX_LINES, LogPane
from queuectl.tui.screens import Prompt
from tests.program import WorkerProcess
from tests.tui.view import lines_of, play, states_of, view
from tests.wait import until

StartWorker = Callable[..., WorkerProcess]


@pytest.fixture
def queue(home: Path) -> Iterator[Queue]:
    with Queue(home) as made:
        yield made


class Printing(NamedTuple):
    """A job that prints as many numbered lines as the test asks for, in the log-only view."""

    home: Path
    app: Top
    pilot: Pilot[None]

    @property
    def pane(self) -> LogPane:
        return self.app.screen.query_one(LogPane)

    @property
    def top(self) -> str:
        """The first line on the screen."""
        return self.pane.row_text(self.pane.scroll_offset.y)

    async def print_to(self, last: int) -> None:
        (self.home / "new").write_text(str(last))
        (self.home / "new").rename(self.home / "last")
        wanted = [f"line {last}"]  # there are no lines before the first output
        await until(lambda: lines_of(self.pane)[-1:] == wanted, what=wanted[0])
        await self.pilot.pause()


@asynccontextmanager
async def printing(home: Path, queue: Queue) -> AsyncIterator[Printing]:
    script = (
        "i=0; while :; do last=$(cat last 2>/dev/null || echo 0); "
        "while [ $i -lt $last ]; do i=$((i+1)); echo line $i; done; sleep 0.02; done"
    )
    job = queue.enqueue(script, cwd=str(home)).id
    async with view(home) as (app, pilot):
        await until(lambda: states_of(app).get(job) == "processing", what="the job to run")
        await pilot.press("l")
        await until(lambda: isinstance(app.screen, JobScreen), what="the log of the job")
        yield Printing(home, app, pilot)


@pytest.mark.parametrize("key", ["up", "pageup", "home"])
def test_a_live_log_stays_where_the_user_has_scrolled_to(
    home: Path, queue: Queue, start_worker: StartWorker, key: str
) -> None:
    start_worker()

    async def scene() -> None:
        async with printing(home, queue) as log:
            await log.print_to(200)
            end = log.pane.max_scroll_y
            await log.pilot.press(key)
            await until(lambda: log.pane.scroll_y == log.pane.scroll_target_y < end, what="the view to scroll up")
            seen = log.top
            await log.print_to(300)
            assert log.top == seen

    play(scene)


def test_a_live_log_scrolls_along_again_once_the_user_is_back_at_its_end(
    home: Path, queue: Queue, start_worker: StartWorker
) -> None:
    start_worker()

    async def scene() -> None:
        async with printing(home, queue) as log:
            await log.print_to(200)
            await log.pilot.press("pageup")
            await until(lambda: log.pane.scroll_y == log.pane.scroll_target_y, what="the view to scroll up")
            assert not log.pane.is_vertical_scroll_end
            await log.pilot.press("pagedown")
            await until(lambda: log.pane.is_vertical_scroll_end, what="the view to be at the end")
            await log.print_to(300)
            await until(lambda: log.pane.is_vertical_scroll_end, what="the last line on the screen")

    play(scene)


def test_a_live_log_keeps_the_lines_on_the_screen_when_it_drops_its_oldest(
    home: Path, queue: Queue, start_worker: StartWorker
) -> None:
    start_worker()

    async def scene() -> None:
        async with printing(home, queue) as log:
            await log.print_to(MAX_LINES - 50)
            await log.pilot.press("pageup")
            await until(lambda: log.pane.scroll_y == log.pane.scroll_target_y, what="the view to scroll up")
            seen = log.top
            await log.print_to(MAX_LINES + 500)
            assert log.pane.row_count == MAX_LINES
            assert log.top == seen

    play(scene)


def test_a_live_log_is_searched_while_it_grows(home: Path, queue: Queue, start_worker: StartWorker) -> None:
    start_worker()

    async def scene() -> None:
        async with printing(home, queue) as log:
            await log.print_to(300)
            await log.pilot.press("slash")
            await until(lambda: isinstance(log.app.screen, Prompt), what="the line")
            await log.pilot.press(*"LINE", "space", "5", "0", "enter")

            def shown() -> list[str]:
                top = int(log.pane.scroll_target_y)
                return lines_of(log.pane)[top : top + log.pane.size.height]

            await until(lambda: "line 50" in shown(), what="the line")
            assert "1 of 1 line" in str(log.pane._border_subtitle)
            (row,) = [row for row, text in enumerate(shown()) if text == "line 50"]
            strip = log.pane.render_line(row)
            assert any(part.style and part.style.reverse for part in strip if "line 50" in part.text), (
                "it is highlighted"
            )
            seen = shown()
            await log.print_to(520)
            assert shown() == seen, "new lines do not move the view"
            await log.pilot.press("n")
            await until(lambda: "line 500" in shown(), what="the next one, which was printed meanwhile")
            await log.pilot.press("N")
            await until(lambda: "line 50" in shown(), what="the one before")
            await log.pilot.press("G")
            await log.print_to(530)
            await until(lambda: log.pane.is_vertical_scroll_end, what="the log to be followed again")
            log.pane.search("line 530")
            seen = shown()
            assert seen[-1] == "line 530"
            await log.print_to(540)
            assert shown() == seen, "a line that was found at the end stays on the screen"
            await log.pilot.press("G")
            await until(lambda: shown()[-1] == "line 540", what="the end")

    play(scene)


def test_long_lines_are_wrapped_or_scrolled_sideways(home: Path, queue: Queue, start_worker: StartWorker) -> None:
    start_worker()
    text = "".join(f"{number:04}" for number in range(100))
    job = queue.enqueue(f"printf '\\033[31m{text}\\033[0m\\nlast\\n'").id

    async def scene() -> None:
        async with view(home, size=(80, 24)) as (app, pilot):
            await until(lambda: states_of(app).get(job) == "completed", what="the end")
            await pilot.press("l")
            await until(lambda: isinstance(app.screen, JobScreen), what="the log of the job")
            pane = app.screen.query_one(LogPane)
            await until(lambda: "last" in lines_of(pane), what="the output")
            rows = lines_of(pane)
            assert "".join(rows[1 : rows.index("last")]) == text
            assert all(len(row) <= 78 for row in rows)
            await pilot.press("w")
            assert lines_of(pane)[1] == text
            await pilot.press("right")
            await until(lambda: pane.scroll_x > 0, what="the view to scroll sideways")
            await pilot.press("w")
            assert lines_of(pane) == rows
            assert pane.scroll_x == 0
            await pilot.resize_terminal(60, 24)
            await until(lambda: max(map(len, lines_of(pane))) <= 58, what="the lines to be divided again")

    play(scene)
