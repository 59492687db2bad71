"""Screens: one job with its log, prompts, confirmations and help."""

from __future__ import annotations

import asyncio
import codecs
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, RichLog

from queuectl.clock import Cancelled
from queuectl.errors import JobNotFound, Unavailable
from queuectl.jobs.model import Job
from queuectl.jobs.states import is_final
from queuectl.operations import logs
from queuectl.operations.logs import LogView
from queuectl.text import escape_control
from queuectl.tui import view_model
from queuectl.tui.dialogs import _show_and_wait, close_screen
from queuectl.tui.store_threads import StoreSession, StoreThread
from queuectl.tui.table import Line
from queuectl.tui.view_model import Detail, read_detail

if TYPE_CHECKING:
    from queuectl.tui.app import Top

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


class LogPane(RichLog):
    """The last lines of a log. Follows new lines unless the user has scrolled up."""

    def __init__(self, *, id: str, on_partial: Callable[[Text], None]) -> None:
        """`on_partial` is called with the incomplete last line when it changes."""
        super().__init__(
            id=id, max_lines=MAX_LINES, wrap=True, markup=False, highlight=False, min_width=20, auto_scroll=False
        )
        self._on_partial = on_partial

    async def follow(self, thread: StoreThread, job_id: str) -> None:
        """Follow the log until the job has ended or the thread is closed. Retries while the database is unavailable."""
        loop = asyncio.get_running_loop()
        while True:
            self.clear()
            self._on_partial(Text("no output yet", style="dim"))
            lines = LineSplitter()

            def show(data: bytes, lines: LineSplitter = lines) -> None:
                self._show(lines, data)

            def work(session: StoreSession, show: Callable[[bytes], None] = show) -> None:
                reads = session.find()
                view = LogView(tail=MAX_LINES)
                for piece in logs.follow_logs(reads, session.clock, [job_id], view, host=session.host) if reads else ():
                    _show_and_wait(session, loop, show, piece.data)

            try:
                await thread.ask(work)
            except Cancelled:
                return
            except Unavailable:  # shown in the problem line
                await asyncio.sleep(RETRY_SECONDS)
                continue
            self._add(lines.feed(b"", final=True))
            self._on_partial(Text() if self.lines else Text("no output", style="dim"))
            return

    def _show(self, lines: LineSplitter, data: bytes) -> None:
        self._add(lines.feed(data))
        self._on_partial(safe(lines.partial))

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


class JobScreen(Screen[None]):
    BINDINGS = [  # noqa: RUF012 - as textual declares it
        Binding("q,escape", "leave", "back"),
        Binding("l", "log_only", "log"),
        # Not for one job: hidden, to leave space in the footer.
        Binding("e", "app.enqueue", "add", show=False),
        Binding("slash", "pass", "find", show=False),
        Binding("s", "pass", "state", show=False),
    ]

    app: Top

    def __init__(self, job: Job, *, log_only: bool) -> None:
        super().__init__()
        self.job = job
        self._log_thread: StoreThread | None = None
        self._is_followed = False
        # Kept as attributes instead of queried: results may arrive before the screen is mounted or after it is closed.
        self._fact_lines, self._partial_line = Line(id="facts"), Line(id="partial")
        self._log_pane = LogPane(id="log", on_partial=self._show_partial)
        self.set_class(log_only, "-log-only")

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="details"):
            yield self._fact_lines
        yield self._log_pane
        yield self._partial_line
        yield Line(id="problem")
        yield Line(id="say")
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        self._log_pane.focus()
        self._follow()
        self.run_worker(self._refresh_at_once(), group="detail")

    def on_unmount(self) -> None:
        if self._log_thread is not None:
            self.app.threads.shut(self._log_thread)

    async def _refresh_at_once(self) -> None:
        try:
            await self.refresh_job()
        except (Cancelled, Unavailable):
            pass  # the view is closing, or the refresh loop reports it and retries

    async def refresh_job(self) -> None:
        """Read and show the job. Raises Left and Unavailable."""
        try:
            seen: Detail = await self.app.threads.reads.ask(lambda session: read_detail(session, self.job.id))
        except JobNotFound:
            self._fact_lines.put(Text(f"{self.job.id} was removed"))
            return
        self.job = seen.job
        self._fact_lines.put(view_model.detail_lines(seen))
        if not self._is_followed and not is_final(seen.job.state):
            self._follow()  # it was retried

    def _follow(self) -> None:
        if self._log_thread is None:
            self._log_thread = self.app.threads.open()
        self._is_followed = True
        self.run_worker(self._follow_on(self._log_thread), group="follow", exclusive=True)

    async def _follow_on(self, thread: StoreThread) -> None:
        await self._log_pane.follow(thread, self.job.id)
        self._is_followed = False

    def _show_partial(self, line: Text) -> None:
        self._partial_line.display = bool(line)
        self._partial_line.put(line)

    def action_leave(self) -> None:
        close_screen(self)

    def action_pass(self) -> None:
        """Ignore these keys of the main screen."""

    def action_log_only(self) -> None:
        self.toggle_class("-log-only")
