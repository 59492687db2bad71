"""The pages of docs/ as plain text, for `queuectl help TOPIC`. `scripts/docs` writes them into the package."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from textwrap import wrap

HERE = Path(__file__).parent
WIDTH = 78
GAP = 2
NARROWEST = 16  # a narrower column of prose cannot be read
# In addition to guides/. Commands, settings and errors are omitted, because queuectl prints them itself.
GET_STARTED = ("concepts", "faq", "installation", "tutorial")
REFERENCE = (
    "data-directory",
    "environment",
    "exit-codes",
    "guarantees",
    "json",
    "lifecycle",
    "loader-variables",
    "metrics",
)


def topics() -> Mapping[str, str]:
    pages = {path.stem: path for path in (HERE / "guides").glob("*.md")}
    pages |= {name: HERE / "get-started" / f"{name}.md" for name in GET_STARTED}
    pages |= {name: HERE / "reference" / f"{name}.md" for name in REFERENCE}
    return {name: plain(path.read_text("utf-8")) for name, path in sorted(pages.items()) if path.exists()}


def plain(page: str) -> str:
    lines = list(_lines(page))
    while lines and not lines[0]:
        lines.pop(0)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def _lines(page: str) -> Iterator[str]:
    page = re.sub(r"<!--.*?-->\n?|<picture>.*?</picture>\n?", "", page, flags=re.DOTALL)
    for number, part in enumerate(re.split(r"^(```.*?^```$)", page, flags=re.DOTALL | re.MULTILINE)):
        if number % 2:
            yield from (f"    {line}".rstrip() for line in part.splitlines()[1:-1])
        else:
            for block in re.split(r"\n\s*\n", part):
                yield from _block(block)
                yield ""


def _block(block: str) -> Iterator[str]:
    lines = block.strip("\n").splitlines()
    if lines and lines[0].startswith("|"):
        rows = [
            [_inline(cell.strip().replace("\\|", "|")) for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in lines
        ]
        yield from table([row for row in rows if not all(re.fullmatch(r":?-+:?", cell) for cell in row)])
        return
    pending: list[str] = []
    for line in [*lines, ""]:
        starts = re.match(r"(\s*)([-*]|\d+\.) ", line)
        if starts or line.startswith("#") or not line:
            if pending:
                bullet = re.match(r"\s*(?:[-*] |\d+\. )?", pending[0])
                assert bullet is not None
                lead, hang = len(pending[0]) - len(pending[0].lstrip()), len(bullet[0])
                text = _inline(" ".join(word.strip() for word in pending))
                yield from wrap(
                    text, WIDTH, initial_indent=" " * lead, subsequent_indent=" " * hang, break_on_hyphens=False
                )
            pending = []
        if line.startswith("#"):
            title = _inline(line.lstrip("# "))
            yield title
            if line.startswith("# "):
                yield "=" * len(title)
            yield ""
        elif line:
            pending.append(line)


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Align the columns; wrap the wide ones. A table with too many columns becomes a list."""
    widths = _widths([max(map(len, column)) for column in zip(*rows, strict=True)])
    if widths is None:
        yield from _as_list(rows)
        return
    for row in rows:
        cells = [wrap(cell, width, break_on_hyphens=False) for cell, width in zip(row, widths, strict=True)]
        for parts in zip_longest(*cells, fillvalue=""):
            columns = (part.ljust(width + GAP) for part, width in zip(parts, widths, strict=True))
            yield f"  {''.join(columns)}".rstrip()


def _widths(natural: list[int]) -> list[int] | None:
    """The widths that fit into a line, None if there are none. The widest columns share what the others leave."""
    room = WIDTH - 2 - GAP * (len(natural) - 1)
    widths = list(natural)
    for share in range(max(natural, default=0), NARROWEST - 1, -1):
        if sum(widths) <= room:
            break
        widths = [min(width, share) for width in natural]
    return widths if sum(widths) <= room else None


def _as_list(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    titles, *others = rows
    for row in others:
        yield f"  {row[0]}"
        for title, cell in zip(titles[1:], row[1:], strict=True):
            if cell:
                text = f"{title}: {cell}" if title else cell
                yield from wrap(text, WIDTH, initial_indent="    ", subsequent_indent="      ", break_on_hyphens=False)


def _inline(text: str) -> str:
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"\*\*(.+?)\*\*", r"\1", text)
    return text.replace("`", "")
