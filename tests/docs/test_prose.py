"""The pages are written in short sentences and in the second person, with titles that people search for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, name, prose

LONGEST = 25
# Words of the code, changed there.
GENERATED = {"commands.md", "loader-variables.md", "python-api.md"}
WRITTEN = [path for path in PAGES if path.name not in GENERATED and "adr" not in path.parts]
UNIT = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )|\n(?=[#|])")
SENTENCE = re.compile(r"(?<=[.!?:;])\s+(?=[A-Z`*\[(])")


def sentences(page: str) -> Iterator[str]:
    """Yield the sentences of a page, without headings, tables and code."""
    text = re.sub(r"<!--.*?-->|<picture>.*?</picture>", "", prose(page), flags=re.DOTALL)
    for unit in UNIT.split(text):
        block = re.sub(r"^\s*(?:[-*]|\d+\.) ", "", unit.strip())
        if not block.startswith(("#", "|")):
            plain = re.sub(r"`[^`]*`", "CODE", re.sub(r"\]\([^)]*\)", "]", " ".join(block.split())))
            yield from SENTENCE.split(plain)


def words(sentence: str) -> int:
    return sum(1 for word in sentence.split() if re.search(r"\w", word))


@pytest.mark.parametrize("path", WRITTEN, ids=name)
def test_no_sentence_of_a_page_is_long(path: Path) -> None:
    long = [one for one in sentences(path.read_text("utf-8")) if words(one) > LONGEST]
    assert not long, "\n".join(long)


@pytest.mark.parametrize("path", [path for path in WRITTEN if name(path).startswith("docs/")], ids=name)
def test_titles_and_headings_name_a_feature(path: Path) -> None:
    titles = re.findall(r"^#+ (.+)$", prose(path.read_text("utf-8")), re.MULTILINE)
    assert titles
    assert not [title for title in titles if title.startswith(("How to ", "Good to know"))]


def test_a_long_sentence_is_found() -> None:
    page = f"# Title\n\nShort. A {'word ' * 26}end.\n\n| {'cell ' * 40} |\n"
    assert [words(one) > LONGEST for one in sentences(page)] == [False, True]
