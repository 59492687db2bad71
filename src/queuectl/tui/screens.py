"""Modal screens: confirmations, prompts, forms, menus and help."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.events import Key
from textual.screen import ModalScreen, Screen
from textual.suggester import Suggester
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

T = TypeVar("T")

# By the place where they apply. The footer shows the most important ones.
KEY_GROUPS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "Everywhere": (
        ("1 … 6", "jobs, dead, schedules, workers, batches, queues"),
        ("tab", "focus the next pane"),
        ("n", "enqueue a command"),
        ("v", "preview: log, details or none"),
        ("?", "show the keys"),
        ("esc", "go back; clear marks, then the filter"),
        ("q", "go back, or quit"),
        ("ctrl+c", "quit immediately"),
    ),
    "Lists": (
        ("↑ ↓ j k", "move the cursor"),
        ("PgUp PgDn", "move by a screen"),
        ("g G", "first or last row (also Home, End)"),
        ("enter", "open the job, or list the jobs of the row"),
    ),
    "Jobs": (
        ("/", "filter, for example queue:mail state:dead text"),
        ("s", "filter by state"),
        ("o O", "change or reverse the order"),
        ("space", "mark the job"),
        ("a A", "mark all loaded jobs or none; all that match"),
        ("l", "follow the log"),
        ("c", "cancel (asks)"),
        ("r", "retry failed, dead or cancelled jobs"),
        ("h H", "hold or release; release"),
        ("R", "run now: skip the delay or backoff"),
        ("d", "purge ended jobs (asks)"),
        ("e", "edit waiting jobs"),
        ("C", "clone the job with changes"),
        ("+ -", "raise or lower the priority"),
        ("p", "pause or resume the queue (asks)"),
        ("y", "copy the ID"),
    ),
    "Schedules": (("R p d", "run now, pause or resume, remove (asks)"),),
    "Workers": (("x X R", "stop, stop now, restart (asks)"),),
    "Queues": (("p", "pause or resume (asks)"),),
    "Logs": (
        ("/ n N", "search; next or previous line found"),
        ("w", "wrap long lines, or scroll sideways"),
        ("G", "follow the end again"),
    ),
}
KEYS: Final = tuple(pair for group in KEY_GROUPS.values() for pair in group)


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

    def __init__(self, question: str, about: str = "") -> None:
        super().__init__()
        about = f"{about}\n" if about else ""
        self._words = Text.assemble(
            (question, "bold"), "\n", about, "\n", ("y", "bold"), " yes   ", ("n", "bold"), " no"
        )

    def compose(self) -> ComposeResult:
        yield Static(self._words, id="dialog")

    def action_answer(self, answer: bool) -> None:
        close_screen(self, answer)


class TermSuggester(Suggester):
    """Completes the last word of a line with the first term that begins with it. `load` reads the terms, once."""

    def __init__(self, load: Callable[[], Awaitable[Sequence[str] | None]]) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._load = load
        self._terms: Sequence[str] | None = None

    async def get_suggestion(self, value: str) -> str | None:
        if self._terms is None:
            self._terms = await self._load() or ()
        before, space, word = value.rpartition(" ")
        found = (term for term in self._terms if word and term.startswith(word) and term != word)
        return next((f"{before}{space}{term}" for term in found), None)


class Prompt(ModalScreen[str | None]):
    """Asks for a line of text; None for escape."""

    BINDINGS = [Binding("escape", "leave", "back")]  # noqa: RUF012 - as textual declares it

    def __init__(self, question: str, text: str = "", *, hint: str = "", suggester: Suggester | None = None) -> None:
        super().__init__()
        self._question, self._text, self._hint, self._suggester = question, text, hint, suggester

    def compose(self) -> ComposeResult:
        line = Input(self._text, id="line", select_on_focus=False, suggester=self._suggester)
        line.border_title, line.border_subtitle = Text(self._question), Text(self._hint)
        yield line

    def on_input_submitted(self, event: Input.Submitted) -> None:
        close_screen(self, event.value)

    def action_leave(self) -> None:
        close_screen(self)


class Field(NamedTuple):
    name: str
    label: str
    value: str = ""


class Form(ModalScreen[Mapping[str, str] | None]):
    """Asks for several values. Returns those that were changed, or None for escape."""

    BINDINGS = [  # noqa: RUF012 - as textual declares it
        Binding("escape", "leave", "back"),
        Binding("down", "app.focus_next", "next", show=False),
        Binding("up", "app.focus_previous", "previous", show=False),
    ]

    def __init__(self, question: str, fields: Sequence[Field]) -> None:
        super().__init__()
        self._question, self._fields = question, fields

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="form") as form:
            form.can_focus = False
            form.border_title, form.border_subtitle = Text(self._question), "enter: save  esc: back"
            for field in self._fields:
                yield Static(Text(field.label, style="dim"))
                yield Input(
                    field.value, id=f"field-{field.name.replace('_', '-')}", select_on_focus=False, compact=True
                )

    def on_input_submitted(self, _: Input.Submitted) -> None:
        values = [one.value for one in self.query(Input)]
        changed = {
            field.name: value.strip()
            for field, value in zip(self._fields, values, strict=True)
            if value.strip() != field.value
        }
        close_screen(self, changed)

    def action_leave(self) -> None:
        close_screen(self)


class Choice(NamedTuple):
    key: str
    label: Text
    value: str


class Menu(ModalScreen[str | None]):
    """Lets the user choose by a key, or by the arrows and enter. Returns the value, or None for escape."""

    BINDINGS = [  # noqa: RUF012 - as textual declares it
        Binding("escape,q", "leave", "back"),
        Binding("j", "down", "down", show=False),
        Binding("k", "up", "up", show=False),
    ]

    def __init__(self, question: str, choices: Sequence[Choice], current: str) -> None:
        super().__init__()
        self._question, self._choices, self._current = question, choices, current

    def compose(self) -> ComposeResult:
        options = [Option(Text.assemble((f"{one.key}  ", "bold"), one.label), id=one.key) for one in self._choices]
        menu = OptionList(*options, id="menu", compact=True)
        menu.border_title = Text(self._question)
        yield menu

    def on_mount(self) -> None:
        values = [one.value for one in self._choices]
        self.query_one(OptionList).highlighted = values.index(self._current) if self._current in values else 0

    def on_key(self, event: Key) -> None:
        for one in self._choices:
            if event.character == one.key:
                event.stop()
                close_screen(self, one.value)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        close_screen(self, self._choices[event.option_index].value)

    def action_down(self) -> None:
        self.query_one(OptionList).action_cursor_down()

    def action_up(self) -> None:
        self.query_one(OptionList).action_cursor_up()

    def action_leave(self) -> None:
        close_screen(self)


class Help(ModalScreen[None]):
    BINDINGS = [  # noqa: RUF012 - as textual declares it
        Binding("escape,q,question_mark,enter", "leave", "back"),
        Binding("j", "scroll(1)", "down", show=False),
        Binding("k", "scroll(-1)", "up", show=False),
    ]

    def compose(self) -> ComposeResult:
        lines = []
        for name, keys in KEY_GROUPS.items():
            lines.append(Text(name, style="underline"))
            lines += [Text.assemble((f"{key:<10}", "bold"), about) for key, about in keys]
        with VerticalScroll(id="dialog") as dialog:
            dialog.border_title, dialog.border_subtitle = "Keys", "j k: scroll  esc: back"
            yield Static(Text("\n").join(lines))

    def action_scroll(self, lines: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)

    def action_leave(self) -> None:
        close_screen(self)
