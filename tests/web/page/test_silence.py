"""What nobody says: a worker that dies in a home where nobody else works, a line that is down."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect

from tests.program import WorkerProcess
from tests.web.page.site import Site, Visit


def test_a_worker_that_dies_without_a_word_is_missed(visit: Visit, site: Site, tmp_path: Path) -> None:
    worker = WorkerProcess(site.queuectl, tmp_path / "log", "--name", "mayfly")
    try:
        worker.wait_until_ready()
        page = visit("/workers")
        panel = page.locator("section", has=page.locator("#w-mayfly"))
        expect(panel).to_contain_text("running")
        worker.kill()
        expect(panel).to_contain_text("lost")
    finally:
        worker.end()


def test_a_line_that_is_down_is_told_of_and_what_it_missed_is_shown(visit: Visit, site: Site) -> None:
    page = visit("/")
    page.expected = ("net::ERR_",)  # type: ignore[attr-defined]
    banner = page.locator("#link-state")
    page.context.set_offline(True)
    expect(banner).to_contain_text("does not answer")
    site.queuectl("enqueue", "--queue", "unseen", "--delay", "1h", "true", check=0)
    expect(page.locator("#queues")).not_to_contain_text("unseen")
    page.context.set_offline(False)
    expect(page.locator("#queues")).to_contain_text("unseen")
    expect(banner).to_be_hidden()


def test_a_question_that_is_not_answered_is_told_of_though_the_line_is_open(visit: Visit, site: Site) -> None:
    page = visit("/queues")
    page.expected = ("net::ERR_",)  # type: ignore[attr-defined]
    banner = page.locator("#link-state")
    page.route(f"{site.url}/queues", lambda route: route.abort())
    expect(banner).to_contain_text("does not answer")
    page.unroute(f"{site.url}/queues")
    expect(banner).to_be_hidden()
