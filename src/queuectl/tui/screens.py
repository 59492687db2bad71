"""Screens: one job with its log, prompts, confirmations and help."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widgets import Footer, Input, Static

from queuectl.clock import Cancelled
from queuectl.errors import JobNotFound, Unavailable
from queuectl.jobs.model import Job
from queuectl.jobs.states import is_final
from queuectl.store_threads import StorePool
from queuectl.tui import view_model
from queuectl.tui.session import Detail, Session, read_detail
from queuectl.tui.widgets import Line, LogPane

if TYPE_CHECKING:
    from queuectl.tui.app import Top

T = TypeVar("T")


KEYS: Final = (
    ("↑ ↓ j k", "select a job, queue or worker"),
    ("tab", "switch between jobs, queues and workers"),
    ("enter", "open the job, or show the jobs of the queue"),
    ("l", "follow the log of the job"),
    ("c", "cancel the job (asks first)"),
    ("r", "retry a failed, dead or cancelled job"),
    ("h", "hold or release a waiting job"),
    ("+ -", "raise or lower the priority of a waiting job"),
    ("p", "pause or resume the queue"),
    ("e", "enqueue a command"),
    ("/", "filter by command or ID"),
    ("s", "filter by state (next one)"),
    ("esc", "go back, or clear the filter"),
    ("q", "go back, or quit"),
    ("ctrl+c", "quit immediately"),
)


def close_screen(screen: Screen[T], result: T | None = None) -> None:
    """Close a screen once: a second key press must not close the screen below it."""
    if screen.is_active:
        screen.dismiss(result)


class Confirm(ModalScreen[bool]):
    """Returns True for the key y, False for others."""

    BINDINGS = [  # noqa: RUF012 - as textual declares it
        Binding("y", "answer(True)", "yes"),
        Binding("n,q,escape,enter,space", "answer(False)", "no"),
    ]

    def __init__(self, question: str, about: str) -> None:
        super().__init__()
        self._words = Text.assemble(
            (question, "bold"), "\n", about, "\n\n", ("y", "bold"), " yes   ", ("n", "bold"), " no"
        )

    def compose(self) -> ComposeResult:
        yield Static(self._words, id="dialog")

    def action_answer(self, answer: bool) -> None:
        close_screen(self, answer)


class Prompt(ModalScreen[str | None]):
    """Asks for a line of text; None for escape."""

    BINDINGS = [Binding("escape", "leave", "back")]  # noqa: RUF012 - as textual declares it

    def __init__(self, question: str, text: str = "") -> None:
        super().__init__()
        self._question, self._text = question, text

    def compose(self) -> ComposeResult:
        line = Input(self._text, id="line", select_on_focus=False)
        line.border_title = self._question
        yield line

    def on_input_submitted(self, event: Input.Submitted) -> None:
        close_screen(self, event.value)

    def action_leave(self) -> None:
        close_screen(self)


class Help(ModalScreen[None]):
    BINDINGS = [Binding("escape,q,question_mark,enter", "leave", "back")]  # noqa: RUF012 - as textual declares it

    def compose(self) -> ComposeResult:
        lines = [Text.assemble((f"{keys:<9}", "bold"), what) for keys, what in KEYS]
        with VerticalScroll(id="dialog"):
            yield Static(Text("\n").join(lines))

    def action_leave(self) -> None:
        close_screen(self)


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
        self._log_thread: StorePool[Session] | None = None
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
