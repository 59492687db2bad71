"""Live updates: changes appear without a reload, and do not disturb a user who reads or types."""

from __future__ import annotations

import time

from playwright.sync_api import Response, expect

from tests.program import WorkerProcess
from tests.web.page.site import Site, Visit

SIZES = ("requestHeadersSize", "responseHeadersSize", "responseBodySize")


def is_stream(answer: Response) -> bool:
    return "event-stream" in answer.headers.get("content-type", "")


def test_a_new_job_appears_in_the_list_without_a_reload(visit: Visit, site: Site) -> None:
    page = visit("/jobs?queue=news")
    expect(page.locator("#list")).not_to_contain_text("extra")
    page.evaluate("window.mark = 1")
    site.queuectl("enqueue", "--id", "extra", "--queue", "news", "--delay", "1h", "echo extra", check=0)
    expect(page.locator("#list")).to_contain_text("extra")
    assert page.evaluate("window.mark") == 1, "the page was loaded again"


def test_a_thousand_changes_cause_a_few_updates(visit: Visit, site: Site) -> None:
    page = visit("/")
    looks: list[str] = []
    page.on("request", lambda request: request.url == f"{site.url}/" and looks.append(request.url))
    lines = "\n".join(map(str, range(1000)))
    began = time.monotonic()
    site.queuectl("enqueue", "--stream", "--queue", "flood", "--delay", "1h", input=lines, check=0, timeout=50)
    expect(page.locator("#queues")).to_contain_text("1,000")
    assert 1 <= len(looks) <= 2 + 2 * (time.monotonic() - began)  # two a second, however long it took


def test_text_that_a_user_types_survives_an_update(visit: Visit, site: Site) -> None:
    site.queuectl("enqueue", "--id", "first", "--queue", "typing", "--delay", "1h", "true", check=0)
    page = visit("/queues/typing")
    panel = page.locator("#queue-limits")
    panel.locator("summary").click()
    panel.get_by_label("Rate").press_sequentially("5/")
    with page.expect_response(f"{site.url}/queues/typing"):  # the look of the page at itself
        site.queuectl("enqueue", "--queue", "typing", "--delay", "1h", "true", check=0)
    panel.get_by_label("Rate").press_sequentially("m")
    assert panel.get_by_label("Rate").input_value() == "5/m"
    assert page.evaluate("document.activeElement.name") == "rate"
    panel.get_by_role("button", name="Save").click()
    expect(page.locator("#notice")).to_contain_text("rate 5/m")
    expect(page.locator("#queue-states")).to_contain_text("pending2")


def test_a_selected_job_stays_selected_while_the_list_changes(visit: Visit, site: Site) -> None:
    site.queuectl("enqueue", "--id", "stays", "--queue", "ticking", "--delay", "1h", "true", check=0)
    page = visit("/jobs?queue=ticking")
    page.get_by_label("Select stays").check()
    site.queuectl("enqueue", "--id", "comes", "--queue", "ticking", "--delay", "1h", "true", check=0)
    site.queuectl("enqueue", "--id", "gone-by", "--queue", "other", "--delay", "1h", "true", check=0)
    expect(page.get_by_label("Select stays")).to_be_checked()
    page.get_by_label("Select stays").uncheck()
    expect(page.locator("#list")).to_contain_text("comes")


def test_the_row_selected_by_keys_survives_a_change_of_the_list(visit: Visit, site: Site) -> None:
    site.queuectl("enqueue", "--id", "below", "--queue", "keyed", "--delay", "1h", "true", check=0)
    page = visit("/jobs?queue=keyed")
    page.keyboard.press("j")
    site.queuectl("enqueue", "--id", "above", "--queue", "keyed", "--delay", "1h", "true", check=0)
    expect(page.locator("#list")).to_contain_text("above")
    page.keyboard.press("x")
    expect(page.get_by_label("Select below")).to_be_checked()
    expect(page.get_by_label("Select above")).not_to_be_checked()


def test_a_log_is_followed_in_color_and_searched(visit: Visit, site: Site, worker: WorkerProcess) -> None:
    go = site.queuectl.home / "go-on"
    script = rf"printf 'one\n\033[32mgreen\033[0m <b>no markup</b>\n'; until [ -e {go} ]; do sleep 0.05; done; echo last words"
    site.queuectl("enqueue", "--id", "chatty", script, check=0)
    page = visit("/jobs/chatty")
    log = page.locator(".log")
    expect(log.locator(".t-fg2")).to_have_text("green")
    expect(log).to_contain_text("<b>no markup</b>")
    expect(log).not_to_contain_text("last words")
    go.touch()
    expect(log).to_contain_text("last words")
    expect(page.locator("#job-state")).to_have_text("completed")
    expect(page.locator("#why-title")).to_have_text("Result")
    page.get_by_label("Search the log").fill("LAST")
    expect(page.locator("[data-hits]")).to_have_text("1 of 1")
    expect(log.locator(".hit")).to_have_text("last words")


