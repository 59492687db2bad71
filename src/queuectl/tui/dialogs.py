"""Small screens above the others: a question, a line to type, the keys."""

from __future__ import annotations

from typing import Final, TypeVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widgets import Input, Static

T = TypeVar("T")

KEYS: Final = (
    ("↑ ↓ j k", "choose a job, a queue, a worker"),
    ("tab", "from jobs to queues to workers"),
    ("enter", "a job: all about it; a queue: only its jobs"),
    ("l", "the log of the job, as it grows"),
    ("c", "cancel the job, after asking"),
    ("r", "retry a failed, dead or cancelled job"),
    ("h", "hold a job that waits, or release it"),
    ("+ -", "let a job that waits go sooner or later"),
    ("p", "pause the queue, or resume it"),
    ("e", "enqueue a command"),
    ("/", "only jobs with a text in the command, or an id"),
    ("s", "only jobs of a state, one after the other"),
    ("esc", "back; all jobs again"),
    ("q", "back; quit"),
    ("ctrl+c", "quit at once"),
)


def leave(screen: Screen[T], result: T | None = None) -> None:
    """Once. Of two keys that come at a time the second finds it gone, and would take away what was below it."""
    if screen.is_active:
        screen.dismiss(result)


class Confirm(ModalScreen[bool]):
    """True for y alone: whoever hits another key has not read the question."""

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
        leave(self, answer)


class Ask(ModalScreen[str | None]):
    """A line of text; None for escape."""

    BINDINGS = [Binding("escape", "leave", "back")]  # noqa: RUF012 - as textual declares it

    def __init__(self, question: str, text: str = "") -> None:
        super().__init__()
        self._question, self._text = question, text

    def compose(self) -> ComposeResult:
        line = Input(self._text, id="line", select_on_focus=False)
        line.border_title = self._question
        yield line

    def on_input_submitted(self, event: Input.Submitted) -> None:
        leave(self, event.value)

    def action_leave(self) -> None:
        leave(self)


class Help(ModalScreen[None]):
    BINDINGS = [Binding("escape,q,question_mark,enter", "leave", "back")]  # noqa: RUF012 - as textual declares it

    def compose(self) -> ComposeResult:
        lines = [Text.assemble((f"{keys:<9}", "bold"), what) for keys, what in KEYS]
        with VerticalScroll(id="dialog"):
            yield Static(Text("\n").join(lines))

    def action_leave(self) -> None:
        leave(self)
