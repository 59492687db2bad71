"""The overview: its numbers agree, its charts can be read value by value, and it leads to what it shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.program import Leftovers, WorkerProcess
from tests.web.page.site import TOKEN, Site, Visit


@pytest.fixture(scope="module", autouse=True)
def filled(site: Site, worker: WorkerProcess) -> None:
    for queue, command in (("mail", "true"), ("mail", "true"), ("report", "true"), ("report", "exit 3")):
        site.queuectl("enqueue", "--queue", queue, "--max-retries", "1", command, check=0)
    site.queuectl("enqueue", "--id", "long", "sleep 600", check=0)
    site.queuectl("wait", "--queue", "mail", "--queue", "report", timeout=30)


def test_runs_of_this_minute_are_in_the_charts_as_in_the_counts(visit: Visit) -> None:
    page = visit("/", script=False)
    legend = page.locator("#chart-runs figcaption")
    expect(page.locator(".tile.s-completed .value")).to_have_text("3")
    expect(legend.locator(".s-completed b")).to_have_text("3")
    expect(legend.locator(".s-dead b")).to_have_text("1")
    titles = " ".join(page.locator("#chart-runs .reading title").all_text_contents())
    assert re.search(r"\d\d:\d\d UTC: \d completed", titles)


def test_the_charts_of_one_queue_have_only_its_runs(visit: Visit) -> None:
    page = visit("/")
    with page.expect_navigation():
        page.get_by_role("combobox", name="Queue").select_option("report")
    expect(page.locator("#chart-runs figcaption .s-completed b")).to_have_text("1")
    page.get_by_role("link", name="24 hours").click()
    expect(page.get_by_role("combobox", name="Queue")).to_have_value("report")
    expect(page.locator("#chart-runs .name")).to_have_text("Runs per 15 minutes")


def test_a_chart_is_read_with_the_pointer_and_with_keys(visit: Visit, site: Site) -> None:
    page = visit("/")
    readout = page.locator("#chart-runs [data-readout]")
    page.locator("#chart-runs .reading").last.hover()
    expect(readout).to_contain_text("completed")
    expect(page.locator("#chart-wait [data-readout]")).to_contain_text("p95")
    page.mouse.move(5, 5)
    expect(readout).to_be_empty()
    page.locator("#chart-runs [data-plot]").focus()
    page.keyboard.press("ArrowLeft")
    expect(readout).to_have_text(re.compile(r"^\d\d:\d\d · \d completed"))
    site.queuectl("enqueue", "--queue", "mail", "true", check=0)
    expect(page.locator("#chart-runs figcaption .s-completed b")).to_have_text("4")
    expect(readout).to_contain_text("completed")  # after the update, too
    page.keyboard.press("Escape")
    expect(readout).to_be_empty()


def test_an_empty_database_says_what_to_do_first(tmp_path: Path, browser: Browser) -> None:
    site = Site(tmp_path)
    try:
        page = browser.new_page()
        page.goto(f"{site.start().url}/?token={TOKEN}")
        expect(page.locator(".all-well .dot")).to_have_count(0)
        expect(page.get_by_role("heading", name="Activity")).to_be_hidden()
        expect(page.locator(".first-steps").get_by_role("link", name="New job")).to_be_visible()
        site.queuectl("enqueue", "--delay", "1h", "true", check=0)
        expect(page.get_by_role("heading", name="Activity")).to_be_visible()
        page.close()
    finally:
        site.stop()
        Leftovers(site.queuectl.home).end()


def test_queues_workers_and_running_jobs_are_links_with_names_of_their_own(visit: Visit) -> None:
    page = visit("/", script=False)
    expect(page.locator("#workers").get_by_role("link", name="bee")).to_have_attribute("href", "/workers/bee")
    expect(page.locator("#running").get_by_role("link", name="long")).to_have_attribute("href", "/jobs/long")
    names = page.locator("main a:visible, main button:visible").evaluate_all(
        "all => all.map((one) => (one.ariaLabel || one.textContent).trim() + (one.href || ''))"
    )
    texts = [name.partition("http")[0] for name in set(names)]
    assert sorted(texts) == sorted(set(texts)), "one name for several targets"
