"""The frame of the pages: navigation, themes, the switch of live updates, and the size of rows and targets."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.web.page.site import Site, Visit

LEFTS = (
    "() => [...document.querySelectorAll('nav.side a')].map((one) => Math.round(one.getBoundingClientRect().left * 10))"
)
TOPS = (
    "() => [...document.querySelectorAll('nav.side a')].map((one) => Math.round(one.getBoundingClientRect().top * 10))"
)


@pytest.fixture(scope="module", autouse=True)
def filled(site: Site) -> None:
    site.queuectl("enqueue", "--id", "one", "--queue", "mail", "--delay", "1h", "true", check=0)


def test_the_entries_of_the_navigation_stay_where_they_are(visit: Visit, site: Site) -> None:
    page = visit("/")
    links = [one.get_attribute("href") for one in page.locator("nav.side a").all()]
    seen = set()
    for path in links:
        page.goto(f"{site.url}{path}")
        expect(page.locator("nav.side [aria-current]")).to_have_count(1)
        seen.add((*page.evaluate(LEFTS), *page.evaluate(TOPS)))
    assert len(seen) == 1


def test_the_navigation_of_a_phone_is_one_line_that_shows_the_current_page(visit: Visit) -> None:
    page = visit("/settings", look="phone")
    assert len(set(page.evaluate(TOPS))) == 1
    expect(page.locator("nav.side [aria-current]")).to_be_in_viewport(ratio=0.95)


def test_a_list_has_the_whole_width_of_the_window(visit: Visit) -> None:
    page = visit("/jobs")
    page.set_viewport_size({"width": 1920, "height": 900})
    assert page.locator("main table").first.bounding_box()["width"] > 1650  # type: ignore[index]


def test_the_theme_switch_goes_before_the_system_and_is_remembered(visit: Visit, site: Site) -> None:
    page = visit("/", look="dark")
    back = "() => getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(back)
    switch = page.get_by_role("button", name="Theme")
    switch.click()
    expect(switch).to_have_accessible_name("Theme: light")
    light = page.evaluate(back)
    assert light != dark
    page.goto(f"{site.url}/jobs")
    assert page.evaluate(back) == light
    page.get_by_role("button", name="Theme").click()
    assert page.evaluate(back) == dark
    page.get_by_role("button", name="Theme").click()
    page.emulate_media(color_scheme="light")
    assert page.evaluate(back) == light, "not that of the system"


def test_paused_updates_stay_paused_until_they_are_resumed(visit: Visit, site: Site) -> None:
    page = visit("/jobs?queue=mail")
    switch = page.locator("[data-live-switch]")
    expect(switch).to_have_text("Live")
    switch.click()
    expect(switch).to_have_text("Paused")
    page.goto(f"{site.url}/jobs?queue=mail")
    expect(switch).to_have_text("Paused")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    site.queuectl("enqueue", "--id", "two", "--queue", "mail", "--delay", "1h", "true", check=0)
    other = visit("/jobs?queue=mail")
    expect(other.locator("#list")).to_contain_text("two")
    expect(page.locator("#list")).not_to_contain_text("two")
    assert not asked
    switch.click()
    expect(page.locator("#list")).to_contain_text("two")
    expect(switch).to_have_text("Live")


def test_rows_are_low_and_targets_are_large_enough(visit: Visit) -> None:
    page = visit("/")
    rows = page.evaluate(
        "() => [...document.querySelectorAll('#queues tbody tr, #workers tbody tr, #running tbody tr')].map((one) => one.offsetHeight)"
    )
    assert rows
    assert max(rows) <= 36
    small = page.evaluate("""() => [...document.querySelectorAll('header a, header button, header input, nav a, .head a, td a, tbody th a, footer a, footer button')]
      .map((one) => [one.textContent.trim(), one.getBoundingClientRect()])
      .filter(([, box]) => box.width && (box.width < 24 || box.height < 24)).map(([text]) => text)""")
    assert not small
