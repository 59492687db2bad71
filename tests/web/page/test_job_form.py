"""The form of a job: all its fields, all its errors at once, copies, and edits."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.web.page.site import Site, Visit


def job(site: Site, job_id: str) -> dict[str, Any]:
    found: dict[str, Any] = site.queuectl("show", job_id, "--json", check=0).json
    return found


def fill(page: Page, values: dict[str, str]) -> None:
    """By the names of fields, in folded parts of the form, too."""
    while (folded := page.locator("#job-form details:not([open]) > summary")).count():
        folded.first.click()
    for name, text in values.items():
        page.locator(f"#job-form [name={name}]").fill(text)


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def test_all_errors_of_a_form_are_at_their_fields_and_the_first_has_the_focus(visit: Visit) -> None:
    page = visit("/enqueue")
    page.expected = ("422",)  # type: ignore[attr-defined]
    fill(page, {"command": "echo kept", "priority": "high", "start": "soon", "memory": "lots", "after": "no-such-job"})
    press(page, "Enqueue")
    expect(page.locator("#notice")).to_contain_text("3 fields are invalid")
    expect(page.locator("[aria-invalid=true]")).to_have_count(3)
    expect(page.get_by_label("Priority")).to_be_focused()
    expect(page.get_by_label("Priority")).to_have_accessible_description(
        "Expected an integer from -1000000 to 1000000, got 'high'. For example, 1."
    )
    expect(page.get_by_label("Start", exact=True)).to_have_accessible_description(
        re.compile("Expected a time, got 'soon'")
    )
    expect(page.get_by_role("textbox", name="Command")).to_have_value("echo kept")
    fill(page, {"priority": "1", "start": "1h", "memory": "1GiB"})
    press(page, "Enqueue")
    expect(page.locator("#notice")).to_contain_text("1 field is invalid")
    after = page.get_by_label("Start after these jobs have completed")
    expect(after).to_be_focused()
    expect(after).to_have_accessible_description(re.compile("No job 'no-such-job'"))


def test_a_job_is_enqueued_with_every_field(visit: Visit, site: Site) -> None:
    site.queuectl("enqueue", "--id", "before", "--delay", "1h", "true", check=0)
    site.queuectl("enqueue", "--id", "beside", "--delay", "1h", "true", check=0)
    page = visit("/enqueue")
    page.get_by_label("Run directly, without a shell").check()
    given = {"id": "whole", "queue": "all", "priority": "3", "start": "2099-01-01T10:00:00Z", "timeout": "90s",
             "max_attempts": "5", "tags": "one two", "batch": "lot", "key": "customer-7", "unique_key": "once",
             "backoff_base": "1.5", "after": "before", "after_any": "beside", "cwd": "/tmp",
             "on_dead": "https://hooks.example.org/x", "nice": "5"}  # fmt: skip
    fill(page, {"command": "printf '%s' 'a b'", **given})
    press(page, "Enqueue")
    page.wait_for_url("**/jobs/whole?*")
    found = job(site, "whole")
    assert found["argv"] == ["printf", "%s", "a b"]
    assert found["run_at"] == "2099-01-01T10:00:00.000Z"
    assert found["depends_on"] == ["before", {"id": "beside", "when": "ended", "else": "cancel"}]
    assert (found["batch"], found["key"], found["unique_key"]) == ("lot", "customer-7", "once")
    assert (found["max_retries"], found["backoff_base"], found["timeout"]) == (5, 1.5, 90)
    assert (found["cwd"], found["limits"], found["tags"]) == ("/tmp", {"nice": 5}, ["one", "two"])
    expect(page.locator("dt:text-is('On dead') + dd")).to_have_text("https://hooks.example.org/…")


@pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
def test_a_clone_is_edited_before_it_is_enqueued(visit: Visit, site: Site, script: bool) -> None:
    name = f"original-{script}"
    site.queuectl(
        "enqueue", "--id", name, "--queue", f"clones-{script}", "--delay", "1h", "--env", "TOKEN=covert-value",
        "--on-dead", "https://hooks.example.org/covert-path", "--memory", "1GiB", "--tag", "t", "echo first", check=0,
    )  # fmt: skip
    page = visit(f"/jobs/{name}", script=script)
    page.get_by_role("link", name="Clone", exact=True).click()
    page.wait_for_url(f"{site.url}/enqueue?clone={name}")
    listed = lambda: site.queuectl("list", "--queue", f"clones-{script}", "--json", check=0).json  # noqa: E731
    assert len(listed()) == 1
    assert "covert" not in page.content()
    fill(page, {"command": "echo second", "id": f"copy-{script}", "memory": ""})
    press(page, "Enqueue")
    expect(page.locator("#notice")).to_contain_text(f"Job copy-{script} enqueued as a clone of {name}")
    exported = site.queuectl.home / f"{name}.json"
    site.queuectl("export", str(exported), "--queue", f"clones-{script}", check=0)
    for hidden in ("covert-path", "covert-value"):
        assert exported.read_text().count(hidden) == 2
    assert (job(site, f"copy-{script}")["command"], job(site, f"copy-{script}")["limits"]) == ("echo second", {})
    assert list(job(site, f"copy-{script}")["env"]) == ["TOKEN"]
    assert job(site, f"copy-{script}")["run_at"] == job(site, name)["run_at"]


def test_an_edit_changes_the_kind_of_a_command_and_its_start_and_undo_restores_both(visit: Visit, site: Site) -> None:
    site.queuectl("enqueue", "--id", "turned", "--delay", "1h", "echo 'a b'", check=0)
    before = job(site, "turned")
    page = visit("/enqueue?edit=turned")
    expect(page.get_by_role("textbox", name="Command")).to_have_value("echo 'a b'")
    page.get_by_label("Run directly, without a shell").check()
    fill(page, {"start": "2099-01-01T10:00:00Z", "max_attempts": "7"})
    press(page, "Save")
    expect(page.locator("#notice")).to_contain_text("Job turned changed: command, max attempts, start")
    after = job(site, "turned")
    assert (after["argv"], after["run_at"], after["max_retries"]) == (["echo", "a b"], "2099-01-01T10:00:00.000Z", 7)
    press(page, "Undo")
    expect(page.locator("#notice")).to_contain_text("restored")
    same = ("command", "argv", "run_at", "max_retries", "timeout")
    assert {name: job(site, "turned")[name] for name in same} == {name: before[name] for name in same}


def test_a_job_that_is_not_waiting_cannot_be_edited(visit: Visit, site: Site) -> None:
    site.queuectl("enqueue", "--id", "past", "--delay", "1h", "true", check=0)
    site.queuectl("cancel", "past", check=0)
    page = visit("/jobs/past")
    expect(page.get_by_role("link", name="Clone", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="Edit", exact=True)).to_be_hidden()
    page.expected = ("422",)  # type: ignore[attr-defined]
    page.goto(f"{site.url}/enqueue?edit=past")
    expect(page.locator("main")).to_contain_text("only waiting jobs can be edited")
