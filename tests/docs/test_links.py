"""Links in the pages are valid, and no page contains paths of one host."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.pages import PAGES, ROOT, anchors, name, prose

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
PICTURE = re.compile(r'(?:src|srcset)="([^"]+)"')


def matches(pattern: re.Pattern[str]) -> list[tuple[Path, str]]:
    """Return what the pattern finds in the prose of each page."""
    return [(page, found) for page in PAGES for found in pattern.findall(prose(page.read_text("utf-8")))]


def test_every_link_within_the_pages_leads_somewhere() -> None:
    for page, target in matches(LINK):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{name(page)}: {target}"
        assert not anchor or anchor in anchors(file.read_text("utf-8")), f"{name(page)}: {target}"


def test_no_page_knows_the_machine_it_was_written_on() -> None:
    local = re.compile(rf"{re.escape(str(ROOT))}|/tmp/(?!$)[a-z0-9_]*\d|/root\b")
    found = {name(page): local.findall(page.read_text("utf-8")) for page in PAGES}
    assert not {page: paths for page, paths in found.items() if paths}


def test_every_picture_exists_in_light_and_dark_and_is_small() -> None:
    for page, target in matches(PICTURE):
        file = (page.parent / target).resolve()
        assert file.stat().st_size < 150_000, target
        for look in ("light", "dark"):
            assert file.with_name(re.sub(r"(?:light|dark)(?=\.)", look, file.name)).exists(), target


def test_pictures_load_nothing_and_show_no_path_of_the_host_that_made_them() -> None:
    for file in (ROOT / "docs" / "images").glob("*.svg"):
        text = file.read_text("utf-8")
        assert not re.findall(r"url\([\"']?https?:|href=[\"']https?:|@font-face|/tmp/|/root/", text), file.name


def test_every_page_of_the_documentation_can_be_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md" or not page.exists():
            continue
        reached.add(page)
        targets = (link.partition("#")[0] for link in LINK.findall(prose(page.read_text("utf-8"))) if "://" not in link)
        waiting += [(page.parent / target).resolve() for target in targets if target]
    unreached = {name(path) for path in (ROOT / "docs").rglob("*.md")} - {name(path) for path in reached}
    assert not unreached
