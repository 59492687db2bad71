"""The pages of the documentation and their contents."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "bench").glob("*.md")])


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def read(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


def prose(text: str) -> str:
    """Return the page without code blocks, which contain no links and headings."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    """Return the anchors of a page, as common renderers derive them from headings."""
    titles = re.findall(r"^#+ (.+)$", prose(text), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def section(text: str, title: str) -> str:
    """Return the text from the heading to the next one of any level."""
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"there is no section {title!r}"
    return found[1]


def first_column(text: str) -> list[str]:
    """Return the inline code in the first column of tables."""
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    return [code for cell in rows for code in re.findall(r"`([^`]+)`", cell)]
