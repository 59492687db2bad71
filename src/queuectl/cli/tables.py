"""Text for a terminal: bars, and tables that fit its width.

Tables are laid out here and not by rich, whose console takes 40 ms to import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

from queuectl.cli.app import paint
from queuectl.jobs.states import State
from queuectl.text import escape_control

STATE_STYLE: Final = {
    State.BLOCKED: "magenta",
    State.PENDING: "yellow",
    State.PROCESSING: "cyan",
    State.FAILED: "orange",
    State.COMPLETED: "green",
    State.DEAD: "red",
    State.CANCELLED: "dim",
}


BAR_WIDTH: Final = 24


def bar_text(good: int, bad: int, total: int | None, *, width: int = BAR_WIDTH, color: bool) -> str:
    """A bar that is full at `total`, with `bad` in red; empty if the total is not known."""
    greens, reds = (min(width, width * count // total) if total else 0 for count in (good, bad))
    rest = "░" * max(0, width - greens - reds)
    return paint("█" * greens, "green", color=color) + paint("█" * reds, "red", color=color) + rest


T = TypeVar("T")


class Column(NamedTuple, Generic[T]):
    """One column of a table. `cell` returns plain text; the renderer escapes it.

    A `flexible` column may be truncated to fit a terminal. An `optional` one is omitted if all of its cells are empty. On
    a terminal too narrow for all columns, the one with the highest `spare` is omitted first; one with 0 never is.
    """

    title: str
    cell: Callable[[T], str]
    style: Callable[[T], str | None] | str | None = None
    right: bool = False
    flexible: bool = False
    optional: bool = False
    spare: int = 0


GAP = "  "
MIN_FLEXIBLE_WIDTH = 8  # a flexible column is not truncated below this while another one can be omitted


def lay_out(rows: Iterable[Any], columns: Sequence[Column[Any]], *, width: int | None, color: bool) -> Iterator[str]:
    """The lines of a table, its header first.

    `width` None means a pipe: nothing is truncated.
    """
    shown = [(row, [escape_control(column.cell(row)) for column in columns]) for row in rows]
    wanted = {
        index: max([len(column.title), *(cell_width(cells[index]) for _, cells in shown)])
        for index, column in enumerate(columns)
        if not column.optional or any(cells[index] for _, cells in shown)
    }
    sizes = wanted if width is None else _squeeze(wanted, columns, width)
    titles = [column.title for column in columns]
    yield paint(_line(titles, sizes, columns, [None] * len(columns)), "bold", color=color)
    for row, cells in shown:
        yield _line(cells, sizes, columns, [_style(column, row) if color else None for column in columns])


def cell_width(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def fit(text: str, width: int) -> str:
    """`text` on at most `width` columns; truncated text ends in `…`."""
    return _fit(escape_control(text), width)


def _fit(text: str, width: int) -> str:
    if cell_width(text) <= width:
        return text
    if text.isascii():
        return text[: width - 1] + "…"
    from rich.cells import set_cell_size

    return set_cell_size(text, width - 1).rstrip() + "…"


def _squeeze(wanted: Mapping[int, int], columns: Sequence[Column[Any]], width: int) -> dict[int, int]:
    """The widths of the columns that fit on one line.

    Truncate flexible columns, then omit columns by `spare`, then truncate the widest ones.
    """
    sizes = dict(wanted)
    _cut(sizes, [index for index in sizes if columns[index].flexible], width, floor=MIN_FLEXIBLE_WIDTH)
    while _excess(sizes, width) > 0:
        spare = max(sizes, key=lambda index: columns[index].spare)
        if columns[spare].spare == 0:
            _cut(sizes, list(sizes), width, floor=1)
            break
        # Start over: columns that were truncated for this one may get their width back.
        sizes = {index: wanted[index] for index in sizes if index != spare}
        _cut(sizes, [index for index in sizes if columns[index].flexible], width, floor=MIN_FLEXIBLE_WIDTH)
    return sizes


def _cut(sizes: dict[int, int], able: Sequence[int], width: int, *, floor: int) -> None:
    """Narrow the widest of the columns `able` until the line fits, or none is wider than `floor`."""
    while (excess := _excess(sizes, width)) > 0 and (wide := [index for index in able if sizes[index] > floor]):
        widest = max(wide, key=lambda index: sizes[index])
        next_widest = max([floor, *(sizes[index] for index in wide if sizes[index] < sizes[widest])])
        sizes[widest] -= max(1, min(excess, sizes[widest] - next_widest))


def _excess(sizes: Mapping[int, int], width: int) -> int:
    return sum(sizes.values()) + len(GAP) * (len(sizes) - 1) - width


def _line(
    cells: Sequence[str], sizes: Mapping[int, int], columns: Sequence[Column[Any]], styles: Sequence[str | None]
) -> str:
    parts = []
    for index, size in sizes.items():
        cell = _fit(cells[index], size)
        pad = " " * (size - cell_width(cell))
        painted = paint(cell, styles[index], color=styles[index] is not None)
        parts.append(pad + painted if columns[index].right else painted + pad)
    return GAP.join(parts).rstrip()


def _style(column: Column[Any], row: Any) -> str | None:
    return column.style(row) if callable(column.style) else column.style
