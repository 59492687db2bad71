"""Failures without an event: a worker that dies alone, a connection that is lost."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect

from tests.program import WorkerProcess
from tests.web.page.site import Site, Visit


def test_a_worker_that_dies_without_an_event_is_shown_as_lost(visit: Visit, site: Site, tmp_path: Path) -> None:
    worker = WorkerProcess(site.queuectl, tmp_path / "log", "--name", "mayfly")
    try:
        worker.wait_until_ready()
        page = visit("/workers")
        panel = page.locator("#w-mayfly")
        expect(panel).to_contain_text("running")
        worker.kill()
        expect(panel).to_contain_text("lost")
    finally:
        worker.end()


def test_a_lost_connection_is_reported_and_missed_changes_are_shown(visit: Visit, site: Site) -> None:
    page = visit("/")
    page.expected = ("net::ERR_",)  # type: ignore[attr-defined]
    banner = page.locator("#link-state")
    page.context.set_offline(True)
    expect(banner).to_contain_text("is not responding")
    site.queuectl("enqueue", "--queue", "unseen", "--delay", "1h", "true", check=0)
    expect(page.locator("#queues")).not_to_contain_text("unseen")
    page.context.set_offline(False)
    expect(page.locator("#queues")).to_contain_text("unseen")
    expect(banner).to_be_hidden()


def test_a_request_without_a_response_is_reported_although_the_connection_is_open(visit: Visit, site: Site) -> None:
    page = visit("/queues")
    page.expected = ("net::ERR_",)  # type: ignore[attr-defined]
    banner = page.locator("#link-state")
    page.route(f"{site.url}/queues", lambda route: route.abort())
    expect(banner).to_contain_text("is not responding")
    page.unroute(f"{site.url}/queues")
    expect(banner).to_be_hidden()
