"""The application of `queuectl top`: layout, refresh loop and key bindings."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from typing import Final

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.filter import NoColor
from textual.widgets import Footer

from queuectl.clock import Cancelled, SystemClock
from queuectl.errors import QueuectlError, Unavailable
from queuectl.jobs.model import Job
from queuectl.jobs.states import WAITING, State, is_final
from queuectl.text import escape_control
from queuectl.tui import view_model
from queuectl.tui.screens import Confirm, Help, JobScreen, Prompt
from queuectl.tui.session import JobFilter, Page, Session, Snapshot, StoreThreads, has_changed, read_page, read_snapshot
from queuectl.tui.view_model import Rate
from queuectl.tui.widgets import Line, Rows

STDIN: Final = 0
POLL_SECONDS: Final = 0.25  # between checks for changes
REFRESH_SECONDS: Final = 1.0  # also without changes: ages grow and workers die without a write
REST_FACTOR: Final = 5  # pause this many times the duration of a refresh, so that it does not slow down workers
# The order of the states for the key `s`: the most important ones first.
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


class Top(App[None]):
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
        self.threads = StoreThreads(home, db)
        self.filter = JobFilter()
        self._clock = SystemClock()
        self._rate = Rate()
        self._snapshot: Snapshot | None = None
        self._page = Page(JobFilter(), [], 0)
        self._wake = asyncio.Event()
        # Kept as attributes instead of queried: results may arrive while the view is closing.
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
        for number in (signal.SIGTERM, signal.SIGHUP):  # to restore the terminal
            asyncio.get_running_loop().add_signal_handler(number, self.exit)
        self._job_rows.focus()
        self.run_worker(self._watch(), group="watch")

    def on_resize(self) -> None:
        self.call_after_refresh(self._show)

    @property
    def fault(self) -> Exception | None:
        """The unexpected exception that has ended the view."""
        return self._exception

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
                if self._page.filter != self.filter or ((is_due or began >= due_at) and began >= rest_until):
                    await self.refresh_all()
                    ended, is_due = self._clock.monotonic(), False
                    due_at, rest_until = ended + REFRESH_SECONDS, ended + REST_FACTOR * (ended - began)
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

    def _has_terminal(self) -> bool:
        """Not after it was closed without a signal to us: then textual would read its end in a busy loop."""
        return self.is_headless or os.isatty(STDIN)

    async def refresh_all(self) -> None:
        """Read and show everything. The counts are shown before the list, which may take longer. Raises Unavailable."""
        snapshot = await self.threads.reads.ask(read_snapshot)
        self._snapshot = snapshot
        if snapshot is not None:
            self._rate.see(self._clock.monotonic(), snapshot.completed)
        self._show()
        job_filter = self.filter
        self._page = await self.threads.reads.ask(lambda session: read_page(session, job_filter))
        self._show()
        if isinstance(self.screen, JobScreen):
            await self.screen.refresh_job()

    def _show(self) -> None:
        snapshot, width = self._snapshot, self.screen_stack[0].size.width if self.screen_stack else 0
        if not width:
            return
        if snapshot is None:
            self._head_line.put(Text("queuectl", style="bold"))
            self._state_line.put(Text("No jobs yet. Press e to add one.", style="dim"))
        else:
            self._head_line.put(view_model.head(snapshot, str(self._rate), width))
            self._state_line.put(view_model.states(snapshot, width))
            self._queue_rows.present(
                view_model.queue_columns(self._queue_rows.size.width - 1),
                [view_model.queue_row(one) for one in snapshot.queues],
            )
            self._worker_rows.present(
                view_model.worker_columns(self._worker_rows.size.width - 1),
                [view_model.worker_row(one, snapshot.now_ms) for one in snapshot.workers],
            )
        self._title_line.put(view_model.title(self._page, snapshot))
        columns = view_model.job_columns(width - 1)
        self._job_rows.present(
            columns, [view_model.job_row(job, self._page.now_ms, columns) for job in self._page.jobs]
        )

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

    def act(self, work: Callable[[Session], str], *, takes_long: bool = False) -> None:
        """Run an action in a thread and report its result. `work` returns the message."""
        ask = self.threads.act_apart if takes_long else self.threads.actions.ask
        self.run_worker(self._act(ask(work)), group="act")

    async def _act(self, asked: Coroutine[None, None, str]) -> None:
        try:
            self.say(await asked)
        except Cancelled:
            return
        except QueuectlError as error:
            self.say(f"{error.message} ({error.hint})", style="bold yellow")
        self._wake.set()

    # ── actions, which report their results in the line below the jobs ──────────────────────────────────────────────────

    def action_cancel(self) -> None:
        if (job := self._selected()) is None:
            return
        if is_final(job.state):
            self.say(f"cannot cancel {job.id}: it is {job.state.value}", style="bold yellow")
            return

        def cancel(session: Session) -> str:
            session.cancel(job.id)
            return f"cancelled {job.id}"

        def answered(yes: bool | None) -> None:
            if yes:
                self.say(f"cancelling {job.id}…")
                self.act(cancel, takes_long=True)

        self.push_screen(Confirm(f"Cancel job {job.id} ({job.state.value})?", view_model.command(job)[:200]), answered)

    def action_retry(self) -> None:
        if (job := self._selected()) is not None:
            self.act(lambda session: f"retried {session.retry(job.id).id}")

    def action_hold(self) -> None:
        if (job := self._selected()) is None:
            return
        if job.held and job.state in WAITING:
            self.act(lambda session: f"released {session.release(job.id).id}")
        else:
            self.act(lambda session: f"held {session.hold(job.id).id}")

    def action_priority(self, step: int) -> None:
        if (job := self._selected()) is None:
            return

        def change(session: Session) -> str:
            # From the current priority: the screen may lag behind a user who types fast.
            edited = session.edit(job.id, priority=session.get(job.id).priority + step)
            return f"set the priority of {edited.id} to {edited.priority}"

        self.act(change)

    def action_pause(self) -> None:
        queue = self.queue
        if queue is None:
            self.say("select a job or a queue first", style="bold yellow")
            return
        paused = not self.is_paused(queue)

        def change(session: Session) -> str:
            session.set_queue(queue, paused=paused)
            return f"{'paused' if paused else 'resumed'} the queue {queue}"

        self.act(change)

    def action_enqueue(self) -> None:
        def take(command: str | None) -> None:
            if command and command.strip():
                self.act(lambda session: f"enqueued {session.enqueue(command).id}")

        self.push_screen(Prompt("Shell command to enqueue"), take)

    def _selected(self) -> Job | None:
        if (job := self.job) is None:
            self.say("select a job first", style="bold yellow")
        return job

    # ── selection ──────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def job(self) -> Job | None:
        if isinstance(self.screen, JobScreen):
            return self.screen.job
        selected = self._job_rows.selected
        return next((job for job in self._page.jobs if job.id == selected), None)

    @property
    def queue(self) -> str | None:
        """The queue under the cursor, else that of the selected job."""
        focused = self.screen.focused
        if isinstance(focused, Rows) and focused.id == "queues":
            return focused.selected
        return None if (job := self.job) is None else job.queue

    def is_paused(self, queue: str) -> bool:
        return any(one.rules.paused for one in (self._snapshot.queues if self._snapshot else ()) if one.name == queue)

    def on_data_table_row_selected(self, event: Rows.RowSelected) -> None:
        if event.data_table.id == "jobs":
            self._open(log_only=False)
        elif event.data_table.id == "queues":
            self.set_filter(self.filter._replace(queue=event.row_key.value))

    # ── navigation ────────────────────────────────────────────────────────────────────────────────────────────────────

    def set_filter(self, job_filter: JobFilter) -> None:
        self.filter = job_filter
        self._wake.set()

    def _open(self, *, log_only: bool) -> None:
        if (job := self.job) is not None and not isinstance(self.screen, JobScreen):
            self.push_screen(JobScreen(job, log_only=log_only))

    def action_log(self) -> None:
        self._open(log_only=True)

    def action_help(self) -> None:
        self.push_screen(Help())

    def action_state(self) -> None:
        self.set_filter(self.filter._replace(state=_STATES[(_STATES.index(self.filter.state) + 1) % len(_STATES)]))

    def action_filter(self) -> None:
        def take(text: str | None) -> None:
            if text is not None:
                self.set_filter(self.filter._replace(text=text.replace("\0", "").strip()))

        self.push_screen(Prompt("Filter by command or ID", self.filter.text), take)

    def action_everything(self) -> None:
        self.set_filter(JobFilter())
