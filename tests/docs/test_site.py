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
    assert {"guides/timeouts.html", "reference/commands.html", "internals/design.html"} <= places


@pytest.fixture(scope="module")
def search_words(site: Path) -> dict[str, set[str]]:
    """Return the words of each page in the search index."""
    index = json.loads((site / "search" / "search_index.json").read_text("utf-8"))
    found: dict[str, set[str]] = {}
    for entry in index["docs"]:
        page = entry["location"].partition("#")[0]
        text = re.sub(r"<[^>]+>", " ", f"{entry['title']} {entry['text']}").lower()
        found.setdefault(page, set()).update(re.findall(r"[a-z]+(?:-[a-z]+)*", text))
    return found


# What people type, and the page that they need.
SEARCHES = {
    "unique": "guides/unique-jobs.html",
    "dedupe": "guides/unique-jobs.html",
    "deduplication": "guides/unique-jobs.html",
    "idempotent": "guides/unique-jobs.html",
    "rate limit": "guides/rate-limits.html",
    "concurrency": "guides/rate-limits.html",
    "throttling": "guides/rate-limits.html",
    "retention": "guides/retention-and-backup.html",
    "cleanup": "guides/retention-and-backup.html",
    "backup": "guides/retention-and-backup.html",
    "allow-list": "guides/policy.html",
    "dag": "guides/dependencies.html",
    "workflow": "guides/dependencies.html",
    "secrets": "guides/secrets.html",
    "password": "guides/secrets.html",
    "webhook": "guides/webhooks.html",
    "cron": "guides/schedules.html",
    "systemd": "guides/systemd.html",
    "kubernetes": "guides/containers.html",
    "docker": "guides/containers.html",
    "dead letter": "guides/retries.html",
    "stuck": "guides/troubleshooting.html",
    "monitoring": "guides/inspect.html",
    "memory": "guides/resource-limits.html",
    "glossary": "get-started/concepts.html",
    "pipx": "get-started/installation.html",
}


@pytest.mark.parametrize("search", SEARCHES)
def test_a_search_finds_the_page(search_words: dict[str, set[str]], search: str) -> None:
    words = search_words[SEARCHES[search]]
    # The search of the site matches beginnings of words.
    assert all(any(word.startswith(part) for word in words) for part in search.split())
