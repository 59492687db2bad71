"""The documentation site builds without warnings, has a search index, and loads nothing from other servers."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import require

ROOT = Path(__file__).parent.parent.parent
# Resources that a browser loads without a click.
FETCHED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?(https?:|//)|<link\b[^>]*\bhref=["']?(https?:|//)"""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require("mkdocs-material", importlib.util.find_spec("material"), "it builds the site")
    made = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(made)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return made


def test_every_page_is_on_the_site(site: Path) -> None:
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    expected = {page.with_name("index.html") if page.name == "README.html" else page for page in pages}
    assert expected <= {path.relative_to(site) for path in site.rglob("*.html")}


def test_a_browser_loads_nothing_from_other_servers(site: Path) -> None:
    found = {
        path.relative_to(site).as_posix(): FETCHED.findall(path.read_text("utf-8")) for path in site.rglob("*.html")
    }
    assert found
    assert not {name: sources for name, sources in found.items() if sources}
    styles = "".join(path.read_text("utf-8") for path in site.rglob("*.css"))
    assert not re.search(r"url\([\"']?(https?:)?//", styles)


def test_the_search_index_has_the_pages(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text("utf-8"))
    places = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert {"how-to/timeouts.html", "reference/commands.html", "explanation/design.html"} <= places
