from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, expect, sync_playwright

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
    # Fewer processes and less work for each page.
    "--disable-extensions",
    "--in-process-gpu",
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


class Contexts:
    """Browser contexts that tests use one after the other: opening one takes longer than most tests."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._free: dict[bool, list[BrowserContext]] = {True: [], False: []}  # by `java_script_enabled`

    def take(self, *, script: bool) -> BrowserContext:
        if self._free[script]:
            return self._free[script].pop()
        context = self._browser.new_context(java_script_enabled=script)
        context.set_default_timeout(PATIENCE)
        context.new_page()  # stays open: the first page of a context opens a window, the next ones only a tab
        return context

    def give_back(self, context: BrowserContext, *, script: bool, origin: str) -> None:
        """Remove what the tests have left in it."""
        first, *others = context.pages
        for page in others:
            page.close()
        context.set_offline(False)
        context.clear_cookies()
        session = context.new_cdp_session(first)
        session.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
        session.detach()
        self._free[script].append(context)


@pytest.fixture(scope="session")
def contexts(browser: Browser) -> Contexts:
    return Contexts(browser)


@pytest.fixture
def visit(site: Site, contexts: Contexts) -> Iterator[Visit]:
    """`visit("/jobs", look="dark", script=False, token=READER)`: a page in a window of its own. At the end it must have had nothing
    to complain about; `page.expected` are words of what may be said all the same."""
    taken: list[tuple[BrowserContext, bool]] = []
    watches: list[tuple[Watch, Page]] = []

    def go(path: str = "/", *, look: str = "light", script: bool = True, token: str | None = TOKEN) -> Page:
        size: ViewportSize = {"width": 360, "height": 740} if look == "phone" else {"width": 1240, "height": 860}
        scheme: Literal["dark", "light"] = "dark" if look == "dark" else "light"
        # Each page has its own, as two users have.
        context = contexts.take(script=script)
        taken.append((context, script))
        page = context.new_page()
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=scheme)
        watch = Watch()
        watch.over(page, site)
        watches.append((watch, page))
        # As the printed address has it: the token is traded for a cookie, and what is shown is the page without it.
        auth = "" if token is None else f"{'&' if '?' in path else '?'}token={token}"
        page.goto(site.url + path + auth)
        page.expected = ()  # type: ignore[attr-defined]
        return page

    yield go
    for context, script in taken:
        contexts.give_back(context, script=script, origin=site.url)
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
