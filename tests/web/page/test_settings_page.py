"""The page of settings."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from queuectl.settings import KEYS
from queuectl.web.pages.settings import SECTIONS
from tests.web.page.site import Site, Visit


def test_every_setting_is_in_one_section() -> None:
    assert sorted(name for names in SECTIONS.values() for name in names) == sorted(key.name for key in KEYS)


def test_a_boolean_is_a_switch_with_and_without_script(visit: Visit, site: Site) -> None:
    page = visit("/settings")
    switch = page.get_by_role("switch", name="first-attempt-is-free")
    switch.click()
    expect(page.locator("#notice")).to_contain_text("first-attempt-is-free set to true")
    expect(switch).to_be_checked()
    plain = visit("/settings", script=False)
    plain.get_by_role("switch", name="first-attempt-is-free").uncheck()
    plain.get_by_role("button", name="Save first-attempt-is-free").click()
    expect(plain.locator("#notice")).to_contain_text("first-attempt-is-free set to false")


def test_no_two_buttons_have_the_same_name(visit: Visit) -> None:
    page = visit("/settings", script=False)
    names = re.findall(r'<button class="button" aria-label="(Save [^"]+)"', page.content())
    assert len(names) == len(set(names)) == len(KEYS)


def test_an_error_is_at_its_field_without_script(visit: Visit) -> None:
    page = visit("/settings", script=False)
    page.expected = ("422",)  # type: ignore[attr-defined]
    page.get_by_label("Value of lease").fill("soon")
    page.get_by_role("button", name="Save lease").click()
    expect(page.locator("#error-lease")).to_contain_text("Lease: expected a duration, got 'soon'")
    expect(page.get_by_label("Value of lease")).to_have_value("soon")
