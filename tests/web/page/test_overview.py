"""The overview: its numbers agree, its charts can be read value by value, and it leads to what it shows."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.program import WorkerProcess
from tests.web.page.site import Site, Visit


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
