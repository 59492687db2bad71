"""Files and folders of this repository that the pages name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, name, prose

# Inline code that is a path: with a slash, or a file name with one of these endings.
PATH = re.compile(r"`((?:[\w.*-]+/)+[\w.*-]*|[\w*-]+\.(?:py|sql|sh))`")
# Tests and scripts can be named with a function or arguments, such as `scripts/bench throughput`.
START = re.compile(r"`((?:scripts|tests|bench|src|docs|deploy|\.ci)/[\w./*-]+)")
SOURCE = Path("src/queuectl")
# Pages for contributors name modules relative to src/queuectl/. On other pages, most paths belong to users.
FOR_CONTRIBUTORS = [
    path for path in PAGES if path.name == "CONTRIBUTING.md" or {"internals", "bench"} & {*path.relative_to(ROOT).parts}
]
# Paths in a data directory, below the folder that the sentence is about, or no paths at all.
OTHERS = {"workers/", "migrations/", "sqlite/", "postgres/", "5/15"}


def exists(path: str, *folders: Path) -> bool:
    return any(next((ROOT / folder).glob(path.rstrip("/")), None) for folder in folders)


def file_names() -> set[str]:
    return {path.name for folder in ("src", "tests", "bench", "scripts") for path in (ROOT / folder).rglob("*.*")}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_path_from_the_root_exists(page: Path) -> None:
    named = set(START.findall(page.read_text("utf-8")))
    assert not sorted(path for path in named if not exists(path, Path()))


@pytest.mark.parametrize("page", FOR_CONTRIBUTORS, ids=name)
def test_every_path_on_a_page_for_contributors_exists(page: Path) -> None:
    named = set(PATH.findall(prose(page.read_text("utf-8")))) - OTHERS
    names = file_names()
    folders = (Path(), SOURCE, SOURCE.parent, page.parent.relative_to(ROOT))
    assert not sorted(path for path in named if path not in names and not exists(path, *folders))


def test_a_path_that_does_not_exist_is_found() -> None:
    assert PATH.findall("See `process/missing.py`, `wire.py` and `logs/`.") == [
        "process/missing.py",
        "wire.py",
        "logs/",
    ]
    assert START.findall("Run `scripts/nothing --all`.") == ["scripts/nothing"]
    assert not exists("process/missing.py", Path(), SOURCE)
    assert not exists("scripts/nothing", Path())
