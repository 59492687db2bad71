"""The application of `queuectl top`: layout, refresh loop and navigation."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, TextIO, TypeVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import Container, Horizontal, Vertical
from textual.driver import Driver
from textual.filter import NoColor
from textual.timer import Timer
from textual.widgets import ContentSwitcher, Footer, Static
from textual.worker import WorkerFailed

from queuectl.clock import Cancelled, SystemClock
from queuectl.errors import QueuectlError, Unavailable
from queuectl.jobs.model import Job
from queuectl.jobs.search import Term, format_query
from queuectl.jobs.states import WAITING, State
from queuectl.store.types import Filter, Sort
from queuectl.text import escape_control
from queuectl.tui import view_model
from queuectl.tui.job_commands import JobCommands
from queuectl.tui.job_list import JobFilter, ListOrder
from queuectl.tui.job_screen import JobScreen
from queuectl.tui.job_table import JobTable
from queuectl.tui.panes import BatchTable, QueueTable, ScheduleTable, WorkerTable, schedule_preview
from queuectl.tui.screens import Confirm, Help, Prompt
from queuectl.tui.session import Session, Snapshot, StoreThreads, has_changed, read_detail, read_snapshot
from queuectl.tui.view_model import Rate, Trend
from queuectl.tui.widgets import Line

T = TypeVar("T")
STDIN: Final = 0
POLL_SECONDS: Final = 0.25  # between checks for changes
REFRESH_SECONDS: Final = 1.0  # also without changes: ages grow and workers die without a write
REST_FACTOR: Final = 10  # pause this many times the duration of a refresh, so that it does not slow down workers,
MAX_REST_SECONDS: Final = 5.0  # but not longer
PREVIEW_SECONDS: Final = 0.1  # after the last move of the cursor
PREVIEW_BYTES: Final = 16_384  # of a log
# Terminals that are large enough for a preview of the log, beside or below the list.
BESIDE_COLUMNS: Final = 150
BELOW_ROWS: Final = 34

# The names, and short ones for narrow terminals.
TABS: Final = {
    "jobs": ("Jobs", "Jobs"),
    "dead": ("Dead", "Dead"),
    "schedules": ("Schedules", "Cron"),
    "workers": ("Workers", "Work"),
    "batches": ("Batches", "Batch"),
    "queues": ("Queues", "Queue"),
}
_PREVIEWS: Final = ("log", "details", "none")
_HINT: Final = """No jobs yet.

Press n to enqueue a command, or type in another terminal:

    queuectl enqueue 'echo hello'
    queuectl worker start"""


class TerminalFile:
    """The terminal, as a file that ignores errors.

    The thread of textual that writes to it ends with the first error, when the terminal has vanished. Its queue is then never
    emptied, and the event loop waits for space in it forever, so it can neither see that the terminal is gone nor handle a signal.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> int:
        try:
            return self._file.write(text)
        except OSError:
            return len(text)

    def flush(self) -> None:
        try:
            self._file.flush()
        except OSError:
            pass  # `Top` ends at its next check of the terminal

    def fileno(self) -> int:
        return self._file.fileno()

    def isatty(self) -> bool:
        return self._file.isatty()


