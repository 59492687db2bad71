"""The pages of queues."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import expect

from queuectl.operations.queues import MAX_DUE_COUNTED
from queuectl.store.open import open_store
from queuectl.text import WEBHOOK_QUEUE
from tests.factories import new_job
from tests.web.page.site import TOKEN, Site, Visit


@pytest.fixture(scope="module")
def client(site: Site) -> Iterator[httpx.Client]:
    store = open_store(str(site.queuectl.home))
    store.enqueue([new_job("first", queue="mail", delay_ms=None), *(new_job(queue="mail") for _ in range(4))])
    store.enqueue([new_job(queue="mail", delay_ms=3_600_000) for _ in range(2)])
    store.enqueue([new_job(queue=WEBHOOK_QUEUE)])
    store.close()
    site.queuectl("enqueue", "--queue", "mail", "--after", "first", "true", check=0)
    headers = {"Authorization": f"Bearer {TOKEN}", "Accept": "text/html", "Origin": site.url}
    with httpx.Client(base_url=site.url, headers=headers, timeout=20, trust_env=False, follow_redirects=True) as one:
        yield one


def reasons(page: str) -> list[tuple[str, str]]:
    return re.findall(r"<li><b>([\d+,]+)</b> <span>([^<]+)</span>", page)


def test_the_list_has_counts_limits_and_marks_the_internal_queue(client: httpx.Client, site: Site) -> None:
    site.queuectl("queue", "set", "mail", "--concurrency", "2", check=0)
    page = client.get("/queues").text
    rows = re.findall(r'<tr id="q-([^"]+)">', page)
    assert rows == ["mail", WEBHOOK_QUEUE], "the internal queue is the last"
    mail, webhooks = (page[page.index(f'id="q-{name}"') :].partition("</tr>")[0] for name in rows)
    assert 'aria-label="mail: waiting, 8"' in mail
    assert 'aria-label="0 of 2 running"' in mail
    assert ">internal</span>" in webhooks
    assert ">internal</span>" not in mail
    # It is counted in no total.
    assert '<p id="total" data-live' not in page
    assert 'href="/jobs?state=pending"><span class="label">pending</span><span class="value">7<' in client.get("/").text
    assert ">internal</span>" in client.get(f"/queues/{WEBHOOK_QUEUE}").text


def test_a_queue_has_the_reasons_why_its_jobs_wait(client: httpx.Client, site: Site) -> None:
    others = [("2", "Not due yet, held, or waiting for a retry"), ("1", "Waiting for other jobs")]
    assert reasons(client.get("/queues/mail").text) == [("5", "No live worker serves its queue"), *others]
    site.queuectl("queue", "pause", "mail", check=0)
    assert reasons(client.get("/queues/mail").text) == [("5", "Queue paused"), *others]
    api = client.get("/api/v1/queues/mail/waiting").json()
    assert [(one["code"], one["jobs"]) for one in api] == [("queue-paused", 5), ("not-due", 2), ("blocked", 1)]
    site.queuectl("queue", "resume", "mail", check=0)
    assert reasons(client.get("/queues/unknown").text) == []
    assert "No live worker serves this queue" in client.get("/queues/unknown").text


def test_a_queue_links_to_its_jobs_by_state_and_has_a_trend(client: httpx.Client) -> None:
    page = client.get("/queues/mail").text
    assert 'href="/jobs?queue=mail&amp;state=blocked"' in page
    assert 'href="/queues/mail?span=day"' in page
    assert MAX_DUE_COUNTED > 1000


def test_settings_are_changed_on_the_page_and_an_error_is_at_its_field(visit: Visit, site: Site) -> None:
    site.queuectl("queue", "set", "limits", "--rate", "10/m", check=0)
    page = visit("/queues/limits")
    page.expected = ("422",)  # type: ignore[attr-defined]
    page.locator("#limits summary").click()
    page.get_by_label("Concurrency", exact=True).fill("many")
    page.get_by_label("Rate").fill("20/m")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("Concurrency", exact=True)).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#error-concurrency")).to_contain_text("expected an integer")
    expect(page.get_by_label("Rate")).to_have_value("20/m")
    page.get_by_label("Concurrency", exact=True).fill("3")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#notice")).to_contain_text("Queue limits changed: concurrency 3, rate 20/m")
    expect(page.locator("#queue-limits summary")).to_contain_text("concurrency 3 · rate 20/m")
    expect(page.locator(".field-error")).to_have_count(0)
