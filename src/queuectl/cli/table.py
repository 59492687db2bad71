"""Columns of text: aligned, fitted to a terminal, plain in a pipe.

By hand and not by rich: its console takes 40 ms to import, which a list of ten jobs should not cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from queuectl.cli.printable import printable
from queuectl.cli.result import Column
from queuectl.cli.style import paint

GAP = "  "
NARROWEST_CUT = 8  # a flexible column is not cut below this while another one can be left out


def lay_out(rows: Iterable[Any], columns: Sequence[Column[Any]], *, width: int | None, colour: bool) -> Iterator[str]:
    """The lines of a table, its header first; none if there are no rows and `width` says it is for people.

    `width` None is a pipe: nothing is cut, nothing is coloured.
    """
    shown = [(row, [printable(column.cell(row)) for column in columns]) for row in rows]
    kept = [
        index for index, column in enumerate(columns) if not column.optional or any(cells[index] for _, cells in shown)
    ]
    wanted = {
        index: max([len(columns[index].title), *(cell_width(cells[index]) for _, cells in shown)]) for index in kept
    }
    sizes = wanted if width is None else _squeeze(wanted, columns, width)
    kept, widths = list(sizes), list(sizes.values())
    titles = [columns[index].title for index in kept]
    rights = [columns[index].right for index in kept]
    header = _line(
        [_fit(title, size) for title, size in zip(titles, widths, strict=True)], widths, rights, [None] * len(kept)
    )
    yield paint(header, "bold", colour=colour)
    for row, cells in shown:
        styles = [_style(columns[index], row) if colour else None for index in kept]
        yield _line(
            [_fit(cells[index], size) for index, size in zip(kept, widths, strict=True)], widths, rights, styles
        )


def cell_width(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def fit(text: str, width: int) -> str:
    """`text` on at most `width` columns; what is cut ends in `…`."""
    return _fit(printable(text), width)


def _fit(text: str, width: int) -> str:
    if cell_width(text) <= width:
        return text
    if text.isascii():
        return text[: width - 1] + "…"
    from rich.cells import set_cell_size

    return set_cell_size(text, width - 1).rstrip() + "…"


def _squeeze(wanted: Mapping[int, int], columns: Sequence[Column[Any]], room: int) -> dict[int, int]:
    """The widths of the columns that can be shown, so that a row is one line: cut what is flexible, then leave out what can
    be spared, then cut whatever is widest."""
    sizes = dict(wanted)
    _cut(sizes, [index for index in sizes if columns[index].flexible], room, floor=NARROWEST_CUT)
    while _excess(sizes, room) > 0:
        spare = max(sizes, key=lambda index: columns[index].spare)
        if columns[spare].spare == 0:
            _cut(sizes, list(sizes), room, floor=1)
            break
        # From the beginning: what was cut for the sake of this one may have its room back.
        sizes = {index: wanted[index] for index in sizes if index != spare}
        _cut(sizes, [index for index in sizes if columns[index].flexible], room, floor=NARROWEST_CUT)
    return sizes


def _cut(sizes: dict[int, int], able: Sequence[int], room: int, *, floor: int) -> None:
    """Take from the widest of those that are `able` until the line fits, or none is wider than `floor`."""
    while (excess := _excess(sizes, room)) > 0 and (wide := [index for index in able if sizes[index] > floor]):
        widest = max(wide, key=lambda index: sizes[index])
        next_widest = max([floor, *(sizes[index] for index in wide if sizes[index] < sizes[widest])])
        sizes[widest] -= max(1, min(excess, sizes[widest] - next_widest))


def _excess(sizes: Mapping[int, int], room: int) -> int:
    return sum(sizes.values()) + len(GAP) * (len(sizes) - 1) - room


def _line(cells: list[str], widths: list[int], rights: list[bool], styles: Sequence[str | None]) -> str:
    parts = []
    for cell, size, right, style in zip(cells, widths, rights, styles, strict=True):
        pad = " " * (size - cell_width(cell))
        painted = paint(cell, style, colour=style is not None)
        parts.append(pad + painted if right else painted + pad)
    return GAP.join(parts).rstrip()


def _style(column: Column[Any], row: Any) -> str | None:
    return column.style(row) if callable(column.style) else column.style
