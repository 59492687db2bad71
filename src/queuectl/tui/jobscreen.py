"""One job: what there is to know about it, and its log as it grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer

from queuectl.clock import Left
from queuectl.errors import JobNotFound, Unavailable
from queuectl.job.lifecycle import is_final
from queuectl.job.model import Job
from queuectl.tui import cells
from queuectl.tui.dialogs import leave
from queuectl.tui.follow import LogPane
from queuectl.tui.glance import Detail, detail
from queuectl.tui.seat import Room
from queuectl.tui.table import Line

if TYPE_CHECKING:
    from queuectl.tui.app import Top


class JobScreen(Screen[None]):
    BINDINGS = [  # noqa: RUF012 - as textual declares it
        Binding("q,escape", "leave", "back"),
        Binding("l", "log_only", "log"),
        # Not of one job: to name them here would only push the others out of the line.
        Binding("e", "app.enqueue", "add", show=False),
        Binding("slash", "pass", "find", show=False),
        Binding("s", "pass", "state", show=False),
    ]

    app: Top

    def __init__(self, job: Job, *, log_only: bool) -> None:
        super().__init__()
        self.job = job
        self._room: Room | None = None
        self._is_followed = False
        # Held, not looked up: an answer may come before they are on the screen, and after it was left.
        self._fact_lines, self._begun_line = Line(id="facts"), Line(id="begun")
        self._log_pane = LogPane(id="log", begun=self._show_begun)
        self.set_class(log_only, "-log-only")

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="details"):
            yield self._fact_lines
        yield self._log_pane
        yield self._begun_line
        yield Line(id="problem")
        yield Line(id="say")
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        self._log_pane.focus()
        self._follow()
        self.run_worker(self._look_at_once(), group="detail")

    def on_unmount(self) -> None:
        if self._room is not None:
            self.app.rooms.shut(self._room)

    async def _look_at_once(self) -> None:
        try:
            await self.look()
        except (Left, Unavailable):
            pass  # nobody looks any more, or whoever watches for the view says so and looks again

    async def look(self) -> None:
        """Show the job as it is now; raises Left and Unavailable."""
        try:
            seen: Detail = await self.app.rooms.looking.ask(lambda seat: detail(seat, self.job.id))
        except JobNotFound:
            self._fact_lines.put(Text(f"{self.job.id} was removed"))
            return
        self.job = seen.job
        self._fact_lines.put(cells.detail_lines(seen))
        if not self._is_followed and not is_final(seen.job.state):
            self._follow()  # it was given another chance

    def _follow(self) -> None:
        if self._room is None:
            self._room = self.app.rooms.open()
        self._is_followed = True
        self.run_worker(self._follow_on(self._room), group="follow", exclusive=True)

    async def _follow_on(self, room: Room) -> None:
        await self._log_pane.follow(room, self.job.id)
        self._is_followed = False

    def _show_begun(self, line: Text) -> None:
        self._begun_line.display = bool(line)
        self._begun_line.put(line)

    def action_leave(self) -> None:
        leave(self)

    def action_pass(self) -> None:
        """Nothing: what these keys change is not on this screen."""

    def action_log_only(self) -> None:
        self.toggle_class("-log-only")
