"""Widgets: lines and tables that are refreshed often, and the log of a job."""

from __future__ import annotations

import asyncio
import codecs
import re
from collections.abc import Callable, Sequence
from concurrent.futures import TimeoutError as StillWaiting
from typing import Final

from rich.text import Text
from textual.binding import Binding
from textual.coordinate import Coordinate
from textual.widgets import DataTable, RichLog, Static

from queuectl.clock import Cancelled
from queuectl.config import host_name
from queuectl.errors import Unavailable
from queuectl.operations import logs
from queuectl.operations.logs import LogView
from queuectl.store_threads import StorePool
from queuectl.text import escape_control
from queuectl.tui.session import Session
from queuectl.tui.view_model import Column, Row


class Line(Static):
    """Text of one or more lines."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._text = Text()

    def put(self, text: Text) -> None:
        if text != self._text or text.spans != self._text.spans:
            self._text = text
            self.update(text)


class Rows(DataTable[Text]):
    BINDINGS = [  # noqa: RUF012 - as textual declares it
        Binding("j", "cursor_down", "down", show=False),
        Binding("k", "cursor_up", "up", show=False),
    ]

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id, cursor_type="row", cell_padding=0, zebra_stripes=False)
        self._columns: list[Column] = []
        self._rows: list[Row] = []

    @property
    def selected(self) -> str | None:
        """The key of the row that the cursor is on."""
        return self._rows[self.cursor_row].key if 0 <= self.cursor_row < len(self._rows) else None

    def present(self, columns: Sequence[Column], rows: Sequence[Row]) -> None:
        columns, rows = list(columns), list(rows)
        if columns != self._columns or [row.key for row in rows] != [row.key for row in self._rows]:
            self._rebuild(columns, rows)
            return
        # A change makes the cells that textual has cached useless, and it would keep ten thousand of them.
        if rows != self._rows:
            self._clear_caches()
        for at, (before, row) in enumerate(zip(self._rows, rows, strict=True)):
            for column, (was, cell) in enumerate(zip(before.cells, row.cells, strict=True)):
                if was != cell or was.style != cell.style:
                    self.update_cell_at(Coordinate(at, column), _fit(cell, columns[column]))
        self._rows = rows

    def _rebuild(self, columns: list[Column], rows: list[Row]) -> None:
        key, at, scroll = self.selected, self.cursor_row, self.scroll_y
        has_new_columns = columns != self._columns
        self._columns, self._rows = columns, rows
        with self.app.batch_update():
            self.clear(columns=has_new_columns)
            if has_new_columns:
                for label, width in columns:
                    self.add_column(Text(label, style="dim"), width=width, key=label)
            for row in rows:
                cells = [_fit(cell, column) for cell, column in zip(row.cells, columns, strict=True)]
                self.add_row(*cells, key=row.key)
            indices = {row.key: index for index, row in enumerate(rows)}
            index = indices.get(key, min(at, len(rows) - 1)) if key is not None else 0
            # At the top, show new rows; otherwise keep the selected row in its position on the screen.
            self.move_cursor(row=max(0, index), scroll=False)
            self.scroll_to(y=scroll + (index - at if scroll else 0), animate=False, force=True)


def _fit(cell: Text, column: Column) -> Text:
    fitted = cell.copy()
    fitted.truncate(max(1, column.width - 1), overflow="ellipsis")
    return fitted


MAX_LINE_LENGTH: Final = 4_096  # characters; the rest of a line is dropped
MAX_LINES: Final = 2_000

# The length is limited: a job may print very long sequences, which are dropped.
_COLOR: Final = re.compile(r"\x1b\[[0-9;:]{0,64}m")
# Any other sequence: CSI; OSC, DCS, SOS, PM and APC with their content; those of two characters.
_SEQUENCE: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]|\x9b[0-?]*[ -/]*[@-~]"
)


class LineSplitter:
    """Splits output into lines, in bounded memory for lines of any length."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.partial = ""  # of a line that has not ended

    def feed(self, data: bytes, *, final: bool = False) -> list[str]:
        *ended, last = (self.partial + self._decoder.decode(data, final)).split("\n")
        if final and last:
            ended, last = [*ended, last], ""
        # Progress bars use carriage returns: keep only the last state.
        self.partial = (
            last.rpartition("\r")[2][-MAX_LINE_LENGTH:] if not last.endswith("\r") else last[-MAX_LINE_LENGTH:]
        )
        return ended[-MAX_LINES:]


