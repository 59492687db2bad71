"""The pages of docs/ as plain text, for `queuectl help TOPIC`. `scripts/docs` writes them into the package."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import wrap

HERE = Path(__file__).parent
WIDTH = 78
# In addition to how-to/. Commands, settings and errors are omitted, because queuectl prints them itself.
REFERENCE = ("environment", "exit-codes", "guarantees", "home", "json", "lifecycle", "loader-variables", "metrics")


def topics() -> Mapping[str, str]:
    pages = {path.stem: path for path in sorted((HERE / "how-to").glob("*.md"))}
    pages |= {name: HERE / "reference" / f"{name}.md" for name in REFERENCE}
    pages["tutorial"] = HERE / "tutorial.md"
    pages["security"] = HERE / "explanation" / "security.md"
    return {name: plain(path.read_text("utf-8")) for name, path in sorted(pages.items()) if path.exists()}


def plain(page: str) -> str:
    lines = list(_lines(page))
    while lines and not lines[0]:
        lines.pop(0)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def _lines(page: str) -> Iterator[str]:
    page = re.sub(r"<!--.*?-->\n?", "", page, flags=re.DOTALL)
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
        for row in lines:
            cells = [_inline(cell.strip().replace("\\|", "|")) for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
            if not all(re.fullmatch(r":?-+:?", cell) for cell in cells):
                yield from wrap("  ".join(filter(None, cells)), WIDTH, subsequent_indent="      ", initial_indent="  ")
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


def _inline(text: str) -> str:
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"\*\*(.+?)\*\*", r"\1", text)
    return text.replace("`", "")
