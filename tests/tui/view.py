"""The view on a virtual screen, driven by keys, against a real database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual.pilot import Pilot
from textual.widgets import Static

from queuectl.tui.app import Top
from queuectl.tui.log_pane import LogPane
from queuectl.tui.widgets import Rows


@asynccontextmanager
async def view(
    home: Path, *, db: str | None = None, size: tuple[int, int] = (100, 30)
) -> AsyncIterator[tuple[Top, Pilot[None]]]:
    app = Top(str(home), db)
    try:
        async with app.run_test(size=size) as pilot:
            yield app, pilot
    finally:
        app.threads.close()


def text_of(app: Top, name: str) -> str:
    """What stands in a line of the screen that is on top; nothing while that is being made."""
    return "".join(str(line.render()) for line in app.screen.query(name).results(Static))


def rows_of(app: Top, name: str) -> dict[str, list[str]]:
    table = app.screen_stack[0].query_one(name, Rows)
    return {row.key: [cell.plain for cell in row.cells] for row in table._rows}


def lines_of(pane: LogPane) -> list[str]:
    """The rows of a log."""
    return [pane.row_text(row) for row in range(pane.row_count)]


def titles_of(app: Top, name: str) -> tuple[str, str]:
    """The texts in the upper and the lower border of a pane."""
    pane = app.screen_stack[0].query_one(name)
    return str(pane._border_title or ""), str(pane._border_subtitle or "")


def dialog_of(app: Top) -> str:
    """The text of the question that is on top."""
    return text_of(app, "#dialog")


def states_of(app: Top) -> dict[str, str]:
    return {key: cells[1] for key, cells in rows_of(app, "#jobs").items() if len(cells) > 1}  # a hint has one


def play(scene: Callable[[], Coroutine[Any, Any, None]]) -> None:
    # Where tests of the pages came before in this process, the loop of their browser waits behind us, and counts as running.
    behind = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        asyncio.run(scene())
    finally:
        asyncio._set_running_loop(behind)
