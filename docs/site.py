"""Hooks for mkdocs: expand folders in the navigation, and replace links that lead out of docs/ by text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def on_config(config: Any) -> Any:
    """Replace a folder in `nav` by its pages, README first, so that a new page needs no entry."""
    config.nav = [_expanded(entry) for entry in config.nav]
    return config


def _expanded(entry: Any) -> Any:
    if not isinstance(entry, dict):
        return entry
    ((title, target),) = entry.items()
    folder = HERE / target if isinstance(target, str) else None
    if folder is None or not folder.is_dir():
        return entry
    pages = sorted(folder.glob("*.md"), key=lambda path: (path.name != "README.md", path.name))
    return {title: [path.relative_to(HERE).as_posix() for path in pages]}


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Replace links to files outside the site by their text. tests/docs/test_links.py checks that the files exist."""
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