def test_an_update_of_a_job_page_leaves_its_log_out(visit: Visit, site: Site, worker: WorkerProcess) -> None:
    go = site.queuectl.home / "go-on-quietly"
    site.queuectl("enqueue", "--id", "long", f"seq 1000; until [ -e {go} ]; do sleep 0.05; done", check=0)
    page = visit("/jobs/long")
    expect(page.locator(".log")).to_contain_text("1000")
    with page.expect_response(lambda answer: "queuectl-update" in answer.request.headers) as update:
        go.touch()
    assert "data-log=" not in update.value.text()
    expect(page.locator("#job-state")).to_have_text("completed")
    expect(page.locator(".log")).to_contain_text("1000")


def test_progress_that_is_written_over_itself_is_one_line_while_it_grows(
    visit: Visit, site: Site, worker: WorkerProcess
) -> None:
    go = site.queuectl.home / "go-on-with-it"
    script = rf"""i=0; while [ $i -lt 100 ]; do i=$((i+1)); printf '\r\033[32mframe= %s time=00:00:01.00\033[0m' $i; done
printf '\r'; until [ -e {go} ]; do sleep 0.05; done; printf 'done\r\nend\n'"""
    site.queuectl("enqueue", "--id", "progress", script, check=0)
    page = visit("/jobs/progress")
    log = page.locator(".log")
    expect(log.locator(".line").last).to_have_text("frame= 100 time=00:00:01.00")
    expect(log.locator(".line").last.locator(".t-fg2")).to_have_text("frame= 100 time=00:00:01.00")
    go.touch()
    expect(log.locator(".line").nth(1)).to_have_text("done")
    expect(log.locator(".line").nth(2)).to_have_text("end")


def test_a_lost_dashboard_is_reported_until_it_is_back(visit: Visit, site: Site) -> None:
    page = visit("/")
    page.expected = ("net::ERR_",)  # type: ignore[attr-defined] # in whatever words: it may go in the middle of any answer
    banner = page.locator("#link-state")
    expect(banner).to_be_hidden()
    port = site.port
    site.stop(at_once=True)
    expect(banner).to_contain_text("is not responding")
    site.queuectl("enqueue", "--queue", "meanwhile", "--delay", "1h", "true", check=0)
    site.start(port)
    expect(page.locator("#queues")).to_contain_text("meanwhile")
    expect(banner).to_be_hidden()


def test_a_watched_page_takes_at_most_10_kb_a_second_while_jobs_come_and_go(
    visit: Visit, site: Site, worker: WorkerProcess
) -> None:
    site.queuectl("enqueue", "--array", "1-60", "--queue", "traffic", "--delay", "1h", "true", check=0)
    for path in ("/jobs?queue=traffic", "/jobs/traffic-log"):
        if path.endswith("log"):
            lines = "for i in $(seq 2000); do echo a line of the log, number $i, $$; done; exec sleep 600"
            site.queuectl("enqueue", "--id", "traffic-log", lines, check=0)
        page = visit(path)
        page.wait_for_selector("[data-state=live]")
        answers: list[Response] = []
        page.on("response", lambda answer, answers=answers: answers.append(answer))
        began = time.monotonic()
        for number in range(4):
            site.queuectl(
                "enqueue", "--id", f"{number}{path.count('?')}{len(path)}", "--queue", "traffic", "true", check=0
            )
            page.wait_for_event("response", lambda answer: "queuectl-update" in answer.request.headers)
        seconds = time.monotonic() - began
        size = sum(sum(answer.request.sizes()[part] for part in SIZES) for answer in answers if not is_stream(answer))
        assert answers
        assert size / seconds < 10_000, f"{path}: {size} bytes in {seconds:.1f} s"


def test_an_update_keeps_the_rows_and_the_text_that_the_user_has_selected(visit: Visit, site: Site) -> None:
    site.queuectl("enqueue", "--id", "kept", "--queue", "kept", "--delay", "1h", "echo kept", check=0)
    page = visit("/jobs?queue=kept")
    page.locator("#list tbody tr").evaluate("""row => {
      window.row = row;
      row.querySelector("a").focus();
      getSelection().selectAllChildren(row.querySelector("a"));
    }""")
    site.queuectl("enqueue", "--id", "another", "--queue", "kept", "--delay", "1h", "true", check=0)
    expect(page.locator("#list")).to_contain_text("another")
    assert page.evaluate("row.isConnected && row.contains(getSelection().anchorNode)")
    assert page.evaluate("row.contains(document.activeElement)")
