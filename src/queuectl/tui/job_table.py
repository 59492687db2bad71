"""The table of jobs, with its filter, order, marks and window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text
from textual.binding import Binding

from queuectl.errors import QueuectlError
from queuectl.jobs.model import Job
from queuectl.jobs.states import State
from queuectl.operations.query import query_suggestions
from queuectl.store.types import Filter, Sort
from queuectl.text import escape_control
from queuectl.tui import tables
from queuectl.tui.job_list import NOTHING, ORDERS, STEP, JobFilter, ListOrder, Move, anchor_at, read_window
from queuectl.tui.screens import Choice, Menu, Prompt, TermSuggester
from queuectl.tui.session import Session
from queuectl.tui.widgets import HELP_BINDING, Rows

if TYPE_CHECKING:
    from queuectl.tui.app import Top

# Near the ends of the window, it is moved.
MARGIN: Final = 20
_STATE_KEYS: Final = {
    "p": State.PENDING,
    "r": State.PROCESSING,
    "f": State.FAILED,
    "d": State.DEAD,
    "b": State.BLOCKED,
    "c": State.COMPLETED,
    "x": State.CANCELLED,
}
# The orders of the headers that can be clicked.
_SORTED_BY: Final = {"ID": Sort.CREATED, "STATE": None, "QUEUE": Sort.QUEUE, "PRI": Sort.PRIORITY, "WHEN": Sort.RUN_AT}

# The keys for one job, also in its own screen.
JOB_BINDINGS: Final = (
    Binding("c", "app.job_verb('cancel')", "cancel"),
    Binding("r", "app.job_verb('retry')", "retry"),
    Binding("h", "app.job_hold", "hold"),
    Binding("H", "app.job_verb('release')", "release", show=False),
    Binding("R", "app.job_verb('run-now')", "run now", show=False),
    Binding("d,delete", "app.job_verb('purge')", "purge", key_display="d"),
    Binding("e", "app.job_edit", "edit"),
    Binding("C", "app.job_clone", "clone", show=False),
    Binding("plus,equals_sign", "app.job_priority(1)", "raise", show=False),
    Binding("minus", "app.job_priority(-1)", "lower", show=False),
    Binding("p", "app.pause_queue", "pause", show=False),
    Binding("y", "app.copy_id", "copy ID", show=False),
)


def _suggestions(session: Session) -> list[str]:
    reads = session.find()
    return [] if reads is None else query_suggestions(reads)


class JobTable(Rows):
    BINDINGS = [  # noqa: RUF012 - as textual declares it
        HELP_BINDING,
        Binding("enter", "select_cursor", "open"),
        Binding("l", "log", "log"),
        Binding("space", "mark", "mark", key_display="spc"),
        Binding("a", "mark_loaded", "mark all or none", show=False),
        Binding("A", "mark_matching", "mark all that match", show=False),
        *JOB_BINDINGS,
        Binding("slash", "filter", "find", key_display="/"),
        Binding("s", "state", "state"),
        Binding("o,f6", "order(1)", "order", show=False),
        Binding("O", "reverse", "reverse", show=False),
    ]

    app: Top

    def __init__(self, *, id: str, title: str, base: JobFilter, order: ListOrder) -> None:
        """`base`: the filter that this list always has."""
        super().__init__(id=id, has_marks=True)
        self._title, self._base = title, base
        self.filter, self.order, self._first_order = base, order, order
        self.window = NOTHING
        self.marks: set[str] = set()
        self.is_all_marked = False
        self._move = Move()
        self._goal: str | None = None  # where the cursor goes with the next window

    # ── data ────────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def job(self) -> Job | None:
        selected = self.selected
        return next((job for job in self.window.jobs if job.id == selected), None)

    @property
    def is_behind(self) -> bool:
        """Whether the window is not the one that the user has asked for."""
        window = self.window
        asked = (self.filter, self.order, self._move.anchor)
        is_moved = self._move.to_end or self._move.up_from is not None
        return is_moved or asked != (window.filter, window.order, window.anchor)

    @property
    def target(self) -> Filter | None:
        """The marked jobs; None if there are none."""
        if self.is_all_marked:
            return self.filter.where(lambda: self.window.now_ms)
        return Filter(ids=tuple(sorted(self.marks))) if self.marks else None

    async def load(self) -> None:
        """Raises Unavailable."""
        job_filter, order, move = self.filter, self.order, self._move
        window = await self.app.threads.reads.ask(lambda session: read_window(session, job_filter, order, move))
        if not window.jobs and window.anchor is not None:  # all of them are gone
            window = await self.app.threads.reads.ask(lambda session: read_window(session, job_filter, order, Move()))
        if (job_filter, order) != (self.filter, self.order):
            return  # the user has chosen another list meanwhile
        if window.order != order:
            self.app.say(f"too many jobs for the order: {order.label}", style="bold yellow")
            self.order = window.order
        if self._move is move:  # else the cursor has moved on
            self._move = Move(window.anchor, window.first)
        has_moved, self.window = window.anchor != self.window.anchor, window
        self.draw(keeps_place=has_moved)
        if self._goal is not None:
            row = 0 if self._goal == "first" else len(self._rows) - 1
            self._goal = None
            self.scroll_to(y=row, animate=False, force=True)
            self.go_to(row)
            self.show_titles()

    def draw(self, *, keeps_place: bool = False) -> None:
        columns = tables.job_columns(self.space)
        marked = {job.id for job in self.window.jobs} if self.is_all_marked else self.marks
        self.present(
            columns,
            [tables.job_row(job, self.window.now_ms, columns) for job in self.window.jobs],
            marked=marked,
            keeps_place=keeps_place,
        )
        self.show_titles()

    def show_titles(self) -> None:
        self.border_title = self.title_text()
        window, parts = self.window, []
        if self.is_all_marked:
            parts.append("all that match are marked")
        elif self.marks:
            parts.append(f"{len(self.marks):,} marked")
        if window.jobs:
            row = "" if window.first is None else f"{window.first + self.cursor_row + 1:,}"
            known = (window.first or 0) + len(window.jobs)
            total = f"{window.total:,}" if window.total is not None else f"{known:,}{'+' if window.has_more else ''}"
            parts.append(f"{row or '…'} of {total}")
        self.border_subtitle = Text("  ".join(parts))

    def title_text(self) -> Text:
        return Text.assemble(self._title, self.restrictions())

    def restrictions(self) -> Text:
        """The filter and the order, if they are not the first ones."""
        line = Text()
        if self.filter.query:
            line = Text.assemble("  ", (escape_control(self.filter.query), "bold"), ("  (esc: clear)", "dim"))
        if self.order != self._first_order:
            line.append(f"  {self.order.label}", style="dim")
        return line

    # ── window ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def on_data_table_row_highlighted(self, _: Rows.RowHighlighted) -> None:
        window = self.window
        if not self.is_behind and window.jobs:
            if self.cursor_row >= len(window.jobs) - MARGIN and window.has_more:
                first = None if window.first is None else window.first + STEP
                self._move = Move(anchor_at(window, STEP - 1), first)
                self.app.wake()
            elif self.cursor_row < MARGIN and window.anchor is not None:
                self._move = Move(window.anchor, window.first, up_from=window.jobs[0])
                self.app.wake()
        self.show_titles()
        self.app.on_cursor_moved()

    def action_first(self) -> None:
        if self.window.anchor is None and not self.is_behind:
            self.go_to(0)
        else:
            self._ask_for(Move(), "first")

    def action_last(self) -> None:
        if self.window.has_more or self.is_behind:
            self._ask_for(Move(to_end=True), "last")
        else:
            self.go_to(len(self._rows) - 1)

    def _ask_for(self, move: Move, goal: str) -> None:
        self._move, self._goal = move, goal
        self.app.wake()

    # ── filter and order ────────────────────────────────────────────────────────────────────────────────────────────

    def set_query(self, query: str) -> None:
        """Raises InvalidInput or UnknownName."""
        job_filter = self.filter._replace(query=query)
        job_filter.where(lambda: 0)
        self._set_list(job_filter, self.order)

    def _set_list(self, job_filter: JobFilter, order: ListOrder) -> None:
        self.filter, self.order = job_filter, order
        self.marks, self.is_all_marked = set(), False
        self._ask_for(Move(), "first")
        self.show_titles()

    def back(self) -> None:
        """Undo the last restriction: marks, then filter and order."""
        if self.marks or self.is_all_marked:
            self.marks, self.is_all_marked = set(), False
            self.draw()
        else:
            self._set_list(self._base, self._first_order)

    def action_filter(self) -> None:
        def take(text: str | None) -> None:
            try:
                if text is not None:
                    self.set_query(text.strip())
            except QueuectlError as error:
                self.app.say(f"{error.message} ({error.hint})", style="bold yellow")

        terms = TermSuggester(lambda: self.app.ask(_suggestions))
        hint = "queue:mail state:dead error:text  enter: apply  →: complete"
        self.app.push_screen(Prompt("Filter", self.filter.query, hint=hint, suggester=terms), take)

    def action_state(self) -> None:
        if self._base.state is not None:
            self.app.say("this list has dead jobs only: press 1 for all jobs", style="bold yellow")
            return
        counts = self.app.state_counts()
        choices = [Choice("a", Text("all"), "")]
        for key, state in _STATE_KEYS.items():
            label = Text.assemble((f"{state.value:<12}", tables.STYLE[state]), f"{counts.get(state, 0):>9,}")
            choices.append(Choice(key, label, state.value))

        def take(value: str | None) -> None:
            if value is not None:
                self._set_list(self.filter.with_values("state", [value] if value else []), self.order)

        self.app.push_screen(Menu("State", choices, next(iter(self.filter.values("state")), "")), take)

    def action_order(self, step: int) -> None:
        orders = list(ORDERS)
        self._order_by(orders[(orders.index(self.order.sort) + step) % len(orders)], reverse=False)

    def action_reverse(self) -> None:
        self._order_by(self.order.sort, reverse=not self.order.reverse)

    def _order_by(self, sort: Sort | None, *, reverse: bool) -> None:
        order = ListOrder(sort, reverse)
        self._set_list(self.filter, order)
        self.app.say(f"order: {order.label}")

    def on_data_table_header_selected(self, event: Rows.HeaderSelected) -> None:
        label = event.label.plain
        if label in _SORTED_BY:
            sort = _SORTED_BY[label]
            self._order_by(sort, reverse=self.order == ListOrder(sort))

    # ── marks ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def action_mark(self) -> None:
        if (selected := self.selected) is None:
            return
        if self.is_all_marked:
            self.is_all_marked = False
        self.marks ^= {selected}
        self.draw()
        self.action_cursor_down()

    def action_mark_loaded(self) -> None:
        is_marked = self.is_all_marked or bool(self.marks)
        self.marks, self.is_all_marked = set() if is_marked else {job.id for job in self.window.jobs}, False
        self.draw()

    def action_mark_matching(self) -> None:
        self.marks, self.is_all_marked = set(), bool(self.window.jobs)
        self.draw()

    def clear_marks(self) -> None:
        self.marks, self.is_all_marked = set(), False
        self.draw()

    # ── open ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def on_data_table_row_selected(self, _: Rows.RowSelected) -> None:
        self.app.open_job(self.job, log_only=False)

    def action_log(self) -> None:
        self.app.open_job(self.job, log_only=True)
