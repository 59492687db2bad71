"""The screen of one job: its details and its log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer

from queuectl.clock import Cancelled
from queuectl.errors import JobNotFound, Unavailable
from queuectl.jobs.model import Job
from queuectl.jobs.states import is_final
from queuectl.store_threads import StorePool
from queuectl.tui import view_model
from queuectl.tui.job_table import JOB_BINDINGS
from queuectl.tui.log_pane import LogPane
from queuectl.tui.screens import Prompt, close_screen
from queuectl.tui.session import Detail, Session, read_detail
from queuectl.tui.widgets import HELP_BINDING, Line

if TYPE_CHECKING:
    from queuectl.tui.app import Top


class JobScreen(Screen[None]):
    BINDINGS = [  # noqa: RUF012 - as textual declares it
        HELP_BINDING,
        Binding("q,escape", "leave", "back", key_display="q"),
        Binding("l", "log_only", "log only"),
        *JOB_BINDINGS,
    ]

    app: Top

    def __init__(self, job: Job, *, log_only: bool) -> None:
        super().__init__()
        self.job = job
        self._log_thread: StorePool[Session] | None = None
        self._is_followed = False
        # Kept as attributes instead of queried: results may arrive before the screen is mounted or after it is closed.
        self._fact_lines, self._partial_line = Line(id="facts"), Line(id="partial")
        self.log_pane = LogPane(id="log", on_partial=self._show_partial)
        self.set_class(log_only, "-log-only")

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="details") as details:
            details.border_title = Text(f"Job {self.job.id}")
            yield self._fact_lines
        self.log_pane.border_title = Text(f"Log of {self.job.id}")
        yield self.log_pane
        yield self._partial_line
        yield Line(id="problem")
        yield Line(id="say")
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        self.log_pane.focus()
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
        """Read and show the job. Raises Cancelled and Unavailable."""
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

    async def _follow_on(self, thread: StorePool[Session]) -> None:
        await self.log_pane.follow(thread, self.job.id)
        self._is_followed = False

    def _show_partial(self, line: Text) -> None:
        self._partial_line.display = bool(line)
        self._partial_line.put(line)

    def on_log_pane_search_requested(self, event: LogPane.SearchRequested) -> None:
        def take(text: str | None) -> None:
            if text is not None:
                self.log_pane.search(text)

        self.app.push_screen(Prompt("Search the log", event.text, hint="enter: search  esc: back"), take)

    def action_leave(self) -> None:
        close_screen(self)

    def action_log_only(self) -> None:
        self.toggle_class("-log-only")
