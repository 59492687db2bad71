"""Resource limits and usage on the pages."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from queuectl.jobs.resources import Usage, format_usage, usage_text
from tests.program import WorkerProcess
from tests.web.page.site import READER, Site, Visit

pytestmark = pytest.mark.usefixtures("worker")

SAID = [
    "--memory", "2GiB", "--cpu-time", "30s", "--nice", "5", "--open-files", "256", "--processes", "640", "--file-size", "1GiB",
]  # fmt: skip
TYPED = {"Memory": "2GiB", "CPU time": "30s", "Nice": "5", "Open files": "256", "Processes": "640", "File size": "1GiB"}
KEPT = {"memory": 2**31, "cpu_time": 30, "nice": 5, "open_files": 256, "processes": 640, "file_size": 2**30}
WORDS = "memory 2GiB, cpu time 30s, nice 5, open files 256, processes 640, file size 1GiB"

LIMITS = "#facts dt:text-is('Resource limits') + dd"


def shown(site: Site, job_id: str) -> dict[str, Any]:
    found: dict[str, Any] = site.queuectl("show", job_id, "--json", check=0).json
    return found


def usage_of(run: dict[str, Any]) -> Usage:
    return Usage(**{name: run[name] for name in Usage._fields})


def fill(page: Page, typed: dict[str, str]) -> None:
    for label, text in typed.items():
        page.get_by_label(label, exact=True).fill(text)


def fold_out(page: Page) -> None:
    page.get_by_role("link", name="Edit", exact=True).click()
    limits = page.locator("#form-limits")
    if limits.get_attribute("open") is None:
        limits.locator("summary").click()


def notice(page: Page, text: str) -> None:
    expect(page.locator("#notice")).to_contain_text(text)


@pytest.fixture(scope="module")
def spender(site: Site, worker: WorkerProcess) -> str:
    """A job with limits that has run twice."""
    site.queuectl("enqueue", "--id", "spender", *SAID, "--max-retries", "2", "exit 3", check=0)
    site.queuectl("wait", "spender", timeout=30)
    return "spender"


@pytest.mark.parametrize("look, script", [("light", True), ("light", False), ("phone", True)])
def test_a_page_shows_limits_and_usage_as_the_cli_does(
    visit: Visit, site: Site, spender: str, look: str, script: bool
) -> None:
    page = visit(f"/jobs/{spender}", look=look, script=script)
    told = site.queuectl("show", spender, check=0).out
    assert f"Limits  {WORDS}\n" in told
    expect(page.locator(LIMITS)).to_have_text(WORDS)
    usages = [usage_of(run) for run in reversed(shown(site, spender)["history"])]
    expect(page.locator("#runs .used")).to_have_text([format_usage(usage) for usage in usages])
    for usage in usages:
        assert {usage_text(usage).cpu_time, usage_text(usage).memory} <= set(told.split())


def test_a_page_shows_no_limits_of_a_job_without_them(visit: Visit, site: Site) -> None:
    site.queuectl("enqueue", "--id", "freed", "--memory", "1GiB", "--delay", "1h", "true", check=0)
    page = visit("/jobs/freed")
    expect(page.locator(LIMITS)).to_have_text("memory 1GiB")
    site.queuectl("edit", "freed", "--memory", "none", check=0)
    expect(page.locator(LIMITS)).to_have_count(0)
    expect(page.locator("#facts")).to_contain_text("Timeout")


def test_the_usage_of_a_run_appears_without_a_reload(visit: Visit, site: Site) -> None:
    go = site.queuectl.home / "go-on"
    site.queuectl("enqueue", "--id", "slow", f"until [ -e {go} ]; do sleep 0.05; done", check=0)
    page = visit("/jobs/slow")
    expect(page.locator("#runs")).to_contain_text("running")
    expect(page.locator("#runs")).not_to_contain_text("cpu time")
    page.evaluate("window.mark = 1")
    go.touch()
    expect(page.locator("#runs .used")).to_contain_text("cpu time")
    assert page.evaluate("window.mark") == 1, "the page was loaded again"


def test_the_runs_of_a_job_fit_on_a_phone_however_long_the_error_is(visit: Visit, site: Site) -> None:
    program = "/no/such/program/" + "x" * 200
    site.queuectl("enqueue", "--id", "wordy", "--max-retries", "1", "--", program, "--with", "words", check=0)
    site.queuectl("wait", "wordy", timeout=30)
    page = visit("/jobs/wordy", look="phone")
    expect(page.locator("#runs .wrap")).to_contain_text("xxx")
    # At one go: the runs may be replaced by newer ones at any moment.
    wide, pool = page.evaluate("""() => {
      const { scrollWidth, clientWidth } = document.getElementById('runs');
      return [scrollWidth, clientWidth];
    }""")
    assert wide <= pool


@pytest.mark.parametrize("script", [True, False], ids=["script", "plain"])
def test_a_job_is_enqueued_with_limits_by_its_form(visit: Visit, site: Site, script: bool) -> None:
    job_id = f"typed-{script}"
    page = visit("/enqueue", script=script)
    page.get_by_role("textbox", name="Command").fill("true")
    page.get_by_text("Resource limits", exact=True).click()
    fill(page, TYPED)
    page.get_by_text("More options", exact=True).click()
    page.get_by_label("ID", exact=True).fill(job_id)
    page.get_by_role("button", name="Enqueue").click()
    notice(page, f"Job {job_id} enqueued")
    assert shown(site, job_id)["limits"] == KEPT


@pytest.mark.parametrize(
    "label, text, told",
    [
        ("Memory", "12", "No program runs with '12'"),
        ("CPU time", "soon", "Expected a duration, got 'soon'"),
        ("Open files", "many", "Expected an integer from 0 to 1048576, got 'many'"),
    ],
)
def test_an_invalid_limit_is_refused_and_stays_in_its_field(visit: Visit, label: str, text: str, told: str) -> None:
    page = visit("/enqueue", script=False)
    page.expected = ("422",)  # type: ignore[attr-defined]
    page.get_by_role("textbox", name="Command").fill("true")
    page.get_by_text("Resource limits", exact=True).click()
    page.get_by_label(label, exact=True).fill(text)
    page.get_by_role("button", name="Enqueue").click()
    expect(page.get_by_label(label, exact=True)).to_have_accessible_description(re.compile(re.escape(told)))
    expect(page.get_by_label(label, exact=True)).to_be_visible()
    assert page.get_by_label(label, exact=True).input_value() == text


@pytest.mark.parametrize("script", [True, False], ids=["script", "plain"])
def test_limits_of_a_waiting_job_are_changed_removed_and_restored(visit: Visit, site: Site, script: bool) -> None:
    job_id = f"bound-{script}"
    site.queuectl("enqueue", "--id", job_id, "--memory", "1GiB", "--nice", "3", "--delay", "1h", "true", check=0)
    page = visit(f"/jobs/{job_id}", script=script)
    fold_out(page)
    assert page.get_by_label("Memory").input_value() == "1GiB"
    fill(page, {"Memory": "2GiB", "Nice": "", "Processes": "9"})
    page.get_by_role("button", name="Save").click()
    notice(page, "changed: memory, nice, processes")
    expect(page.locator(LIMITS)).to_have_text("memory 2GiB, processes 9")
    assert shown(site, job_id)["limits"] == {"memory": 2**31, "processes": 9}
    page.get_by_role("button", name="Undo").click()
    notice(page, "restored")
    assert shown(site, job_id)["limits"] == {"memory": 2**30, "nice": 3}


def test_an_edit_with_an_invalid_limit_is_refused_and_changes_nothing(visit: Visit, site: Site) -> None:
    site.queuectl("enqueue", "--id", "firm", "--memory", "1GiB", "--delay", "1h", "true", check=0)
    page = visit("/jobs/firm")
    fold_out(page)
    page.expected = ("422",)  # type: ignore[attr-defined]
    fill(page, {"Memory": "lots", "Nice": "7"})
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("Memory")).to_have_accessible_description(re.compile("Expected a size, got 'lots'"))
    assert page.get_by_label("Memory").input_value() == "lots"
    assert shown(site, "firm")["limits"] == {"memory": 2**30}


def test_limits_of_a_queue_are_shown_set_and_restored(visit: Visit, site: Site) -> None:
    site.queuectl("queue", "set", "bounds", "--memory", "1GiB", "--cpu-time", "1m", check=0)

    def limits() -> dict[str, int]:
        (one,) = (one for one in site.queuectl("queue", "list", "--json", check=0).json if one["name"] == "bounds")
        found: dict[str, int] = one["limits"]
        return found

    page = visit("/queues/bounds")
    page.expected = ("422",)  # type: ignore[attr-defined]
    panel = page.locator("#queue-limits")
    summary = panel.locator("summary")
    expect(summary).to_have_text("Edit · memory 1GiB · cpu time 1m")
    summary.click()
    panel.get_by_label("Memory").fill("")
    panel.get_by_label("Open files").fill("64")
    panel.get_by_role("button", name="Save").click()
    notice(page, "Queue bounds changed: memory none, open files 64")
    expect(summary).to_have_text("Edit · cpu time 1m · open files 64")
    assert limits() == {"cpu_time": 60, "open_files": 64}
    page.locator("#notice").get_by_role("button", name="Undo").click()
    notice(page, "restored")
    assert limits() == {"memory": 2**30, "cpu_time": 60}
    panel.get_by_label("Nice").fill("lots")
    panel.get_by_role("button", name="Save").click()
    expect(page.locator("#error-nice")).to_contain_text("Nice: expected an integer from -20 to 19")
    assert limits() == {"memory": 2**30, "cpu_time": 60}


def test_a_read_only_token_sees_the_limits_of_a_queue_and_cannot_edit_them(visit: Visit, site: Site) -> None:
    site.queuectl("queue", "set", "seen", "--memory", "1GiB", check=0)
    page = visit("/queues/seen", token=READER)
    panel = page.locator("#queue-limits")
    panel.locator("summary").click()
    expect(panel.get_by_label("Memory")).to_have_value("1GiB")
    expect(panel.get_by_label("Memory")).to_be_disabled()
