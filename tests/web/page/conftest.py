from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.needs import require
from tests.program import Leftovers, WorkerProcess
from tests.web.page.site import TOKEN, Site, Visit, Watch

CHROMIUM = shutil.which("chromium")
# Nothing that it would do by itself: it is here to look at one page.
ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

# As patient as tests/wait.py: a machine that is busy is no reason to fail.
PATIENCE = 30_000
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site"))
    try:
        yield made.start()
    finally:
        made.stop()
        Leftovers(made.queuectl.home).end()


@pytest.fixture(scope="module")
def worker(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerProcess]:
    made = WorkerProcess(site.queuectl, tmp_path_factory.mktemp("worker") / "log", "--count", "3", "--name", "bee")
    try:
        yield made.wait_until_ready()
    finally:
        made.end()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    require("chromium", CHROMIUM, "it is what people look with")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield opened
        opened.close()


@pytest.fixture
def visit(site: Site, browser: Browser) -> Iterator[Visit]:
    """`visit("/jobs", look="dark", script=False, token=READER)`: a page in a window of its own. At the end it must have had nothing
    to complain about; `page.expected` are words of what may be said all the same."""
    contexts: list[BrowserContext] = []
    watches: list[tuple[Watch, Page]] = []

    def go(path: str = "/", *, look: str = "light", script: bool = True, token: str | None = TOKEN) -> Page:
        size = {"width": 360, "height": 740} if look == "phone" else {"width": 1240, "height": 860}
        scheme = "dark" if look == "dark" else "light"
        context = browser.new_context(color_scheme=scheme, viewport=size, java_script_enabled=script)
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        watch = Watch()
        watch.over(page, site)
        watches.append((watch, page))
        # As the printed address has it: the token is traded for a cookie, and what is shown is the page without it.
        auth = "" if token is None else f"{'&' if '?' in path else '?'}token={token}"
        page.goto(site.url + path + auth)
        page.expected = ()  # type: ignore[attr-defined]
        return page

    yield go
    for context in contexts:
        context.close()
    left = [
        fault
        for watch, page in watches
        for fault in watch.faults
        if not any(word in fault for word in page.expected)  # type: ignore[attr-defined]
    ]
    assert not left, left


@pytest.fixture
def screenshots() -> Path | None:
    """The directory for screenshots, $QUEUECTL_SCREENSHOTS; None: take none."""
    folder = os.environ.get("QUEUECTL_SCREENSHOTS")
    if folder is None:
        return None
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    return path
