"""All actions of the pages, in a browser, against a real worker."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.program import WorkerProcess
from tests.wait import wait_until
from tests.web.page.site import Site, Visit

pytestmark = pytest.mark.usefixtures("worker")


def job(site: Site, job_id: str) -> dict[str, Any]:
    return site.queuectl("show", job_id, "--json", check=0).json


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).first.click()


def answer(page: Page, question: str, name: str) -> None:
    """Press a button of the dialog that asks this."""
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading")).to_have_text(question)
    dialog.get_by_role("button", name=name, exact=True).click()


def notice(page: Page, text: str) -> None:
    expect(page.locator("#notice")).to_contain_text(text)


def test_a_job_is_enqueued_by_its_form_and_followed_to_its_end(visit: Visit, site: Site) -> None:
    page = visit("/")
    page.keyboard.press("n")
    page.wait_for_url(f"{site.url}/enqueue")
    page.get_by_role("textbox", name="Command").fill("echo from the form; echo $GREETING")
    page.get_by_label("Queue").fill("forms")
    page.get_by_label("Priority").fill("7")
    page.get_by_label("Tags").fill("one, two")
    page.get_by_text("More options", exact=True).click()
    page.get_by_label("ID", exact=True).fill("typed")
    page.get_by_text("Environment", exact=True).click()
    page.get_by_label("Environment variables").fill("GREETING=hello there")
    press(page, "Enqueue")
    page.wait_for_url(f"{site.url}/jobs/typed")
    notice(page, "Job typed enqueued")
    expect(page.locator("#job-state")).to_have_text("completed")
    expect(page.locator(".log")).to_contain_text("hello there")
    found = job(site, "typed")
    assert (found["queue"], found["priority"], found["tags"]) == ("forms", 7, ["one", "two"])


def test_a_job_is_held_released_edited_and_restored(visit: Visit, site: Site) -> None:
    site.queuectl("enqueue", "--id", "moody", "--delay", "1h", "echo moody", check=0)
    page = visit("/jobs/moody")
    press(page, "Hold")
    notice(page, "Job moody held")
    expect(page.locator("#job-state")).to_contain_text("held")
    press(page, "Undo")
    notice(page, "Job moody released")
    assert job(site, "moody")["held"] is False
    page.get_by_role("link", name="Edit", exact=True).click()
    page.get_by_label("Priority").fill("42")
    press(page, "Save")
    notice(page, "changed: priority")
    assert job(site, "moody")["priority"] == 42
    press(page, "Undo")
    notice(page, "restored")
    assert job(site, "moody")["priority"] == 0


def test_an_empty_field_removes_a_time_limit_and_undo_restores_it(visit: Visit, site: Site) -> None:
    site.queuectl("enqueue", "--id", "patient", "--delay", "1h", "--timeout", "90s", "echo patient", check=0)
    page = visit("/jobs/patient")
    page.get_by_role("link", name="Edit", exact=True).click()
    page.get_by_label("Timeout").fill("")
    press(page, "Save")
    notice(page, "changed: timeout")
    assert job(site, "patient")["timeout"] is None
    press(page, "Undo")
    notice(page, "restored")
    assert job(site, "patient")["timeout"] == 90


def test_an_edit_of_a_job_that_has_changed_is_refused(visit: Visit, site: Site) -> None:
    site.queuectl("enqueue", "--id", "contested", "--delay", "1h", "echo mine", check=0)
    page = visit("/jobs/contested")
    page.get_by_role("link", name="Edit", exact=True).click()
    page.get_by_label("Priority").fill("1")
    site.queuectl("edit", "contested", "--priority", "99", check=0)
    page.expected = ("409", "422")  # type: ignore[attr-defined]
    press(page, "Save")
    notice(page, "changed")
    assert job(site, "contested")["priority"] == 99
    assert page.get_by_label("Priority").input_value() == "1"


def test_a_job_is_run_now_cancelled_retried_and_cloned(visit: Visit, site: Site) -> None:
    site.queuectl("enqueue", "--id", "later", "--delay", "1h", "sleep 600", check=0)
    page = visit("/jobs/later")
    press(page, "Run now")
    answer(page, "Run job later now?", "Run job now")
    expect(page.locator("#job-state")).to_have_text("processing")
    press(page, "Cancel")
    answer(page, "Cancel job later?", "Cancel job")
    notice(page, "Job later cancelled")
    expect(page.locator("#job-state")).to_have_text("cancelled")
    press(page, "Retry")
    answer(page, "Retry job later?", "Retry job")
    notice(page, "Job later retried")
    expect(page.locator("#job-state")).to_have_text("processing")
    press(page, "Cancel")
    answer(page, "Cancel job later?", "Cancel job")
    expect(page.locator("#job-state")).to_have_text("cancelled")
    page.get_by_role("link", name="Clone", exact=True).click()
    page.get_by_role("button", name="Enqueue").click()
    page.wait_for_url(lambda url: "/jobs/" in url and "/jobs/later" not in url)
    notice(page, "a clone of later")
    press(page, "Cancel")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(page.locator("#job-state")).to_have_text("cancelled")


def test_a_running_job_continues_when_its_cancellation_is_not_confirmed(visit: Visit, site: Site) -> None:
    site.queuectl("enqueue", "--id", "unhurt", "sleep 600", check=0)
    page = visit("/jobs/unhurt")
    expect(page.locator("#job-state")).to_have_text("processing")
    cancel = page.locator("#actions").get_by_role("button", name="Cancel")
    cancel.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Running jobs are killed")
    expect(dialog.get_by_role("link", name="Back")).to_be_focused()
    page.keyboard.press("Enter")
    expect(dialog).to_be_hidden()
    expect(cancel).to_be_focused()
    assert job(site, "unhurt")["state"] == "processing"
    site.queuectl("cancel", "unhurt", check=0)


def test_an_update_during_a_request_does_not_take_the_focus(visit: Visit, site: Site) -> None:
    site.queuectl("enqueue", "--id", "focused", "--delay", "1h", "true", check=0)
    page = visit("/jobs/focused")
    page.evaluate("""() => {
      const real = window.fetch;
      window.held = { GET: [], POST: [] };
      window.answered = { GET: 0, POST: 0 };
      window.fetch = async (url, options) => {
        const kind = options.method ?? 'GET';
        await new Promise((go) => window.held[kind].push(go));
        const answer = await real(url, options);
        window.answered[kind] += 1;
        return answer;
      };
    }""")
    wait_until(lambda: page.evaluate("window.held.GET.length"), what="an update to begin")
    cancel = page.locator("#actions").get_by_role("button", name="Cancel")
    cancel.press("Enter")
    wait_until(lambda: page.evaluate("window.held.POST.length"), what="the form to be sent")
    site.queuectl("hold", "focused", check=0)  # so that the actions differ
    page.evaluate("window.held.GET[0]()")
    wait_until(lambda: page.evaluate("window.answered.GET"), what="the update to be answered")
    page.evaluate("window.held.POST[0]()")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("link", name="Back")).to_be_focused()
    page.keyboard.press("Enter")
    expect(dialog).to_be_hidden()
    expect(cancel).to_be_focused()


def test_retried_dead_jobs_cannot_be_turned_into_cancelled_ones(visit: Visit, site: Site) -> None:
    for name in ("late-1", "late-2"):
        site.queuectl("enqueue", "--id", name, "--max-retries", "0", "exit 43", check=0)
    site.queuectl("wait", "late-1", "late-2", timeout=30)
    page = visit("/dlq")
    row = page.get_by_role("row", name="exit code 43")
    row.get_by_role("button", name="Retry").click()
    answer(page, "Retry 2 dead jobs?", "Retry 2 dead jobs")
    notice(page, "2 jobs retried")
    expect(page.locator("#notice").get_by_role("button")).to_have_count(1)
    expect(page.locator("#notice").get_by_role("button")).to_have_accessible_name("Dismiss")


def test_dead_jobs_stay_dead_when_their_retry_is_not_confirmed(visit: Visit, site: Site) -> None:
    site.queuectl("enqueue", "--id", "resting", "--max-retries", "0", "exit 44", check=0)
    site.queuectl("wait", "resting", timeout=30)
    page = visit("/dlq")
    press(page, "Retry all")
    page.get_by_role("dialog").get_by_role("link", name="Back").click()
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert job(site, "resting")["state"] == "dead"


def test_an_action_on_nothing_is_a_notice_on_the_same_list(visit: Visit, site: Site) -> None:
    site.queuectl("enqueue", "--id", "unticked", "--queue", "unticked", "--delay", "1h", "true", check=0)
    page = visit("/jobs?queue=unticked&match=true", script=False)
    press(page, "Cancel")
    notice(page, "No job is selected")
    assert page.url.startswith(f"{site.url}/jobs?queue=unticked&match=true")
    expect(page.locator("#list")).to_contain_text("unticked")


def test_actions_that_fit_appear_with_a_selection(visit: Visit, site: Site) -> None:
    for name in ("fits-held", "fits-free", "fits-ended"):
        site.queuectl("enqueue", "--id", name, "--queue", "fits", "--delay", "1h", "true", check=0)
    site.queuectl("hold", "fits-held", check=0)
    site.queuectl("cancel", "fits-ended", check=0)
    page = visit("/jobs?queue=fits")
    bar = page.get_by_role("group", name="Bulk actions")
    expect(page.locator("table.rows tbody tr")).to_have_count(3)
    expect(bar).to_be_hidden()

    def offered() -> list[str]:
        return [text for text in bar.get_by_role("button").all_inner_texts() if text != "Clear"]

    page.get_by_label("Select fits-held").check()
    assert offered() == ["Run now", "Release", "Cancel", "Edit…"]
    expect(bar).to_contain_text("Updates paused while jobs are selected")
    page.get_by_label("Select fits-held").uncheck()
    expect(bar).to_be_hidden()
    page.get_by_label("Select fits-ended").check()
    assert offered() == ["Retry", "Remove"]
    page.get_by_label("Select fits-free").check()
    assert offered() == ["Run now", "Retry", "Hold", "Cancel", "Remove", "Edit…"]
    press(page, "Clear selection")
    expect(bar).to_be_hidden()
    page.get_by_label("Select all on this page").check()
    expect(bar).to_contain_text("3 selected")


def test_selected_jobs_are_counted_by_a_preview_and_then_changed(visit: Visit, site: Site) -> None:
    for name in ("tick-1", "tick-2", "tick-3"):
        site.queuectl("enqueue", "--id", name, "--queue", "ticks", "--delay", "1h", "true", check=0)
    page = visit("/jobs?queue=ticks")
    page.get_by_label("Select tick-1").check()
    page.get_by_label("Select tick-3").check()
    expect(page.locator("[data-ticked]")).to_have_text("2 selected")
    press(page, "Hold")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Hold 2 jobs?")
    expect(dialog).to_contain_text("pending")
    expect(dialog.get_by_role("list", name="Examples").get_by_role("listitem")).to_contain_text(["tick-3", "tick-1"])
    dialog.get_by_role("button", name="Hold 2 jobs").click()
    notice(page, "2 jobs held")
    assert [job(site, name)["held"] for name in ("tick-1", "tick-2", "tick-3")] == [True, False, True]
    press(page, "Undo")
    notice(page, "2 jobs released")


def test_all_matching_jobs_are_changed_at_once(visit: Visit, site: Site) -> None:
    lines = "\n".join(map(str, range(60)))
    site.queuectl("enqueue", "--for-each", "-", "--queue", "crowd", "--delay", "1h", "echo {}", input=lines, check=0)
    page = visit("/jobs?queue=crowd&state=pending")
    page.get_by_label("Select all on this page").check()
    page.get_by_label("Select all matching").check()
    press(page, "Cancel")
    first = page.get_by_role("dialog").get_by_role("list", name="Examples").get_by_role("listitem")
    expect(first).to_contain_text(["echo '59'", "echo '58'", "echo '57'", "echo '56'", "echo '55'", "and 55 others"])
    page.get_by_role("dialog").get_by_role("button", name="Cancel 60 jobs").click()
    notice(page, "60 jobs cancelled")
    expect(page.locator("#list")).to_contain_text("No matching jobs")


def test_the_priority_of_selected_jobs_is_edited_and_their_queue_is_kept(visit: Visit, site: Site) -> None:
    for name in ("bulk-1", "bulk-2", "bulk-3"):
        site.queuectl("enqueue", "--id", name, "--queue", "bulks", "--delay", "1h", "true", check=0)
    page = visit("/jobs?queue=bulks")
    page.get_by_label("Select bulk-1").check()
    page.get_by_label("Select bulk-3").check()
    press(page, "Edit…")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading")).to_have_text("Edit 2 jobs")
    dialog.get_by_label("Priority").fill("7")
    dialog.get_by_role("button", name="Edit 2 jobs").click()
    notice(page, "2 jobs edited")
    expect(page.locator("#notice").get_by_role("button", name="Undo")).to_have_count(0)
    found = {
        one["id"]: (one["priority"], one["queue"]) for one in site.queuectl("list", "--queue", "bulks", "--json").json
    }
    assert found == {"bulk-1": (7, "bulks"), "bulk-2": (0, "bulks"), "bulk-3": (7, "bulks")}
    page = visit("/jobs?queue=bulks", script=False)
    page.get_by_label("Select bulk-2").check()
    press(page, "Edit…")
    press(page, "Edit 1 job")
    notice(page, "No field has a new value")
    page.get_by_label("Select bulk-2").check()
    press(page, "Edit…")
    page.get_by_label("Priority").fill("high")
    press(page, "Edit 1 job")
    notice(page, "priority")
    expect(page.locator("#notice .notice")).to_have_attribute("data-kind", "refused")


def test_finished_jobs_are_removed_and_others_skipped(visit: Visit, site: Site) -> None:
    for name in ("over-1", "over-2", "over-not"):
        site.queuectl("enqueue", "--id", name, "--queue", "over", "--delay", "1h", "true", check=0)
    site.queuectl("run-now", "over-1", check=0)
    site.queuectl("wait", "over-1", timeout=30)
    site.queuectl("cancel", "over-2", check=0)
    page = visit("/jobs?queue=over")
    page.get_by_label("Select all on this page").check()
    press(page, "Remove")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading")).to_have_text("Remove 2 jobs?")
    expect(dialog).to_contain_text("1 job cannot be removed in its current state and will be skipped.")
    dialog.get_by_role("button", name="Remove 2 jobs").click()
    notice(page, "2 jobs removed")
    expect(page.locator("table.rows tbody tr")).to_have_count(1)
    assert [one["id"] for one in site.queuectl("list", "--queue", "over", "--json", check=0).json] == ["over-not"]
    page = visit("/jobs/over-not")
    page.expected = ("404",)  # type: ignore[attr-defined] # an update of its page after the removal
    press(page, "Cancel")
    answer(page, "Cancel job over-not?", "Cancel job")
    press(page, "Remove")
    answer(page, "Remove job over-not?", "Remove job")
    page.wait_for_url(f"{site.url}/jobs**")
    notice(page, "Job over-not removed")


def test_enter_does_not_confirm_a_destructive_action(visit: Visit, site: Site) -> None:
    site.queuectl("enqueue", "--id", "spared", "--queue", "spare", "--delay", "1h", "true", check=0)
    page = visit("/jobs?queue=spare")
    page.get_by_label("Select spared").check()
    cancel = page.get_by_role("button", name="Cancel")
    cancel.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("link", name="Back")).to_be_focused()
    page.keyboard.press("Enter")
    expect(dialog).to_be_hidden()
    expect(cancel).to_be_focused()
    assert job(site, "spared")["state"] == "pending"
    page.get_by_role("button", name="Hold").press("Enter")
    expect(dialog.get_by_role("button", name="Hold 1 job")).to_be_focused()


def test_a_preview_without_a_response_is_reported(visit: Visit, site: Site) -> None:
    site.queuectl("enqueue", "--id", "mute", "--queue", "mute", "--delay", "1h", "true", check=0)
    page = visit("/jobs?queue=mute")
    page.expected = ("net::ERR_",)  # type: ignore[attr-defined]
    page.route("**/act?*", lambda route: route.abort())
    page.get_by_label("Select mute").check()
    press(page, "Hold")
    expect(page.locator("#notice")).to_contain_text("is not responding")


def test_filters_are_in_the_address_and_pages_follow_each_other(visit: Visit, site: Site) -> None:
    lines = "\n".join(f"page {number}" for number in range(70))
    site.queuectl("enqueue", "--for-each", "-", "--queue", "paged", "--delay", "1h", "echo {}", input=lines, check=0)
    page = visit("/jobs")
    query = page.get_by_label("Query")
    query.fill("echo que")
    options = page.locator("#query-terms option").evaluate_all("all => all.map(one => one.value)")
    assert "echo queue:paged" in options  # completes the last word
    query.fill("queue:paged")
    query.press("Enter")
    page.wait_for_url("**/jobs?q=queue%3Apaged")
    expect(page.locator("#total")).to_have_text("70 jobs")
    assert page.locator("table.rows tbody tr").count() == 50
    expect(page.locator("#position")).to_contain_text("50 of 70")
    page.get_by_role("link", name="Next page").click()
    page.wait_for_url("**cursor=*")
    expect(page.locator("table.rows tbody tr")).to_have_count(20)
    expect(page.locator("#position")).to_contain_text("70 of 70")
    page.get_by_role("link", name="Previous page").click()
    expect(page.locator("#position")).to_contain_text("50 of 70")
    query.fill("queue:paged PAGE 7")
    press(page, "Apply")
    page.wait_for_url("**q=queue%3Apaged+PAGE+7")
    expect(page.locator("table.rows tbody tr")).to_have_count(7)  # 7, 17, 27 …
    page.get_by_role("link", name="Remove the filter queue paged").click()
    expect(query).to_have_value("PAGE 7")


def test_the_search_field_finds_an_id_or_a_command(visit: Visit, site: Site) -> None:
    site.queuectl("enqueue", "--id", "needle", "--delay", "1h", "echo in the haystack", check=0)
    page = visit("/")
    page.keyboard.press("/")
    page.keyboard.type("needle\n")
    page.wait_for_url(f"{site.url}/jobs/needle")
    page.locator("#find").fill("the haystack")
    page.locator("#find").press("Enter")
    page.wait_for_url("**/jobs?q=*")
    expect(page.locator("table.rows")).to_contain_text("needle")


@pytest.mark.parametrize("text", ["tar", "tarball", "last"])
def test_a_word_is_searched_in_commands_although_an_id_begins_with_it(visit: Visit, site: Site, text: str) -> None:
    site.queuectl("enqueue", "--id", f"{text}z16dfqs", "--delay", "1h", "curl example.org", check=0)
    site.queuectl("enqueue", "--id", f"meant-by-{text}", "--delay", "1h", f"run {text} now", check=0)
    page = visit("/")
    page.locator("#find").fill(text)
    page.locator("#find").press("Enter")
    page.wait_for_url("**/jobs?q=*")
    expect(page.locator("table.rows tbody tr")).to_have_count(1)
    expect(page.locator("table.rows")).to_contain_text(f"meant-by-{text}")


def test_the_first_six_characters_of_an_id_lead_to_the_job(visit: Visit, site: Site) -> None:
    site.queuectl("enqueue", "--id", "q7w8e9r0t1", "--delay", "1h", "true", check=0)
    page = visit("/")
    page.locator("#find").fill("q7w8e9")
    page.locator("#find").press("Enter")
    page.wait_for_url(f"{site.url}/jobs/q7w8e9r0t1")


def test_a_queue_is_paused_resumed_and_limited(visit: Visit, site: Site) -> None:
    site.queuectl("enqueue", "--queue", "valve", "--delay", "1h", "true", check=0)

    def rules() -> dict[str, Any]:
        return next(one for one in site.queuectl("queue", "list", "--json", check=0).json if one["name"] == "valve")

    page = visit("/queues")
    page.get_by_role("button", name="Pause valve").click()
    answer(page, "Pause queue valve?", "Pause queue")
    notice(page, "Queue valve paused")
    assert rules()["paused"] is True
    press(page, "Undo")
    notice(page, "Queue valve resumed")
    page.get_by_role("link", name="valve", exact=True).click()
    panel = page.locator("#queue-limits")
    panel.locator("summary").click()
    panel.get_by_label("Concurrency", exact=True).fill("3")
    panel.get_by_label("Rate").fill("10/m")
    panel.get_by_label("Timeout").fill("90")
    panel.get_by_role("button", name="Save").click()
    notice(page, "concurrency 3, rate 10/m")
    expect(panel.locator("summary")).to_contain_text("timeout 1m30s")
    assert (rules()["paused"], rules()["concurrency"], rules()["rate"]) == (False, 3, "10/m")
    press(page, "Undo")
    notice(page, "restored")
    assert rules()["concurrency"] is None
    panel.get_by_placeholder("another queue").fill("elsewhere")
    panel.get_by_role("button", name="Move").click()
    answer(page, "Move jobs from valve to elsewhere?", "Move jobs")
    notice(page, "1 job moved from valve to elsewhere")


def test_webhooks_of_a_queue_are_edited_on_its_panel_and_shown_redacted(visit: Visit, site: Site) -> None:
    url = "https://hooks.example.org/k9z8"
    site.queuectl("queue", "set", "bells", "--on-dead", url, check=0)
    site.queuectl("enqueue", "--id", "bell", "--queue", "bells", "--delay", "1h", "true", check=0)

    def said() -> list[str | None]:
        (one,) = (one for one in site.queuectl("queue", "list", "--json").json if one["name"] == "bells")
        return [one["on_success"], one["on_failure"], one["on_dead"]]

    page = visit("/queues/bells")
    panel = page.locator("#queue-limits")
    panel.locator("summary").click()
    expect(panel.get_by_label("Webhook when dead")).to_have_value("https://hooks.example.org/…")
    panel.get_by_label("Webhook on success").fill(url)
    panel.get_by_role("button", name="Save").click()
    notice(page, "on success https://hooks.example.org/…")
    assert said() == ["https://hooks.example.org/…", None, "https://hooks.example.org/…"]
    panel.get_by_label("Webhook when dead").fill("")
    panel.get_by_role("button", name="Save").click()
    notice(page, "on dead none")
    press(page, "Undo")
    notice(page, "restored")
    assert said()[2] == "https://hooks.example.org/…"
    assert "k9z8" not in page.content()
    expect(visit("/jobs/bell").locator("dt:text-is('On dead') + dd")).to_have_text("https://hooks.example.org/…")


def test_dead_jobs_are_retried_and_purged_by_their_error(visit: Visit, site: Site) -> None:
    for name, code in (("dead-1", 41), ("dead-2", 41), ("dead-3", 42)):
        site.queuectl("enqueue", "--id", name, "--max-retries", "1", f"test -e {site.queuectl.home}/go || exit {code}")
    site.queuectl("wait", "dead-1", "dead-2", "dead-3", timeout=30)
    page = visit("/dlq")
    row = page.get_by_role("row", name="exit code 41")
    expect(row.get_by_role("cell").first).to_have_text("2")
    (site.queuectl.home / "go").touch()
    row.get_by_role("button", name="Retry").click()
    answer(page, "Retry 2 dead jobs?", "Retry 2 dead jobs")
    notice(page, "2 jobs retried")
    wait_until(
        lambda: job(site, "dead-1")["state"] == job(site, "dead-2")["state"] == "completed", what="them to complete"
    )
    page.get_by_role("row", name="exit code 42").get_by_role("button", name="Purge").click()
    answer(page, "Purge 1 dead job?", "Purge 1 dead job")
    notice(page, "Job dead-3 purged")
    assert site.queuectl("show", "dead-3").code != 0


def test_a_schedule_is_added_paused_resumed_run_and_removed(visit: Visit, site: Site) -> None:
    page = visit("/cron")
    page.get_by_label("Name").fill("hourly")
    page.get_by_label("Schedule", exact=True).fill("0 * * * *")
    page.get_by_role("textbox", name="Command").fill("echo cuckoo")
    press(page, "Add schedule")
    notice(page, "Schedule hourly added")
    panel = page.locator("#c-hourly")
    panel.get_by_role("button", name="Pause hourly").click()
    notice(page, "Schedule hourly paused")
    press(page, "Undo")
    notice(page, "Schedule hourly resumed")
    panel.get_by_role("button", name="Run hourly now").click()
    answer(page, "Run schedule hourly now?", "Run schedule now")
    page.wait_for_url("**/jobs/**")
    expect(page.locator("#job-state")).to_have_text("completed")
    page.goto(f"{site.url}/cron")
    expect(panel).to_contain_text("completed")
    panel.get_by_role("link", name="hourly").click()
    page.wait_for_url("**/cron/hourly")  # and until its script runs
    page.get_by_role("button", name="Remove").click()
    answer(page, "Remove schedule hourly?", "Remove schedule")
    notice(page, "Schedule hourly removed")
    assert site.queuectl("cron", "list", "--json", check=0).json == []


def test_a_setting_is_changed_refused_and_unset(visit: Visit, site: Site) -> None:
    page = visit("/settings")
    page.expected = ("422",)  # type: ignore[attr-defined]
    field = page.get_by_label("Value of max-retries")
    field.fill("5")
    field.press("Enter")
    notice(page, "max-retries set to 5")
    assert site.queuectl("config", "get", "max-retries", check=0).out.strip() == "5"
    field.fill("lots")
    field.press("Enter")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#error-max-retries")).to_contain_text("max-retries: expected an integer")
    page.goto(f"{site.url}/settings")
    press(page, "Reset max-retries")
    notice(page, "max-retries reset to its default, 3")


def test_a_worker_is_asked_to_stop_and_does(visit: Visit, site: Site, tmp_path: Any) -> None:
    other = WorkerProcess(site.queuectl, tmp_path / "wasp.log", "--name", "wasp", "--queue", "nothing-of-it")
    try:
        other.wait_until_ready()
        page = visit("/workers")
        panel = page.locator("#w-wasp")
        panel.get_by_role("button", name="Stop wasp", exact=True).click()
        answer(page, "Stop worker wasp?", "Stop worker")
        notice(page, "Worker wasp is stopping after its running jobs")
        assert other.wait() == 0
        expect(panel).to_have_count(0)
    finally:
        other.end()


def test_keyboard_shortcuts_open_pages_and_help(visit: Visit, site: Site) -> None:
    site.queuectl("enqueue", "--queue", "keys", "--delay", "1h", "true", check=0)
    page = visit("/")
    for key, path in (
        ("j", "/jobs"),
        ("q", "/queues"),
        ("w", "/workers"),
        ("d", "/dlq"),
        ("s", "/settings"),
        ("o", "/"),
    ):
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.wait_for_url(site.url + path)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Find a job")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.goto(f"{site.url}/jobs")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.locator("[data-ticked]")).to_have_text("1 selected")
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