class Top(App[None]):
    CSS_PATH = "top.tcss"
    TITLE = "queuectl top"
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (64, "-wide"), (BESIDE_COLUMNS, "-beside")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-low"), (15, "-short"), (28, "-middle"), (36, "-tall")]  # noqa: RUF012
    BINDINGS = [  # noqa: RUF012 - as textual declares it
        Binding("n", "enqueue", "new"),
        Binding("v", "preview", "view", show=False),
        Binding("question_mark", "help", "help", key_display="?"),
        Binding("q", "quit", "quit"),
        *(Binding(str(number), f"tab('{tab}')", tab, show=False) for number, tab in enumerate(TABS, 1)),
        Binding("escape", "leave", "back", show=False),
        Binding("ctrl+c", "quit", "quit", show=False, priority=True),
        Binding("ctrl+z", "suspend_process", "suspend", show=False, priority=True),
    ]

    def __init__(self, home: str, db: str | None, *, colour: bool = True) -> None:
        super().__init__(ansi_color=True)
        if not colour and not self.no_color:
            self.no_color = True
            self._filters.append(NoColor())
        self.theme = "ansi-dark"
        self.threads = StoreThreads(home, db)
        self.snapshot: Snapshot | None = None
        self._commands = JobCommands(self)
        self._clock = SystemClock()
        self._rate, self._depth = Rate(), Trend()
        self._wake = asyncio.Event()
        self._preview_mode = _PREVIEWS[0]
        self._preview_timer: Timer | None = None
        self._is_loaded = False
        # Kept as attributes instead of queried: results may arrive while the view is closing.
        self._head_line, self._state_line, self._tab_line = Line(id="head"), Line(id="states"), Line(id="tabs")
        self._panels = (QueueTable(id="queues", is_panel=True), WorkerTable(id="workers", is_panel=True))
        self._lists = {
            "jobs": JobTable(id="jobs", title="Jobs", base=JobFilter(), order=ListOrder()),
            "dead": JobTable(id="dead", title="Dead jobs", base=JobFilter(State.DEAD), order=ListOrder(Sort.FINISHED)),
        }
        self._tables: dict[str, JobTable | ScheduleTable | WorkerTable | BatchTable | QueueTable] = {
            **self._lists,
            "schedules": ScheduleTable(id="schedules"),
            "workers": WorkerTable(id="all-workers", is_panel=False),
            "batches": BatchTable(id="batches"),
            "queues": QueueTable(id="all-queues", is_panel=False),
        }
        self._switcher = ContentSwitcher(id="content", initial="tab-jobs")
        self._preview = Line(id="preview")

    def compose(self) -> ComposeResult:
        yield self._head_line
        yield self._state_line
        yield self._tab_line
        yield Static(Text(_HINT), id="hint")
        with Container(id="body"):
            with self._switcher:
                for tab, table in self._tables.items():
                    with Vertical(id=f"tab-{tab}"):
                        if tab == "jobs":
                            with Horizontal(id="panels"):
                                yield from self._panels
                        yield table
            yield self._preview
        yield Line(id="problem")
        yield Line(id="say")
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        for number in (signal.SIGTERM, signal.SIGHUP):  # to restore the terminal
            asyncio.get_running_loop().add_signal_handler(number, self.exit)
        self._tables["jobs"].focus()
        self.run_worker(self._watch(), group="watch")

    def get_driver_class(self) -> type[Driver]:
        base: Any = super().get_driver_class()

        class PatientDriver(base):  # type: ignore[misc] # the class depends on the platform
            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__(*args, **kwargs)
                self._file: Any
                self._file = TerminalFile(self._file)

        return PatientDriver

    def on_resize(self) -> None:
        self.call_after_refresh(self._show)

    @property
    def fault(self) -> Exception | None:
        """The unexpected exception that has ended the view; of a background worker, that which it raised."""
        fault = self._exception
        # The wrapper has neither a cause nor a traceback.
        return fault.error if isinstance(fault, WorkerFailed) and isinstance(fault.error, Exception) else fault

    def _fatal_error(self) -> None:
        # No traceback of textual, which prints the local variables of all frames.
        self._close_messages_no_wait()

    # ── refresh ────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _watch(self) -> None:
        is_due, due_at, rest_until = True, 0.0, 0.0
        while self._has_terminal():
            self._wake.clear()
            try:
                # Also during a pause: a missing database has to be reported at once.
                is_due = await self.threads.reads.ask(has_changed) or is_due
                began = self._clock.monotonic()
                if self._is_behind or ((is_due or began >= due_at) and began >= rest_until):
                    await self.refresh_all()
                    ended, is_due = self._clock.monotonic(), False
                    due_at = ended + REFRESH_SECONDS
                    rest_until = ended + min(MAX_REST_SECONDS, REST_FACTOR * (ended - began))
                self._show_problem(None)
            except Cancelled:
                return
            except Unavailable as error:
                is_due, rest_until = True, 0.0
                self._show_problem(error)
            try:
                await asyncio.wait_for(self._wake.wait(), POLL_SECONDS)
                rest_until = 0.0  # the user has done something: refresh at once
            except TimeoutError:
                pass  # poll again
        self.exit()

    @property
    def _is_behind(self) -> bool:
        return not self._is_loaded or (self.tab in self._lists and self._lists[self.tab].is_behind)

    def _has_terminal(self) -> bool:
        """Not after it was closed without a signal to us: then textual would read its end in a busy loop."""
        return self.is_headless or os.isatty(STDIN)

    def wake(self) -> None:
        """Refresh at once."""
        self._wake.set()

    async def refresh_all(self) -> None:
        """Read and show everything. The counts are shown before the list, which may take longer. Raises Unavailable."""
        snapshot = await self.threads.reads.ask(read_snapshot)
        self.snapshot, self._is_loaded = snapshot, True
        if snapshot is not None:
            now = self._clock.monotonic()
            self._rate.see(now, snapshot.completed)
            self._depth.see(now, sum(snapshot.status.states[state.value] for state in WAITING))
        self._show()
        await self._tables[self.tab].load()
        if isinstance(self.screen, JobScreen):
            await self.screen.refresh_job()
        else:
            await self._load_preview()

    def _show(self) -> None:
        width = self.screen_stack[0].size.width if self.screen_stack else 0
        if not width:
            return
        snapshot, main = self.snapshot, self.screen_stack[0]
        main.set_class(snapshot is None and self._is_loaded, "-empty")
        self._place_preview()
        if snapshot is None:
            self._head_line.put(Text("queuectl", style="bold"))
            self._state_line.put(Text("No jobs yet. Press n to add one." if self._is_loaded else "", style="dim"))
        else:
            self._head_line.put(view_model.head(snapshot, str(self._rate), self._rate.bars(), width))
            self._state_line.put(view_model.states(snapshot, self._depth.values(), width))
            for panel in self._panels:
                panel.draw()
        counts = {"dead": self.state_counts().get(State.DEAD, 0)}
        more = Text()
        if main.has_class("-low") and self.tab in self._lists:  # there is no border with a title
            more = self._lists[self.tab].restrictions()
        self._tab_line.put(view_model.tabs(TABS, self.tab, counts, more=more, width=width))
        self._tables[self.tab].draw()

    def state_counts(self) -> dict[State, int]:
        states: Mapping[str, int] = self.snapshot.status.states if self.snapshot else {}
        return {State(state): count for state, count in states.items()}

    # ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def say(self, message: str, *, style: str = "") -> None:
        for screen in self.screen_stack:
            for line in screen.query("#say").results(Line):
                line.put(Text(escape_control(message), style=style))

    def _show_problem(self, error: QueuectlError | None) -> None:
        message = "" if error is None else f" {escape_control(error.message)}; retrying…"
        for screen in self.screen_stack:
            for line in screen.query("#problem").results(Line):
                line.put(Text(message))
                line.set_class(error is not None, "-shown")

    def act(
        self, work: Callable[[Session], str], *, takes_long: bool = False, then: Callable[[], None] = lambda: None
    ) -> None:
        """Run an action in a thread and report its result. `work` returns the message. `then` runs after success."""
        ask = self.threads.act_apart if takes_long else self.threads.actions.ask
        self.run_worker(self._act(ask(work), then), group="act")

    async def _act(self, asked: Coroutine[None, None, str], then: Callable[[], None]) -> None:
        try:
            self.say(await asked)
            then()
        except Cancelled:
            return
        except QueuectlError as error:
            self._say_error(error)
        self.wake()

    async def ask(self, work: Callable[[Session], T]) -> T | None:
        """The result of a query for a question; None if it failed, which is reported."""
        try:
            return await self.threads.reads.ask(work)
        except Cancelled:
            return None
        except QueuectlError as error:
            self._say_error(error)
            return None

    def _say_error(self, error: QueuectlError) -> None:
        self.say(f"{error.message} ({error.hint})", style="bold yellow")

    def confirm(
        self,
        text: str,
        about: str,
        work: Callable[[Session], str],
        *,
        takes_long: bool = False,
        then: Callable[[], None] = lambda: None,
    ) -> None:
        """Ask, and run the action if the user agrees."""

        def answered(yes: bool | None) -> None:
            if yes:
                self.say(f"{text.rstrip('?')}…")
                self.act(work, takes_long=takes_long, then=then)

        self.push_screen(Confirm(text, about), answered)

    # ── actions on jobs and queues ──────────────────────────────────────────────────────────────────────────────────────

    @property
    def job(self) -> Job | None:
        """The job on the screen, or under the cursor."""
        if isinstance(self.screen, JobScreen):
            return self.screen.job
        return self._lists[self.tab].job if self.tab in self._lists else None

    @property
    def target(self) -> Filter | None:
        """The marked jobs, if there are some and no single job is open."""
        is_list = self.tab in self._lists and not isinstance(self.screen, JobScreen)
        return self._lists[self.tab].target if is_list else None

    def clear_marks(self) -> None:
        for table in self._lists.values():
            table.clear_marks()

    def action_job_verb(self, name: str) -> None:
        self._commands.verb(name)

    def action_job_hold(self) -> None:
        self._commands.hold()

    def action_job_priority(self, step: int) -> None:
        self._commands.priority(step)

    def action_job_edit(self) -> None:
        self._commands.edit()

    def action_job_clone(self) -> None:
        self._commands.clone()

    def action_copy_id(self) -> None:
        self._commands.copy_id()

    def action_pause_queue(self) -> None:
        queue = self.queue
        if queue is None:
            self.say("select a job or a queue first", style="bold yellow")
            return
        paused = not self.is_paused(queue)
        verb = "Pause" if paused else "Resume"
        about = "No jobs of the queue start until it is resumed. Running jobs continue." if paused else ""

        def change(session: Session) -> str:
            session.set_queue(queue, paused=paused)
            return f"{'paused' if paused else 'resumed'} the queue {queue}"

        self.confirm(f"{verb} the queue {queue}?", about, change)

    @property
    def queue(self) -> str | None:
        """The queue under the cursor, else that of the selected job."""
        focused = self.screen.focused
        if isinstance(focused, QueueTable):
            return focused.selected
        return None if (job := self.job) is None else job.queue

    def is_paused(self, queue: str) -> bool:
        return any(one.rules.paused for one in (self.snapshot.queues if self.snapshot else ()) if one.name == queue)

    def action_enqueue(self) -> None:
        def take(command: str | None) -> None:
            if command and command.strip():
                self.act(lambda session: f"enqueued {session.enqueue(command).id}")

        self.push_screen(Prompt("Shell command to enqueue", hint="enter: enqueue  esc: back"), take)

    # ── navigation ────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def tab(self) -> str:
        return (self._switcher.current or "tab-jobs").removeprefix("tab-")

    def action_tab(self, tab: str) -> None:
        if isinstance(self.screen, JobScreen):
            self.pop_screen()
        self._switcher.current = f"tab-{tab}"
        self._tables[tab].focus()
        self._is_loaded = self.snapshot is not None  # the list of this tab is not
        self.call_after_refresh(self._show)
        self.wake()

    def list_jobs(self, qualifier: str, value: str | None) -> None:
        """Show the jobs of a queue, a batch or a worker."""
        if value is not None:
            self._lists["jobs"].set_query(format_query([Term(qualifier, (value,))]))
        self.action_tab("jobs")

    def open_job(self, job: Job | None, *, log_only: bool) -> None:
        if job is None:
            self.say("select a job first", style="bold yellow")
        elif not isinstance(self.screen, JobScreen):
            self.push_screen(JobScreen(job, log_only=log_only))

    def action_help(self) -> None:
        self.push_screen(Help())

    def action_leave(self) -> None:
        if self.tab in self._lists:
            self._lists[self.tab].back()

    # ── preview ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def action_preview(self) -> None:
        shown = self._preview_mode if self._preview.display else "none"
        self._preview_mode = _PREVIEWS[(_PREVIEWS.index(shown) + 1) % len(_PREVIEWS)]
        main = self.screen_stack[0]
        main.set_class(self._preview_mode != "none", "-preview")
        if main.has_class("-low"):
            self.say("the terminal is too low for a preview: press enter or l", style="bold yellow")
        self._show()
        self.on_cursor_moved()

    def _place_preview(self) -> None:
        """Beside the list in a wide terminal, else below it; in a small one, only if the user asks for it."""
        main, size = self.screen_stack[0], self.screen_stack[0].size
        has_space = size.width >= BESIDE_COLUMNS or size.height >= BELOW_ROWS or main.has_class("-preview")
        has_content = self.tab in self._lists or self.tab == "schedules"
        self._preview.display = (
            has_space and has_content and self._preview_mode != "none" and not main.has_class("-low")
        )

    def on_cursor_moved(self) -> None:
        """Show the preview of the row that the cursor has stopped on."""
        if self._preview_timer is not None:
            self._preview_timer.stop()
        if self._preview.display:
            self._preview_timer = self.set_timer(PREVIEW_SECONDS, self._load_preview_now)

    async def _load_preview_now(self) -> None:
        try:
            await self._load_preview()
        except (Cancelled, Unavailable):
            pass  # the view is closing, or the refresh loop reports it and retries

    async def _load_preview(self) -> None:
        """Raises Cancelled and Unavailable."""
        if not self._preview.display:
            return
        title, text = "", Text()
        height = max(1, self._preview.content_size.height)
        try:
            if self.tab == "schedules":
                if (name := self._tables["schedules"].selected) is not None:
                    title = f"Schedule {name}"
                    text = await self.threads.reads.ask(lambda session: schedule_preview(session, name))
            elif (job := self.job) is not None:
                seen = await self.threads.reads.ask(lambda session: read_detail(session, job.id, output=PREVIEW_BYTES))
                is_log = self._preview_mode == "log" and bool(seen.history)  # a job that waits has no log
                title = f"{'Log' if is_log else 'Details'} of {job.id}"
                text = view_model.log_end(seen, height) if is_log else view_model.detail_lines(seen)
        except Unavailable:
            raise
        except QueuectlError as error:  # for example, it was removed
            text = Text(escape_control(error.message), style="dim")
        self._preview.border_title = Text(escape_control(title))
        self._preview.put(text)
