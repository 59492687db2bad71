"""The same without JavaScript: forms go to the server and come back."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.web.page.site import READER, Site, Visit


def test_a_job_is_enqueued_held_and_taken_back_without_script(visit: Visit, site: Site) -> None:
    page = visit("/enqueue", script=False)
    page.get_by_role("textbox", name="Command").fill("echo plain")
    page.get_by_label("Delay").fill("1h")
    page.get_by_text("More", exact=True).click()
    page.get_by_label("Id", exact=True).fill("plain")
    page.get_by_role("button", name="Enqueue").click()
    expect(page.locator("#notice")).to_contain_text("Job plain enqueued")
    page.get_by_role("button", name="Hold").click()
    expect(page.locator("#notice")).to_contain_text("Job plain held")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#notice")).to_contain_text("Job plain released")


def test_a_form_that_is_refused_comes_back_as_it_was_without_script(visit: Visit) -> None:
    page = visit("/enqueue", script=False)
    page.expected = ("422",)  # type: ignore[attr-defined]
    page.get_by_role("textbox", name="Command").fill("echo kept")
    page.get_by_label("Priority").fill("much")
    page.get_by_role("button", name="Enqueue").click()
    expect(page.get_by_role("alert")).to_contain_text("priority")
    assert page.get_by_role("textbox", name="Command").input_value() == "echo kept"


def test_many_jobs_are_previewed_on_a_page_and_changed_without_script(visit: Visit, site: Site) -> None:
    for name in ("p1", "p2", "p3"):
        site.queuectl("enqueue", "--id", name, "--queue", "plains", "--delay", "1h", "true", check=0)
    page = visit("/jobs?queue=plains", script=False)
    page.get_by_label("all that match").check()
    page.get_by_label("What to do").select_option("cancel")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("heading", name="Cancel 3 jobs?")).to_be_visible()
    page.get_by_role("button", name="Cancel 3 jobs").click()
    expect(page.locator("#notice")).to_contain_text("3 jobs cancelled")
    assert page.url.startswith(f"{site.url}/jobs?queue=plains")


def test_a_change_by_who_may_only_look_is_refused(visit: Visit, site: Site) -> None:
    page = visit("/enqueue", token=READER, script=False)
    assert page.get_by_role("textbox", name="Command").count() == 0
    answer = page.request.post(f"{site.url}/enqueue", form={"command": "echo no"}, headers={"Origin": site.url})
    assert answer.status == 403
    assert "may only look" in answer.text()
