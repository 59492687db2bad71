"""Widgets: lines and tables that are refreshed often."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from rich.text import Text
from textual.binding import Binding
from textual.coordinate import Coordinate
from textual.widgets import DataTable, Static

from queuectl.tui.tables import Column, Row

# First in the footer of each table, which a narrow terminal cuts at the end.
HELP_BINDING: Final = Binding("question_mark", "app.help", "help", key_display="?")
MARK: Final = Text("✓", style="bold")
_NO_MARK: Final = Text("")
_GUTTER: Final = Column("", 2)


class Line(Static):
    """Text of one or more lines."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._text = Text()

    def put(self, text: Text) -> None:
        if text != self._text or text.spans != self._text.spans:
            self._text = text
            self.update(text)


class Rows(DataTable[Text]):
    """A table whose cursor stays on its row when rows are added, removed or moved."""

    BINDINGS = [  # noqa: RUF012 - as textual declares it
        Binding("j", "cursor_down", "down", show=False),
        Binding("k", "cursor_up", "up", show=False),
        Binding("g,home", "first", "first", show=False),
        Binding("G,end", "last", "last", show=False),
        Binding("ctrl+d", "page_down", "page down", show=False),
        Binding("ctrl+u", "page_up", "page up", show=False),
    ]

    def __init__(self, *, id: str, has_marks: bool = False) -> None:
        super().__init__(id=id, cursor_type="row", cell_padding=0, zebra_stripes=False)
        self._gutter = [_GUTTER] if has_marks else []
        self._columns: list[Column] = []
        self._rows: list[Row] = []
        self._marked: AbstractSet[str] = frozenset()

    @property
    def selected(self) -> str | None:
        """The key of the row that the cursor is on."""
        return self._rows[self.cursor_row].key if 0 <= self.cursor_row < len(self._rows) else None

    @property
    def space(self) -> int:
        """The width for the columns, without the scrollbar."""
        return self.content_size.width - 1 - sum(column.width for column in self._gutter)

    def present(
        self,
        columns: Sequence[Column],
        rows: Sequence[Row],
        *,
        marked: AbstractSet[str] = frozenset(),
        keeps_place: bool = False,
    ) -> None:
        """`keeps_place`: rows were added above the first one only because the window has moved."""
        columns, rows = list(columns), list(rows)
        if columns != self._columns or [row.key for row in rows] != [row.key for row in self._rows]:
            self._rebuild(columns, rows, marked, keeps_place=keeps_place)
            return
        # A change makes the cells that textual has cached useless, and it would keep ten thousand of them.
        if rows != self._rows or marked != self._marked:
            self._clear_caches()
        first = len(self._gutter)
        for at, (before, row) in enumerate(zip(self._rows, rows, strict=True)):
            if first and (row.key in marked) != (row.key in self._marked):
                self.update_cell_at(Coordinate(at, 0), MARK if row.key in marked else _NO_MARK)
            for column, (was, cell) in enumerate(zip(before.cells, row.cells, strict=True)):
                if was != cell or was.style != cell.style:
                    self.update_cell_at(Coordinate(at, column + first), _fit(cell, columns[column]))
        self._rows, self._marked = rows, frozenset(marked)

    def _rebuild(self, columns: list[Column], rows: list[Row], marked: AbstractSet[str], *, keeps_place: bool) -> None:
        key, at, scroll = self.selected, self.cursor_row, self.scroll_y
        has_new_columns = columns != self._columns
        self._columns, self._rows, self._marked = columns, rows, frozenset(marked)
        with self.app.batch_update():
            self.clear(columns=has_new_columns)
            if has_new_columns:
                for number, (label, width) in enumerate([*self._gutter, *columns]):
                    self.add_column(Text(label, style="dim"), width=width, key=f"{number} {label}")
            for row in rows:
                cells = [_fit(cell, column) for cell, column in zip(row.cells, columns, strict=True)]
                gutter = [MARK if row.key in marked else _NO_MARK] if self._gutter else []
                self.add_row(*gutter, *cells, key=row.key)
            indices = {row.key: index for index, row in enumerate(rows)}
            index = indices.get(key, min(at, len(rows) - 1)) if key is not None else 0
            # At the top, show new rows; otherwise keep the selected row in its position on the screen.
            self.move_cursor(row=max(0, index), scroll=False)
            self.scroll_to(y=scroll + (index - at if scroll or keeps_place else 0), animate=False, force=True)

    def show_hint(self, hint: str) -> None:
        """In the lower border, if the table is empty."""
        self.border_subtitle = "" if self._rows else Text(hint)

    def go_to(self, row: int) -> None:
        self.move_cursor(row=max(0, min(row, len(self._rows) - 1)), scroll=True)

    def action_first(self) -> None:
        self.go_to(0)

    def action_last(self) -> None:
        self.go_to(len(self._rows) - 1)


def _fit(cell: Text, column: Column) -> Text:
    fitted = cell.copy()
    fitted.truncate(max(1, column.width - 1), overflow="ellipsis")
    return fitted
