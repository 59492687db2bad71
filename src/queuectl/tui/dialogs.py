"""Dialogs of the terminal UI: confirm, prompt, help."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import TimeoutError as StillWaiting
from typing import Final, TypeVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widgets import Input, Static

from queuectl.clock import Cancelled
from queuectl.tui.store_threads import StoreSession

T = TypeVar("T")
KEYS: Final = (
    ("↑ ↓ j k", "select a job, a queue or a worker"),
    ("tab", "switch between jobs, queues and workers"),
    ("enter", "show a job; show the jobs of a queue"),
    ("l", "follow the log of the job"),
    ("c", "cancel the job, after a confirmation"),
    ("r", "retry a failed, dead or cancelled job"),
    ("h", "hold or release a waiting job"),
    ("+ -", "raise or lower the priority of a waiting job"),
    ("p", "pause or resume the queue"),
    ("e", "enqueue a command"),
    ("/", "filter by text in the command, or by ID"),
    ("s", "filter by the next state"),
    ("esc", "back; clear the filter"),
    ("q", "back; quit"),
    ("ctrl+c", "quit at once"),
)


def _show_and_wait(
    session: StoreSession, loop: asyncio.AbstractEventLoop, show: Callable[[bytes], None], data: bytes
) -> None:
    """Show data and wait until it is on the screen, so that the output of a fast job does not fill the memory."""

    async def on_screen() -> None:
        show(data)

    task = asyncio.run_coroutine_threadsafe(on_screen(), loop)
    while True:
        try:
            task.result(0.1)
        except StillWaiting:
            if session.clock.left.is_set():
                task.cancel()
                raise Cancelled from None
            continue
        session.clock.sleep(0)  # raises Left if the thread was closed
        return


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
