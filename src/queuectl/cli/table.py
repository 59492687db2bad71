"""Columns of text: aligned, fitted to a terminal, plain in a pipe.

By hand and not by rich: its console takes 40 ms to import, which a list of ten jobs should not cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from queuectl.cli.printable import printable
from queuectl.cli.result import Column
from queuectl.cli.style import paint

GAP = "  "
NARROWEST_CUT = 8  # a flexible column is not cut below this: better a broken line than a column of dots


def lay_out(rows: Iterable[Any], columns: Sequence[Column[Any]], *, width: int | None, colour: bool) -> Iterator[str]:
    """The lines of a table, its header first; none if there are no rows and `width` says it is for people.

    `width` None is a pipe: nothing is cut, nothing is coloured.
    """
    shown = [(row, [printable(column.cell(row)) for column in columns]) for row in rows]
    kept = [
        index for index, column in enumerate(columns) if not column.optional or any(cells[index] for _, cells in shown)
    ]
    titles = [columns[index].title for index in kept]
    widths = [max([len(columns[index].title), *(cell_width(cells[index]) for _, cells in shown)]) for index in kept]
    if width is not None:
        _squeeze(widths, [columns[index].flexible for index in kept], width)
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


def _squeeze(widths: list[int], flexible: list[bool], room: int) -> None:
    """Take from the widest flexible column until the line fits."""
    excess = sum(widths) + len(GAP) * (len(widths) - 1) - room
    while excess > 0:
        able = [i for i, can in enumerate(flexible) if can and widths[i] > NARROWEST_CUT]
        if not able:
            return
        widest = max(able, key=lambda i: widths[i])
        others = [widths[i] for i in able if i != widest]
        floor = max([NARROWEST_CUT, *(size for size in others if size < widths[widest])])
        taken = max(1, min(excess, widths[widest] - floor))
        widths[widest] -= taken
        excess -= taken


def _line(cells: list[str], widths: list[int], rights: list[bool], styles: Sequence[str | None]) -> str:
    parts = []
    for cell, size, right, style in zip(cells, widths, rights, styles, strict=True):
        pad = " " * (size - cell_width(cell))
        painted = paint(cell, style, colour=style is not None)
        parts.append(pad + painted if right else painted + pad)
    return GAP.join(parts).rstrip()


def _style(column: Column[Any], row: Any) -> str | None:
    return column.style(row) if callable(column.style) else column.style
