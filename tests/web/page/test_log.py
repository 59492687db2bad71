"""The log of a job on its page: numbered lines, jumps, search over the whole log, and a job that prints faster than a browser renders."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.program import WorkerProcess
from tests.web.page.site import Site, Visit


@pytest.fixture(scope="module")
def long_log(site: Site, worker: WorkerProcess) -> str:
    """3002 lines: a marker, `line 1` to `line 3000`, a marker."""
    site.queuectl("enqueue", "--id", "lines", "seq 3000 | sed 's/^/line /'", check=0)
    site.queuectl("wait", "lines", timeout=30)
    return "/jobs/lines"


def numbers(page: Page) -> tuple[int, int, int]:
    """Of the first and the last line on the page, and how many there are: they have to be without gaps."""
    first, last, count = page.evaluate("""() => {
      const all = [...document.querySelectorAll('.log .line')].map((line) => Number(line.id.slice(1)));
      return [all[0], all.at(-1), all.length];
    }""")
    assert last - first + 1 == count
    return first, last, count


def is_in_view(page: Page, line: str) -> bool:
    found: bool = page.evaluate(
        """(id) => {
      const [line, log] = [document.getElementById(id), document.querySelector('.log')].map((one) => one.getBoundingClientRect());
      return line.top >= log.top && line.bottom <= log.bottom;
    }""",
        line,
    )
    return found


def test_a_link_to_a_line_loads_it_and_earlier_and_later_lines_follow(visit: Visit, site: Site, long_log: str) -> None:
    page = visit("/")
    page.goto(f"{site.url}{long_log}#L120")
    expect(page.locator(".log .here")).to_have_text("line 119\n")
    assert is_in_view(page, "L120")
    assert numbers(page) == (1, 500, 500)
    page.get_by_role("link", name="Later lines").click()
    expect(page.locator("[data-range]")).to_have_text("Lines 1\u20131,000")
    assert numbers(page) == (1, 1000, 1000)
    page.get_by_role("link", name="Last lines").click()
    expect(page.locator("#L3002")).to_contain_text("--- END")
    page.get_by_role("link", name="Earlier lines").click()
    expect(page.locator("[data-range]")).to_have_text("Lines 2,003\u20133,002 of 3,002")
    assert numbers(page) == (2003, 3002, 1000)
    page.locator("#L3000 > a").click()
    assert page.url.endswith("#L3000")
    expect(page.locator(".log .here")).to_have_text("line 2999\n")


def test_a_search_finds_lines_that_are_not_on_the_page(visit: Visit, long_log: str) -> None:
    page = visit(long_log)
    find, hits, here = page.get_by_label("Search the log"), page.locator("[data-hits]"), page.locator(".log .here")
    assert numbers(page) == (2503, 3002, 500)
    find.fill("LINE 77")
    expect(hits).to_have_text("1 of 11")
    expect(here).to_have_text("line 77\n")
    assert is_in_view(page, "L78")
    find.press("Enter")
    expect(here).to_have_text("line 770\n")
    page.locator(".log").press("n")
    expect(here).to_have_text("line 771\n")
    page.locator(".log").press("N")
    page.get_by_role("link", name="Previous match").click()
    expect(here).to_have_text("line 77\n")
    page.locator(".log").press("N")
    expect(hits).to_have_text("11 of 11")
    find.fill("line")
    expect(hits).to_contain_text("of 1,000+")
    find.fill("no such text")
    expect(hits).to_have_text("0 lines")


def test_line_numbers_are_no_text_and_lines_can_be_left_unwrapped(visit: Visit, long_log: str) -> None:
    page = visit(long_log)
    assert page.locator(".log").inner_text().endswith("line 3000\n" + page.locator("#L3002").inner_text())
    page.get_by_label("Wrap").uncheck()
    assert page.locator("#L3000").evaluate("(line) => getComputedStyle(line).whiteSpace") == "pre"
    page.reload()
    expect(page.get_by_label("Wrap")).not_to_be_checked()


def test_without_script_a_log_is_paged_and_searched_on_the_server(visit: Visit, long_log: str) -> None:
    page = visit(long_log, script=False)
    expect(page.locator(".log .line").last).to_contain_text("--- END")
    page.get_by_role("link", name="Earlier lines").click()
    assert numbers_of(page) == ("L2003", "L2502")
    page.get_by_label("Search the log").fill("line 77")
    page.get_by_label("Search the log").press("Enter")
    expect(page.locator("[data-hits]")).to_have_text("11 lines")
    expect(page.locator(".log .here")).to_have_text("line 77\n")
    page.get_by_role("link", name="Next match").click()
    expect(page.locator(".log .here")).to_have_text("line 770\n")
    expect(page.locator("#log button:visible")).to_have_count(0)


def numbers_of(page: Page) -> tuple[str | None, str | None]:
    lines = page.locator(".log .line")
    return lines.first.get_attribute("id"), lines.last.get_attribute("id")


def test_a_page_catches_up_with_a_job_that_prints_faster_than_it_renders(
    visit: Visit, site: Site, worker: WorkerProcess
) -> None:
    go, end = site.queuectl.home / "go-firehose", site.queuectl.home / "end-firehose"
    wait = "until [ -e {} ]; do sleep 0.05; done"
    command = f"echo ready; {wait.format(go)}; seq 200000; {wait.format(end)}; echo last words"
    site.queuectl("enqueue", "--id", "firehose", command, check=0)
    page = visit("/jobs/firehose")
    expect(page.locator(".log")).to_contain_text("ready")
    page.evaluate("""() => {
      window.rendered = 0;
      new MutationObserver((all) => all.forEach((one) => (window.rendered += one.addedNodes.length)))
        .observe(document.querySelector('.log'), { childList: true });
    }""")
    go.touch()
    expect(page.locator("#L200002")).to_have_text("200000\n")
    assert page.evaluate("window.rendered") < 100_000  # all would take 15 s
    assert numbers(page)[2] <= 5000
    # A user who reads earlier lines is not disturbed by new ones.
    page.locator(".log").evaluate("(log) => (log.scrollTop = 1000)")
    expect(page.get_by_label("Follow")).not_to_be_checked()
    end.touch()
    expect(page.locator("#L200003")).to_have_text("last words\n")
    assert page.locator(".log").evaluate("(log) => log.scrollTop") == 1000


def test_exact_colors_are_shown_at_rest_and_while_they_come(visit: Visit, site: Site, worker: WorkerProcess) -> None:
    go = site.queuectl.home / "go-colors"
    script = rf"printf '\033[38;5;208mof 256\033[0m \033[48;2;10;20;30mtrue\033[0m\n'; until [ -e {go} ]; do sleep 0.05; done"
    site.queuectl("enqueue", "--id", "colors", rf"{script}; printf '\033[38;2;1;2;3mlater\033[0m\n'", check=0)
    page = visit("/jobs/colors")

    def style(text: str, name: str) -> str:
        found: str = page.locator(".log span[class^=t-]", has_text=text).evaluate(
            f"(one) => getComputedStyle(one).{name}"
        )
        return found

    expect(page.locator(".log")).to_contain_text("of 256")
    go.touch()
    expect(page.locator(".log")).to_contain_text("later")
    expect(page.locator("#job-state")).to_have_text("completed")
    for _ in range(2):
        assert style("of 256", "color") == "rgb(255, 135, 0)"
        assert style("true", "backgroundColor") == "rgb(10, 20, 30)"
        assert style("later", "color") == "rgb(1, 2, 3)"
        page.reload()


def test_a_job_that_is_not_due_offers_no_follow(visit: Visit, site: Site) -> None:
    site.queuectl("enqueue", "--id", "in-weeks", "--delay", "43d", "true", check=0)
    page = visit("/jobs/in-weeks")
    expect(page.get_by_label("Wrap")).to_be_visible()
    expect(page.get_by_label("Follow")).to_be_hidden()
