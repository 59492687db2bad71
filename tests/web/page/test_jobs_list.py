"""The list of jobs: its columns, order, filters and empty states."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import expect

from tests.program import WorkerProcess
from tests.web.page.site import READER, TOKEN, Site, Visit


@pytest.fixture(scope="module")
def http(site: Site) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {TOKEN}", "Accept": "text/html"}
    with httpx.Client(base_url=site.url, headers=headers, timeout=20, trust_env=False) as client:
        yield client


def headers_of(page: str) -> list[str]:
    found = re.findall(r'<th scope="col" class="c-\w+"[^>]*>(.*?)</th>', page)
    return [re.sub(r"<[^>]*>|[↓↑]", "", text).strip() for text in found]


def rows_of(page: str) -> list[str]:
    return re.findall(r"<tr>\s*<td.*?</tr>", page, re.DOTALL)


def test_an_empty_list_leads_to_a_new_job(http: httpx.Client) -> None:
    assert '<a class="button primary" href="/enqueue">New job</a>' in http.get("/jobs").text
    reader = http.get("/jobs", headers={"Authorization": f"Bearer {READER}"}).text
    assert "No jobs yet" in reader
    assert 'href="/enqueue"' not in reader


@pytest.fixture(scope="module")
def filled(site: Site, http: httpx.Client, worker: WorkerProcess) -> None:
    enqueue = lambda *words: site.queuectl("enqueue", *words, check=0)  # noqa: E731
    common = ("--queue", "shop", "--tag", "eu", "--tag", "vip")
    enqueue(*common, "--id", "low", "--priority", "-3", "--delay", "2h", "echo low")
    enqueue(*common, "--id", "high", "--priority", "8", "--delay", "1h", "echo high")
    site.queuectl("hold", "high", check=0)
    enqueue(*common, "--id", "again", "--max-attempts", "3", "--backoff-base", "3000", "exit 7")
    enqueue(*common, "--id", "late", "--max-attempts", "1", "echo 'timeout: <b>db</b>'; exit 9")
    enqueue("--queue", "long", "--array", "17-18", "--delay", "3h", "echo $QUEUECTL_ARRAY_INDEX")
    enqueue(*common, "--id", "fine", "--batch", "orders", "echo fine")
    enqueue("--queue", "long", "--id", "runs", "sleep 600; " + "echo " + "word " * 100)
    site.queuectl("wait", "late", "fine", timeout=30)


@pytest.mark.usefixtures("filled")
class TestColumns:
    def test_each_state_has_the_columns_that_one_looks_for(self, http: httpx.Client, site: Site) -> None:
        found = {
            state: headers_of(http.get("/jobs", params={"state": state}).text)
            for state in ("pending", "processing", "failed", "completed", "dead")
        }
        assert [header for header in found["pending"] if header not in found["completed"]] == [
            "Reason",
            "Priority",
            "Due",
        ]
        assert "Running for" in found["processing"]
        assert "Worker" in found["processing"]
        assert {"Error", "Attempts", "Next retry"} <= set(found["failed"])
        assert {"Duration", "Finished"} <= set(found["completed"])
        assert {"Error", "Died"} <= set(found["dead"])
        dead = http.get("/jobs?state=dead").text  # the job that died last is the first
        assert 'class="c-finished" aria-sort="descending"' in dead

    def test_a_row_has_the_sub_state_the_error_with_the_last_output_and_the_array_index(
        self, http: httpx.Client
    ) -> None:
        rows = {match[1]: row for row in rows_of(http.get("/jobs").text) if (match := re.search(r'value="(\w+)"', row))}
        texts = {name: " ".join(re.sub(r"<[^>]*>", "", row).split()) for name, row in rows.items()}
        assert "pending held" in texts["high"]
        assert "pending scheduled" in texts["low"]
        assert re.search(r"failed · retry in \d+[mh]", texts["again"])
        assert "exit code 9 · timeout: &lt;b&gt;db&lt;/b&gt;" in texts["late"]
        assert sum("[17]" in text for text in texts.values()) == 1

    def test_a_pending_job_has_the_reason_why_it_waits(self, http: httpx.Client, site: Site) -> None:
        site.queuectl("queue", "pause", "closed", check=0)
        for command in ("true", "false"):
            site.queuectl("enqueue", "--queue", "closed", "--id", command, command, check=0)
        site.queuectl("hold", "false", check=0)
        pages = http.get("/jobs?state=pending&queue=closed").text + http.get("/jobs?state=pending&queue=shop").text
        rows = {match[1]: row for row in rows_of(pages) if (match := re.search(r'name="id" value="(\w+)"', row))}
        notes = {name: re.findall(r'class="nt">\s*<span[^>]*>(.*?)</span>', row) for name, row in rows.items()}
        assert notes == {"true": ["queue paused"], "false": ["held"], "high": ["held"], "low": ["not due"]}
        site.queuectl("cancel", "true", "false", check=0)

    def test_the_column_of_tags_needs_a_job_with_one(self, http: httpx.Client) -> None:
        assert "Batch and tags" in headers_of(http.get("/jobs?queue=shop").text)
        assert "Batch and tags" not in headers_of(http.get("/jobs?queue=long").text)

    def test_a_state_without_jobs_names_no_filter_to_remove(self, http: httpx.Client) -> None:
        page = http.get("/jobs?state=blocked").text
        assert "No blocked jobs" in page
        assert "Remove a filter" not in page
        assert "Remove a filter" in http.get("/jobs?state=blocked&queue=shop").text

    def test_headers_sort_and_sort_back(self, http: httpx.Client) -> None:
        first = http.get("/jobs?queue=shop&state=pending").text
        url = re.search(r'<a href="([^"]*)">Priority</a>', first)
        assert url is not None
        page = http.get(url[1].replace("&amp;", "&")).text
        assert 'class="c-priority" aria-sort="descending"' in page
        assert [re.search(r'name="id" value="(\w+)"', row)[1] for row in rows_of(page)] == ["high", "low"]  # type: ignore[index]
        back = re.search(r'aria-sort="descending"><a href="([^"]*)"', page)
        assert back is not None
        page = http.get(back[1].replace("&amp;", "&")).text
        assert [re.search(r'name="id" value="(\w+)"', row)[1] for row in rows_of(page)] == ["low", "high"]  # type: ignore[index]

    def test_a_queue_a_tag_and_a_batch_narrow_the_list_and_can_be_removed_again(self, visit: Visit, site: Site) -> None:
        page = visit("/jobs?state=completed&sort=finished", script=False)
        page.set_viewport_size({"width": 1920, "height": 1080})
        page.get_by_role("link", name="vip").click()
        page.get_by_role("link", name="orders").click()
        page.get_by_role("link", name="shop").click()
        assert page.url == f"{site.url}/jobs?state=completed&tag=vip&batch=orders&queue=shop&sort=finished"
        page.get_by_role("link", name="Remove the filter batch orders").click()
        assert page.url == f"{site.url}/jobs?state=completed&queue=shop&tag=vip&sort=finished"
        page.get_by_role("link", name="Clear all").click()
        assert page.url == f"{site.url}/jobs?sort=finished"

    def test_a_tab_replaces_the_state_of_the_query(self, http: httpx.Client) -> None:
        page = http.get("/jobs", params={"q": "state:dead tag:eu", "queue": "shop"}).text
        assert re.search(r'class="s-dead" aria-current="true">Dead <span class="count">1</span>', page)
        url = re.search(r'<a href="([^"]*)" class="s-completed">', page)
        assert url is not None
        assert url[1].replace("&amp;", "&") == "/jobs?state=completed&queue=shop&q=tag%3Aeu"

    def test_an_invalid_query_is_kept_with_an_error(self, http: httpx.Client) -> None:
        page = http.get("/jobs", params={"q": "quue:shop", "tag": "eu"}).text
        assert 'value="quue:shop"' in page
        assert "did you mean &#39;queue:&#39;?" in page.lower()
        assert 'aria-label="Remove the filter tag eu"' in page

    def test_rows_are_compact_and_use_the_whole_window(self, visit: Visit) -> None:
        page = visit("/jobs")
        page.set_viewport_size({"width": 1920, "height": 1080})
        rows = page.locator("table.rows tbody tr")
        expect(rows).not_to_have_count(0)
        assert max(rows.evaluate_all("all => all.map(one => one.getBoundingClientRect().height)")) <= 36
        assert page.locator("table.rows").evaluate("one => one.getBoundingClientRect().width") > 1650
        small = page.locator("#list").evaluate("""list => [...list.querySelectorAll('a, label')]
          .filter(one => one.checkVisibility()).map(one => [one.textContent, one.getBoundingClientRect()])
          .filter(([text, box]) => box.width < 24 || box.height < 24).map(([text]) => text)""")
        assert small == []

    def test_a_job_that_runs_tells_for_how_long(self, visit: Visit) -> None:
        page = visit("/jobs?state=processing")
        cell = page.get_by_role("row", name="runs").locator("time").first
        expect(cell).to_have_text(re.compile(r"^\d+[sm]$"))

    def test_more_than_a_thousand_matches_are_not_counted(self, http: httpx.Client, site: Site) -> None:
        lines = "\n".join(map(str, range(1050)))
        site.queuectl(
            "enqueue", "--for-each", "-", "--queue", "many", "--tag", "mass", "--delay", "1d", "echo {}", input=lines
        )
        page = http.get("/jobs?tag=mass").text
        assert ">1,000+ jobs</p>" in page
        assert "50 of 1,000+</span>" in page
        assert "Select all matching" in page
