"""The pages of batches."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pytest

from queuectl.store.open import open_store
from tests.factories import new_job
from tests.program import WorkerProcess
from tests.wait import wait_until
from tests.web.page.site import TOKEN, Site

BATCHES = 130


@pytest.fixture(scope="module")
def client(site: Site, worker: WorkerProcess) -> Iterator[httpx.Client]:
    lines = "".join(f"exit {number % 3}\n" for number in range(12))
    site.queuectl(
        "enqueue", "--file", "-", "--batch", "mixed", "--max-retries", "1", "--on-complete", "true",
        input=lines, check=0,
    )  # fmt: skip
    site.queuectl("wait", "--batch", "mixed", timeout=30)
    site.queuectl("enqueue", "--file", "-", "--batch", "open", "--delay", "1h", input="true\ntrue\n", check=0)
    headers = {"Authorization": f"Bearer {TOKEN}", "Accept": "text/html", "Origin": site.url}
    with httpx.Client(base_url=site.url, headers=headers, timeout=20, trust_env=False) as one:
        yield one


def rows(page: str) -> list[str]:
    return re.findall(r'<th scope="row"><a href="/batches/([^"]+)"', page)


def test_the_list_has_the_progress_of_each_batch(client: httpx.Client) -> None:
    page = client.get("/batches").text
    assert rows(page) == ["open", "mixed"]
    row = page[page.index('href="/batches/mixed"') :].partition("</tr>")[0]
    assert 'aria-label="100% ended"' in row
    assert '4<span class="quiet"> of 12' in row
    assert re.search(r'batch=mixed&amp;state=dead&amp;state=cancelled" class="bad">8<', row)
    one = client.get("/batches/mixed").text
    assert "<dt>ended</dt><dd>4 completed, 8 dead</dd>" in one
    took = re.findall(r"<dt>took</dt><dd>([^<]+)<", one)
    assert re.findall(r"took ([^<]+)<", row) == took != []
    assert "<dt>rate</dt>" not in one


def test_a_batch_shows_its_failures_by_error_its_jobs_and_its_last_job(client: httpx.Client) -> None:
    path = r'on complete</dt><dd><span class="mono">true</span> <a href="/jobs/\w+">enqueued'
    wait_until(lambda: re.search(path, client.get("/batches/mixed").text), what="the job on completion")
    page = client.get("/batches/mixed").text
    failures = page[page.index('id="batch-failures"') :].partition("</section>")[0]
    assert re.findall(r"exit code \d</a>", failures) == ["exit code 2</a>", "exit code 1</a>"]
    assert failures.count("<strong>4</strong>") == 2
    group = re.findall(r'href="(/jobs\?batch=mixed&amp;state=dead&amp;fingerprint=\w+)"', failures)[0]
    assert client.get(group.replace("&amp;", "&")).text.count('aria-label="Select ') == 5, "four jobs, and all of them"
    assert page[page.index('id="batch-jobs"') :].count('class="command"') == 12
    assert client.get("/batches/none").status_code == 404


def test_a_batch_is_cancelled_and_retried_after_a_preview(client: httpx.Client, site: Site) -> None:
    page = client.get("/batches/open").text
    assert "Cancel the batch" in page
    assert "Retry " not in page, "nothing has failed"
    mixed = client.get("/batches/mixed").text
    assert "Retry 8 dead jobs</button>" in mixed
    only = re.findall(r'<input type="hidden" name="(state)" value="(dead)">', mixed)
    assert only == [("state", "dead")]
    dialog = client.get("/act", params=[("action", "retry"), ("all", "1"), ("batch", "mixed"), *only]).text
    assert "Retry 8 jobs?" in dialog
    assert "will be skipped" not in dialog
    assert dialog.count("· exit code ") == 5, "beside equal commands"
    asked = client.get("/act", params={"action": "cancel", "all": "1", "batch": "open", "back": "/batches/open"})
    assert "Cancel 2 jobs?" in asked.text
    said = {"action": "cancel", "all": "1", "batch": "open", "back": "/batches/open"}
    assert "2 jobs cancelled" in client.post("/act", data=said, follow_redirects=True).text
    assert site.queuectl("batch", "show", "open", "--json", check=0).json["states"]["cancelled"] == 2


def test_many_batches_are_shown_page_by_page_and_found_by_name(client: httpx.Client, site: Site) -> None:
    store = open_store(str(site.queuectl.home))
    store.enqueue([new_job(batch=f"import-{number:03}", delay_ms=3_600_000) for number in range(BATCHES)])
    store.close()
    seen: list[str] = []
    path = "/batches"
    while True:
        page = client.get(path).text
        seen += rows(page)
        following = re.search(r'href="(/batches\?cursor=[^"]+)" rel="next"', page)
        if following is None:
            break
        path = following[1]
    assert len(seen) == len(set(seen)) == BATCHES + 2
    assert rows(client.get("/batches", params={"name": "T-12"}).text) == [f"import-12{n}" for n in reversed(range(10))]
    assert "No matching batches" in client.get("/batches", params={"name": "<none>"}).text
