"""What mkdocs is told beside mkdocs.yml: which pages there are, and what becomes of links that lead out of docs/."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def on_config(config: Any) -> Any:
    """A folder in `nav` stands for its pages, its README first: a new page needs no line there."""
    config.nav = [_expanded(entry) for entry in config.nav]
    return config


def _expanded(entry: Any) -> Any:
    if not isinstance(entry, dict):
        return entry
    ((title, target),) = entry.items()
    folder = HERE / target
    if not folder.is_dir():
        return entry
    pages = sorted(folder.glob("*.md"), key=lambda path: (path.name != "README.md", path.name))
    return {title: [path.relative_to(HERE).as_posix() for path in pages]}


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """A file of the checkout is not on the site: its name stays, as text. tests/docs/test_links.py sees that it exists."""
    here = (HERE / page.file.src_uri).parent

    def replaced(found: re.Match[str]) -> str:
        text, target = found[1], found[2].partition("#")[0]
        if not target or re.match(r"[a-z]+:", target):
            return found[0]
        path = (here / target).resolve()
        is_page = path.is_relative_to(HERE) and path.suffix not in (".py", ".yml", ".json") and not path.is_dir()
        return found[0] if is_page else text

    parts = re.split(r"^(```.*?^```$)", markdown, flags=re.DOTALL | re.MULTILINE)
    return "".join(
        part if number % 2 else re.sub(r"\[([^\]]*)\]\(([^)\s]+)\)", replaced, part)
        for number, part in enumerate(parts)
    )
