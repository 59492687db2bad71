"""The pages without JavaScript."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.web.page.site import READER, Site, Visit

pytestmark = pytest.mark.usefixtures("worker")


def test_a_job_is_enqueued_held_and_restored_without_script(visit: Visit, site: Site) -> None:
    page = visit("/enqueue", script=False)
    page.get_by_role("textbox", name="Command").fill("echo plain")
    page.get_by_label("Start", exact=True).fill("1h")
    page.get_by_text("More options", exact=True).click()
    page.get_by_label("ID", exact=True).fill("plain")
    page.get_by_role("button", name="Enqueue").click()
    expect(page.locator("#notice")).to_contain_text("Job plain enqueued")
    page.get_by_role("button", name="Hold").click()
    expect(page.locator("#notice")).to_contain_text("Job plain held")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#notice")).to_contain_text("Job plain released")


def test_a_refused_form_keeps_its_values_without_script(visit: Visit) -> None:
    page = visit("/enqueue", script=False)
    page.expected = ("422",)  # type: ignore[attr-defined]
    page.get_by_role("textbox", name="Command").fill("echo kept")
    page.get_by_label("Priority").fill("much")
    page.get_by_role("button", name="Enqueue").click()
    expect(page.get_by_role("alert")).to_contain_text("1 field is invalid")
    expect(page.get_by_label("Priority")).to_be_focused()
    expect(page.get_by_label("Priority")).to_have_accessible_description(re.compile("Expected an integer"))
    assert page.get_by_role("textbox", name="Command").input_value() == "echo kept"


def test_many_jobs_are_previewed_on_a_page_and_changed_without_script(visit: Visit, site: Site) -> None:
    for name in ("p1", "p2", "p3"):
        site.queuectl("enqueue", "--id", name, "--queue", "plains", "--delay", "1h", "true", check=0)
    page = visit("/jobs?queue=plains", script=False)
    page.get_by_label("Select all matching").check()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("heading", name="Cancel 3 jobs?")).to_be_visible()
    page.get_by_role("button", name="Cancel 3 jobs").click()
    expect(page.locator("#notice")).to_contain_text("3 jobs cancelled")
    assert page.url.startswith(f"{site.url}/jobs?queue=plains")


def test_a_purge_asks_first_without_script(visit: Visit, site: Site) -> None:
    site.queuectl("enqueue", "--id", "gone", "--max-retries", "0", "exit 45", check=0)
    site.queuectl("wait", "gone", timeout=30)
    page = visit("/dlq", script=False)
    page.get_by_role("row", name="exit code 45").get_by_role("button", name="Purge").click()
    expect(page.get_by_role("heading", name="Purge 1 dead job?")).to_be_visible()
    assert site.queuectl("show", "gone", "--json", check=0).json["state"] == "dead"
    page.get_by_role("button", name="Purge 1 dead job").click()
    expect(page.locator("#notice")).to_contain_text("Job gone purged")
    assert page.url.startswith(f"{site.url}/dlq")


def test_a_group_of_dead_jobs_opens_as_a_list_with_its_own_actions_without_script(visit: Visit, site: Site) -> None:
    for name, said in (("g1", "cannot open /srv/1.png"), ("g2", "cannot open /srv/2.png"), ("other", "no space left")):
        command = f"echo {said}; test -e {site.queuectl.home}/go || exit 46"
        site.queuectl("enqueue", "--id", name, "--max-retries", "0", "--queue", "groups", command, check=0)
    site.queuectl("wait", "g1", "g2", "other", timeout=30)
    page = visit("/dlq", script=False)
    page.get_by_role("link", name="exit code 46 · cannot open").click()
    expect(page.locator("table.rows tbody tr")).to_have_count(2)
    expect(page.get_by_role("list", name="Filters")).to_contain_text("failed like exit code 46: cannot open /srv/")
    page.get_by_label("Select all matching").check()
    page.get_by_role("button", name="Remove").click()
    page.get_by_role("button", name="Remove 2 jobs").click()
    expect(page.locator("#notice")).to_contain_text("2 jobs removed")
    assert [one["id"] for one in site.queuectl("list", "--queue", "groups", "--json", check=0).json] == ["other"]


def test_a_cancellation_that_is_not_confirmed_leads_back_to_the_job_without_script(visit: Visit, site: Site) -> None:
    site.queuectl("enqueue", "--id", "kept", "--delay", "1h", "true", check=0)
    page = visit("/jobs/kept", script=False)
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("link", name="Back").click()
    page.wait_for_url(f"{site.url}/jobs/kept")
    assert site.queuectl("show", "kept", "--json", check=0).json["state"] == "pending"


@pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
def test_a_question_about_the_longest_id_fits_on_a_phone(visit: Visit, site: Site, script: bool) -> None:
    name = ("n" if script else "s") * 128
    site.queuectl("enqueue", "--id", name, "--delay", "1h", "true", check=0)
    page = visit(f"/jobs/{name}", look="phone", script=script)
    page.get_by_role("button", name="Cancel").click()
    sheet = page.locator("[data-sheet]")
    expect(sheet).to_be_visible()
    expect(sheet.get_by_role("button", name="Cancel job")).to_be_in_viewport(ratio=1)
    assert sheet.evaluate("one => one.scrollWidth - one.clientWidth") == 0


@pytest.mark.parametrize(
    "path",
    ["jobs/asked/run-now", "jobs/asked/cancel", "dlq/retry", "dlq/purge", "cron/asked/run",
     "cron/asked/remove", "queues/asked/move", "queues/asked/pause"],
)  # fmt: skip
def test_the_server_requires_a_confirmation_for_actions_without_undo(visit: Visit, site: Site, path: str) -> None:
    if site.queuectl("show", "asked").code:
        site.queuectl("enqueue", "--id", "asked", "--queue", "asked", "--delay", "1h", "true", check=0)
        site.queuectl("enqueue", "--id", "asked-dead", "--max-retries", "0", "exit 1", check=0)
        site.queuectl("wait", "asked-dead", timeout=30)
        site.queuectl("cron", "add", "asked", "0 2 * * *", "true", "--tz", "UTC", check=0)
    before = site.queuectl("export", check=0).out
    page = visit("/", script=False)
    shown = page.request.post(f"{site.url}/{path}", form={"to": "other"}, headers={"Origin": site.url})
    assert (shown.status, 'name="confirmed"' in shown.text()) == (200, True)
    assert 'id="link-state"' not in shown.text()  # no live updates: its address has no page
    assert site.queuectl("export", check=0).out == before


def test_a_change_with_a_read_only_token_is_refused(visit: Visit, site: Site) -> None:
    page = visit("/enqueue", token=READER, script=False)
    assert page.get_by_role("textbox", name="Command").count() == 0
    answer = page.request.post(f"{site.url}/enqueue", form={"command": "echo no"}, headers={"Origin": site.url})
    assert answer.status == 403
    assert "is read-only" in answer.text()
