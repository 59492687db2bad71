"""Widgets for text and tables that are refreshed often: only changed cells are updated, and the cursor stays on its row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text
from textual.binding import Binding
from textual.coordinate import Coordinate
from textual.widgets import DataTable, Static


class Column(NamedTuple):
    label: str
    width: int  # including the gap after it


class Row(NamedTuple):
    key: str
    cells: tuple[Text, ...]


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
    BINDINGS = [  # noqa: RUF012 - as textual declares it
        Binding("j", "cursor_down", "down", show=False),
        Binding("k", "cursor_up", "up", show=False),
    ]

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id, cursor_type="row", cell_padding=0, zebra_stripes=False)
        self._columns: list[Column] = []
        self._rows: list[Row] = []

    @property
    def selected(self) -> str | None:
        """The key of the row that the cursor is on."""
        return self._rows[self.cursor_row].key if 0 <= self.cursor_row < len(self._rows) else None

    def present(self, columns: Sequence[Column], rows: Sequence[Row]) -> None:
        columns, rows = list(columns), list(rows)
        if columns != self._columns or [row.key for row in rows] != [row.key for row in self._rows]:
            self._rebuild(columns, rows)
            return
        # A change makes the cells that textual has cached useless, and it would keep ten thousand of them.
        if rows != self._rows:
            self._clear_caches()
        for at, (before, row) in enumerate(zip(self._rows, rows, strict=True)):
            for column, (was, cell) in enumerate(zip(before.cells, row.cells, strict=True)):
                if was != cell or was.style != cell.style:
                    self.update_cell_at(Coordinate(at, column), _fit(cell, columns[column]))
        self._rows = rows

    def _rebuild(self, columns: list[Column], rows: list[Row]) -> None:
        key, at, scroll = self.selected, self.cursor_row, self.scroll_y
        has_new_columns = columns != self._columns
        self._columns, self._rows = columns, rows
        with self.app.batch_update():
            self.clear(columns=has_new_columns)
            if has_new_columns:
                for label, width in columns:
                    self.add_column(Text(label, style="dim"), width=width, key=label)
            for row in rows:
                cells = [_fit(cell, column) for cell, column in zip(row.cells, columns, strict=True)]
                self.add_row(*cells, key=row.key)
            indices = {row.key: index for index, row in enumerate(rows)}
            index = indices.get(key, min(at, len(rows) - 1)) if key is not None else 0
            # At the top, show new rows; otherwise keep the selected row in its position on the screen.
            self.move_cursor(row=max(0, index), scroll=False)
            self.scroll_to(y=scroll + (index - at if scroll else 0), animate=False, force=True)


def _fit(cell: Text, column: Column) -> Text:
    fitted = cell.copy()
    fitted.truncate(max(1, column.width - 1), overflow="ellipsis")
    return fitted