def safe(line: str) -> Text:
    """Render one line with its colors, without other terminal sequences, and with control characters escaped."""
    line = line.rstrip("\r").rpartition("\r")[2][:MAX_LINE_LENGTH].expandtabs(8)
    kept, at = [], 0
    for found in _COLOR.finditer(line):
        kept += [_plain(line[at : found.start()]), found[0]]
        at = found.end()
    # Parse the line at once: parsing it for each color would be quadratic.
    return Text.from_ansi("".join([*kept, _plain(line[at:])]), end="")


def _plain(text: str) -> str:
    return escape_control(_SEQUENCE.sub("", text))


RETRY_SECONDS: Final = 1.0


def _show_and_wait(
    session: Session, loop: asyncio.AbstractEventLoop, show: Callable[[bytes], None], data: bytes
) -> None:
    """Show data and wait until it is on the screen, so that the output of a fast job does not fill the memory."""

    async def on_screen() -> None:
        show(data)

    task = asyncio.run_coroutine_threadsafe(on_screen(), loop)
    while True:
        try:
            task.result(0.1)
        except StillWaiting:
            pass
        else:
            session.clock.sleep(0)
            return


class LogPane(RichLog):
    """The last lines of a log. Follows new lines unless the user has scrolled up."""

    def __init__(self, *, id: str, on_partial: Callable[[Text], None]) -> None:
        """`on_partial` is called with the incomplete last line when it changes."""
        super().__init__(
            id=id, max_lines=MAX_LINES, wrap=True, markup=False, highlight=False, min_width=20, auto_scroll=False
        )
        self._on_partial = on_partial

    async def follow(self, thread: StorePool[Session], job_id: str) -> None:
        """Follow the log until the job has ended or the thread is closed. Retries while the database is unavailable."""
        while True:
            try:
                await self._follow_once(thread, job_id)
            except Cancelled:
                return
            except Unavailable:  # shown in the problem line
                await asyncio.sleep(RETRY_SECONDS)
            else:
                return

    async def _follow_once(self, thread: StorePool[Session], job_id: str) -> None:
        self.clear()
        self._on_partial(Text("no output yet", style="dim"))
        loop, lines = asyncio.get_running_loop(), LineSplitter()

        def show(data: bytes) -> None:
            self._add(lines.feed(data))
            self._on_partial(safe(lines.partial))

        def work(session: Session) -> None:
            reads = session.find()
            view = LogView(tail=MAX_LINES)
            for piece in logs.follow_logs(reads, session.clock, [job_id], view, host=host_name()) if reads else ():
                _show_and_wait(session, loop, show, piece.data)

        await thread.ask(work)
        self._add(lines.feed(b"", final=True))
        self._on_partial(Text() if self.lines else Text("no output", style="dim"))

    def _add(self, lines: Sequence[str]) -> None:
        # The target, not the position: a key press that scrolls up is animated and has not moved the view yet.
        follows = self.scroll_target_y >= self.max_scroll_y
        if follows:
            self.anchor()
        top = None if follows else self.lines[int(self.scroll_target_y)]
        for line in lines:
            self.write(safe(line))
        if top is None or top is self.lines[int(self.scroll_target_y)]:
            return
        # Lines above the view were dropped to stay within `max_lines`: keep showing the same ones.
        kept = next((number for number, line in enumerate(self.lines) if line is top), 0)
        self.scroll_to(y=kept, animate=False)
