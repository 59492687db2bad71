"""The log of a job: its last lines, which can be followed, scrolled and searched."""

from __future__ import annotations

import asyncio
import codecs
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import TimeoutError as StillWaiting
from typing import Final, NamedTuple

from rich.cells import chop_cells
from rich.text import Text
from textual.binding import Binding
from textual.events import Resize
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from queuectl.clock import Cancelled
from queuectl.config import host_name
from queuectl.errors import Unavailable
from queuectl.operations import logs
from queuectl.operations.logs import LogView
from queuectl.store_threads import StorePool
from queuectl.text import escape_control
from queuectl.tui.session import Session

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


class _Row(NamedTuple):
    """A row of the screen: a part of a line. Lines are counted from the start of the log that was read."""

    line: int
    start: int
    end: int


_HIT_STYLE: Final = "reverse"
_CURRENT_HIT_STYLE: Final = "bold reverse underline"


class LogPane(ScrollView, can_focus=True):
    """The last lines of a log. Follows new lines while its end is on the screen.

    Lines are wrapped at any character, as terminals do, so that a row is a part of its line: the lines stay as they are when the
    width changes, and are colored and searched as a whole.
    """

    BINDINGS = [  # noqa: RUF012 - as textual declares it
        Binding("slash", "search", "search", key_display="/"),
        Binding("n", "next_hit(1)", "next", key_display="n/N"),
        Binding("N", "next_hit(-1)", "previous", show=False),
        Binding("w", "wrap", "wrap"),
        Binding("G,end", "follow", "follow", key_display="G"),
        Binding("g,home", "scroll_home", "top", key_display="g"),
        Binding("j", "scroll_down", "down", show=False),
        Binding("k", "scroll_up", "up", show=False),
        Binding("space,ctrl+d", "page_down", "page down", show=False),
        Binding("b,ctrl+u", "page_up", "page up", show=False),
    ]

    class SearchRequested(Message):
        """The user wants to enter a text to search for."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, *, id: str, on_partial: Callable[[Text], None]) -> None:
        """`on_partial` is called with the incomplete last line when it changes."""
        super().__init__(id=id)
        self._on_partial = on_partial
        self._lines: list[Text] = []
        self._dropped = 0  # lines before the first one that is kept
        self._rows: list[_Row] = []
        self._wraps = True
        self._search: re.Pattern[str] | None = None
        self._hit: int | None = None  # the line that `n` continues from
        self._is_held = False  # after a search, also at the end: new lines would move the one that was found
        self.searched = ""

    # ── lines and rows ──────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def row_count(self) -> int:
        return len(self._rows)

    def row_text(self, row: int) -> str:
        line, start, end = self._rows[row]
        return self._lines[line - self._dropped].plain[start:end]

    @property
    def is_following(self) -> bool:
        # The target, not the position: a key press that scrolls up is animated and has not moved the view yet.
        return not self._is_held and self.scroll_target_y >= self.max_scroll_y

    def _width(self) -> int:
        return self.scrollable_content_region.width

    def _split(self, number: int, text: str) -> Iterator[_Row]:
        width = self._width()
        if not self._wraps or width <= 0 or len(text) * 2 <= width:
            yield _Row(number, 0, len(text))
            return
        at = 0
        for part in chop_cells(text, width) or [""]:
            yield _Row(number, at, at + len(part))
            at += len(part)

    def _add(self, lines: Sequence[str]) -> None:
        if not lines:
            return
        follows = self.is_following
        first = self._dropped + len(self._lines)
        added = [safe(line) for line in lines]
        self._lines += added
        for number, line in enumerate(added, first):
            self._rows.extend(self._split(number, line.plain))
        removed = 0
        if (excess := len(self._lines) - MAX_LINES) > 0:
            del self._lines[:excess]
            self._dropped += excess
            removed = next((row for row, one in enumerate(self._rows) if one.line >= self._dropped), len(self._rows))
            del self._rows[:removed]
        self._measure()
        if follows:
            self._jump(self.max_scroll_y)
        elif removed:  # keep showing the same lines
            self._jump(max(0, int(self.scroll_target_y) - removed))
        elif self.searched:
            self._show_state()

    def _rebuild(self) -> None:
        """Divide the lines into rows again, and keep the first line on the screen, or the end."""
        follows, top = self.is_following, self._top_line()
        self._rows = [
            row for number, line in enumerate(self._lines, self._dropped) for row in self._split(number, line.plain)
        ]
        self._measure()
        self._jump(self.max_scroll_y if follows else self._row_of(top))

    def _measure(self) -> None:
        width = 0 if self._wraps else max((line.cell_len for line in self._lines), default=0)
        self.virtual_size = Size(width, len(self._rows))
        self.refresh()

    def _jump(self, row: float) -> None:
        self.scroll_to(y=row, animate=False, force=True)
        self._show_state()

    def _top_line(self) -> int:
        row = int(self.scroll_target_y)
        return self._rows[row].line if row < len(self._rows) else 0

    def _row_of(self, line: int) -> int:
        return next((row for row, one in enumerate(self._rows) if one.line >= line), 0)

    def clear(self) -> None:
        self._lines, self._rows, self._dropped, self._hit, self._is_held = [], [], 0, None, False
        self._measure()

    def on_resize(self, _: Resize) -> None:
        self._rebuild()

    def render_line(self, y: int) -> Strip:
        scroll_x, scroll_y = self.scroll_offset
        width, style = self._width(), self.rich_style
        if scroll_y + y >= len(self._rows):
            return Strip.blank(width, style)
        number, start, end = self._rows[scroll_y + y]
        line = self._lines[number - self._dropped]
        if self._search is not None:
            hit_style = _CURRENT_HIT_STYLE if number == self._hit else _HIT_STYLE
            line = line.copy()
            for hit in self._search.finditer(line.plain):
                line.stylize(hit_style, hit.start(), hit.end())
        strip = Strip(list(line[start:end].render(self.app.console)))
        return strip.crop_extend(scroll_x, scroll_x + width, style).apply_style(style)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if new_value > old_value and new_value >= self.max_scroll_y:
            self._is_held = False
        self._show_state()

    def _show_state(self) -> None:
        parts = [] if self._wraps else ["no wrap"]
        if self.searched:
            hits = self._hits()
            at = f"{hits.index(self._hit) + 1} of " if self._hit in hits else ""
            parts.append(f"{self.searched!r}: {at}{len(hits):,} {'line' if len(hits) == 1 else 'lines'}")
        if not self.is_following:
            parts.append("scrolled, G follows")
        self.border_subtitle = Text(escape_control("  ".join(parts)))

    # ── keys ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def action_follow(self) -> None:
        self._is_held = False
        self._jump(self.max_scroll_y)

    def action_wrap(self) -> None:
        self._wraps = not self._wraps
        self.scroll_to(x=0, animate=False, force=True)
        self._rebuild()

    def action_search(self) -> None:
        self.post_message(self.SearchRequested(self.searched))

    def search(self, text: str) -> None:
        """Highlight the text, in any case, and show the first line with it from the top of the screen on, else the last one before."""
        self.searched = text
        self._search = re.compile(re.escape(text), re.IGNORECASE) if text else None
        hits, top = self._hits(), self._top_line()
        self._go_to(next((line for line in hits if line >= top), hits[-1] if hits else None))

    def action_next_hit(self, step: int) -> None:
        if not self.searched:
            self.action_search()
            return
        hits = self._hits()
        at = self._top_line() if self._hit is None else self._hit
        ahead = [line for line in hits if (line > at if step > 0 else line < at)]
        # At the end, start again at the other one.
        found = ahead or hits
        self._go_to(found[0 if step > 0 else -1] if found else None)

    def _hits(self) -> list[int]:
        if self._search is None:
            return []
        search = self._search.search
        return [number for number, line in enumerate(self._lines, self._dropped) if search(line.plain)]

    def _go_to(self, line: int | None) -> None:
        self._hit = line
        if line is not None:
            row, height = self._row_of(line), self.scrollable_content_region.height
            if not self.scroll_target_y <= row < self.scroll_target_y + height:
                self._jump(max(0, min(row - height // 3, self.max_scroll_y)))
            self._is_held = True
        self.refresh()
        self._show_state()

    # ── follow ──────────────────────────────────────────────────────────────────────────────────────────────────────

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
        self._on_partial(Text() if self._lines else Text("no output", style="dim"))
