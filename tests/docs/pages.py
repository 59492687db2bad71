"""The pages that people read, and what is in them."""

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
    """The page without what stands in blocks of code, which is nobody's link or heading."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    """What a link may name behind its #, as the usual renderers make it of a heading."""
    titles = re.findall(r"^#+ (.+)$", prose(text), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def section(text: str, title: str) -> str:
    """From the heading to the next one of any level."""
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"there is no section {title!r}"
    return found[1]


def first_column(text: str) -> list[str]:
    """The code in the first cells of the tables."""
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    return [code for cell in rows for code in re.findall(r"`([^`]+)`", cell)]
