"""The page of a job: its log first, each fact once, and what belongs to it."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.program import WorkerProcess
from tests.web.page.site import Site, Visit


def test_the_log_is_beside_the_details_and_before_them_on_a_phone(
    visit: Visit, site: Site, worker: WorkerProcess
) -> None:
    site.queuectl("enqueue", "--id", "placed", "--max-attempts", "1", "seq 100; echo the reason; exit 3", check=0)
    site.queuectl("wait", "placed", timeout=30)
    page = visit("/jobs/placed")
    log, details = page.locator(".log").bounding_box(), page.locator("#details").bounding_box()
    assert log is not None
    assert details is not None
    assert log["y"] < 400  # of 860
    assert details["x"] > log["x"] + log["width"]
    assert log["width"] > 1.5 * details["width"]
    expect(page.locator("#facts")).to_be_visible()
    # The error is in the sentence and in its run, and nowhere else.
    assert page.locator("main").inner_text().count("exit code 3") == 2
    phone = visit("/jobs/placed", look="phone")
    log, details = phone.locator(".log").bounding_box(), phone.locator("#details").bounding_box()
    assert log is not None
    assert details is not None
    assert details["y"] > log["y"] + log["height"]
    expect(phone.locator("#facts")).to_be_hidden()


def test_times_are_in_the_zone_of_the_reader_and_without_script_in_utc(visit: Visit, site: Site) -> None:
    site.queuectl("enqueue", "--id", "timed", "--run-at", "2099-01-01T10:00:00Z", "true", check=0)
    due = "#facts dt:text-is('Due') + dd > time"
    expect(visit("/jobs/timed", script=False).locator(due)).to_have_text("2099-01-01 10:00:00 UTC")
    page = visit("/jobs/timed")
    local = page.evaluate("new Date('2099-01-01T10:00:00Z').toLocaleString('sv')")
    expect(page.locator(due)).to_have_text(local)
    expect(page.locator("#why")).to_contain_text(f"It is not due until {local}")


def test_a_job_that_a_dependency_cancelled_names_it_and_lists_no_runs(
    visit: Visit, site: Site, worker: WorkerProcess
) -> None:
    site.queuectl("enqueue", "--id", "parent-e2e", "--delay", "1h", "true", check=0)
    site.queuectl(
        "enqueue", "--id", "child-e2e", "--after", "parent-e2e", "--on-dead", "https://a.example/x", "true", check=0
    )
    site.queuectl("cancel", "parent-e2e", check=0)
    site.queuectl("wait", "child-e2e", timeout=30)
    page = visit("/jobs/child-e2e")
    expect(page.locator("#why")).to_contain_text("because its dependency parent-e2e is cancelled. Retry runs it again.")
    expect(page.locator("#why").get_by_role("link", name="parent-e2e")).to_have_attribute("href", "/jobs/parent-e2e")
    expect(page.get_by_text("No runs yet")).to_have_count(0)
    expect(page.locator(".graph .clip:not(.small)")).to_have_text(["parent-e2e", "child-e2e"])
    expect(page.locator("#audit")).to_contain_text("enqueue")
    expect(page.get_by_role("link", name="JSON")).to_have_attribute("href", "/api/v1/jobs/child-e2e")
    expect(page.locator("dt:text-is('On dead') + dd")).to_have_text("https://a.example/…")


def test_the_id_and_the_command_are_copied(visit: Visit, site: Site) -> None:
    site.queuectl("enqueue", "--id", "copied", "--delay", "1h", "echo 'two  spaces'", check=0)
    page = visit("/jobs/copied")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site.url)
    for name, text in (("Copy the ID", "copied"), ("Copy the command", "echo 'two  spaces'")):
        page.get_by_role("button", name=name).click()
        expect(page.get_by_role("button", name=name)).to_have_text("Copied")
        assert page.evaluate("navigator.clipboard.readText()") == text
    page.context.clear_permissions()
