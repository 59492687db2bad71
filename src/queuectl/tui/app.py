"""The view: what is shown, how often it is looked at, and which key does what."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Final

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.filter import NoColor
from textual.widgets import Footer

from queuectl.clock import Left, SystemClock
from queuectl.errors import QueuectlError, Unavailable
from queuectl.job.lifecycle import State
from queuectl.job.model import Job
from queuectl.job.printable import printable
from queuectl.tui import cells
from queuectl.tui.acts import Acts
from queuectl.tui.dialogs import Ask, Help
from queuectl.tui.glance import Glance, Page, Wish, has_changed, look, page
from queuectl.tui.jobscreen import JobScreen
from queuectl.tui.rate import Rate
from queuectl.tui.seat import Rooms, Seat
from queuectl.tui.table import Line, Rows

LOOK_EVERY: Final = 0.25  # whether something has changed: a thousand changes a second are four looks
AT_LEAST_EVERY: Final = 1.0  # ages grow and workers die without a write
REST: Final = 5  # as in wait: who looks on must not keep busy those who work
# The order in which `s` goes through them: what needs somebody first.
_STATES: Final = (
    None,
    State.PROCESSING,
    State.PENDING,
    State.FAILED,
    State.DEAD,
    State.BLOCKED,
    State.COMPLETED,
    State.CANCELLED,
)


class Top(Acts, App[None]):
    CSS_PATH = "top.tcss"
    TITLE = "queuectl top"
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (64, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-low"), (18, "-middle"), (36, "-tall")]  # noqa: RUF012
    BINDINGS = [  # noqa: RUF012 - as textual declares it
        Binding("question_mark", "help", "help", key_display="?"),
        Binding("q", "quit", "quit"),
        Binding("l", "log", "log"),
        Binding("c", "cancel", "cancel"),
        Binding("r", "retry", "retry"),
        Binding("h", "hold", "hold"),
        Binding("p", "pause", "pause"),
        Binding("plus,equals_sign", "priority(1)", "prio", key_display="+-"),
        Binding("minus", "priority(-1)", "later", show=False),
        Binding("e", "enqueue", "add"),
        Binding("slash", "filter", "find", key_display="/"),
        Binding("s", "state", "state"),
        Binding("escape", "everything", "all jobs", show=False),
        Binding("ctrl+c", "quit", "quit", show=False, priority=True),
        Binding("ctrl+z", "suspend_process", "suspend", show=False, priority=True),
    ]

    def __init__(self, home: str, db: str | None, *, colour: bool = True) -> None:
        super().__init__(ansi_color=True)
        if not colour and not self.no_color:
            self.no_color = True
            self._filters.append(NoColor())
        self.theme = "ansi-dark"
        self.rooms = Rooms(home, db)
        self.wish = Wish()
        self._clock = SystemClock()
        self._rate = Rate()
        self._glance: Glance | None = None
        self._page = Page(Wish(), [], 0)
        self._wake = asyncio.Event()
        # Held, not looked up: an answer may come while the view is being left.
        self._head_line, self._state_line, self._title_line = Line(id="head"), Line(id="states"), Line(id="title")
        self._queue_rows, self._worker_rows, self._job_rows = Rows(id="queues"), Rows(id="workers"), Rows(id="jobs")

    def compose(self) -> ComposeResult:
        yield self._head_line
        yield self._state_line
        with Horizontal(id="lines"):
            yield self._queue_rows
            yield self._worker_rows
        yield self._title_line
        yield self._job_rows
        yield Line(id="problem")
        yield Line(id="say")
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        for number in (signal.SIGTERM, signal.SIGHUP):  # or the terminal would be left as it is now
            asyncio.get_running_loop().add_signal_handler(number, self.exit)
        self._job_rows.focus()
        self.run_worker(self._watch(), group="watch")

    def on_resize(self) -> None:
        self.call_after_refresh(self._show)

    @property
    def fault(self) -> Exception | None:
        """What should not have happened, and has ended the view."""
        return self._exception

    def _fatal_error(self) -> None:
        # Not in textual's words: a screen full of them, with all that the functions had in their hands.
        self._close_messages_no_wait()

    # ── look ────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _watch(self) -> None:
        is_due, due_at, rest_until = True, 0.0, 0.0
        while True:
            self._wake.clear()
            try:
                # Asked also while looks rest: that the store is gone has to be told at once.
                is_due = await self.rooms.looking.ask(has_changed) or is_due
                began = self._clock.monotonic()
                if self._page.wish != self.wish or ((is_due or began >= due_at) and began >= rest_until):
                    await self.look()
                    ended, is_due = self._clock.monotonic(), False
                    due_at, rest_until = ended + AT_LEAST_EVERY, ended + REST * (ended - began)
                self._tell_problem(None)
            except Left:
                return
            except Unavailable as error:
                is_due, rest_until = True, 0.0
                self._tell_problem(error)
            try:
                await asyncio.wait_for(self._wake.wait(), LOOK_EVERY)
                rest_until = 0.0  # somebody has done something, and wants to see it
            except TimeoutError:
                pass  # nobody has asked for more than what is due anyhow

    async def look(self) -> None:
        """Read all that is shown, and show it. The counts do not wait for a list that has to be searched for. Raises Unavailable."""
        glance = await self.rooms.looking.ask(look)
        self._glance = glance
        if glance is not None:
            self._rate.see(self._clock.monotonic(), glance.completed)
        self._show()
        wish = self.wish
        self._page = await self.rooms.looking.ask(lambda seat: page(seat, wish))
        self._show()
        if isinstance(self.screen, JobScreen):
            await self.screen.look()

    def _show(self) -> None:
        glance, width = self._glance, self.screen_stack[0].size.width if self.screen_stack else 0
        if not width:
            return
        if glance is None:
            self._head_line.put(Text("queuectl", style="bold"))
            self._state_line.put(Text("nothing here yet: e enqueues a command", style="dim"))
        else:
            self._head_line.put(cells.head(glance, str(self._rate), width))
            self._state_line.put(cells.states(glance, width))
            self._queue_rows.present(
                cells.queue_columns(self._queue_rows.size.width - 1), [cells.queue_row(one) for one in glance.queues]
            )
            alive = [cells.worker_row(one, glance.now_ms, lives=lives) for one, lives in glance.workers]
            self._worker_rows.present(cells.worker_columns(self._worker_rows.size.width - 1), alive)
        self._title_line.put(cells.title(self._page, glance))
        columns = cells.job_columns(width - 1)
        self._job_rows.present(columns, [cells.job_row(job, self._page.now_ms, columns) for job in self._page.jobs])

    # ── say ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def say(self, words: str, *, style: str = "") -> None:
        for screen in self.screen_stack:
            for line in screen.query("#say").results(Line):
                line.put(Text(printable(words), style=style))

    def _tell_problem(self, error: QueuectlError | None) -> None:
        words = "" if error is None else f" {printable(error.message)}; trying again"
        for screen in self.screen_stack:
            for line in screen.query("#problem").results(Line):
                line.put(Text(words))
                line.set_class(error is not None, "-shown")

    def act(self, question: Callable[[Seat], str], *, takes_long: bool = False) -> None:
        """Do something to the store beside the view; `question` says what was done."""
        ask = self.rooms.act_apart if takes_long else self.rooms.acting.ask
        self.run_worker(self._act(ask(question)), group="act")

    async def _act(self, asked: Coroutine[None, None, str]) -> None:
        try:
            self.say(await asked)
        except Left:
            return
        except QueuectlError as error:
            self.say(f"{error.message} ({error.hint})", style="bold yellow")
        self._wake.set()

    # ── what is chosen ──────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def job(self) -> Job | None:
        if isinstance(self.screen, JobScreen):
            return self.screen.job
        chosen = self._job_rows.selected
        return next((job for job in self._page.jobs if job.id == chosen), None)

    @property
    def queue(self) -> str | None:
        """The one that the cursor is on, else that of the job."""
        focused = self.screen.focused
        if isinstance(focused, Rows) and focused.id == "queues":
            return focused.selected
        return None if (job := self.job) is None else job.queue

    def is_paused(self, queue: str) -> bool:
        return any(one.rules.paused for one in (self._glance.queues if self._glance else ()) if one.name == queue)

    def on_data_table_row_selected(self, event: Rows.RowSelected) -> None:
        if event.data_table.id == "jobs":
            self._open(log_only=False)
        elif event.data_table.id == "queues":
            self.want(self.wish._replace(queue=event.row_key.value))

    # ── where to ────────────────────────────────────────────────────────────────────────────────────────────────────

    def want(self, wish: Wish) -> None:
        self.wish = wish
        self._wake.set()

    def _open(self, *, log_only: bool) -> None:
        if (job := self.job) is not None and not isinstance(self.screen, JobScreen):
            self.push_screen(JobScreen(job, log_only=log_only))

    def action_log(self) -> None:
        self._open(log_only=True)

    def action_help(self) -> None:
        self.push_screen(Help())

    def action_state(self) -> None:
        self.want(self.wish._replace(state=_STATES[(_STATES.index(self.wish.state) + 1) % len(_STATES)]))

    def action_filter(self) -> None:
        def take(text: str | None) -> None:
            if text is not None:
                self.want(self.wish._replace(text=text.replace("\0", "").strip()))

        self.push_screen(Ask("only jobs with this in the command, or as id", self.wish.text), take)

    def action_everything(self) -> None:
        self.want(Wish())
