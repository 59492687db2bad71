"""The pages of alerts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing

import httpx
import pytest
from playwright.sync_api import expect

from queuectl.store.open import open_store
from tests.program import WorkerProcess
from tests.wait import wait_until
from tests.web.page.site import READER, TOKEN, Site, Visit

URL = "http://127.0.0.1:9/hooks/a-secret-part"


@pytest.fixture(scope="module")
def client(site: Site) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {TOKEN}", "Accept": "text/html", "Origin": site.url}
    with httpx.Client(base_url=site.url, headers=headers, timeout=20, trust_env=False, follow_redirects=True) as one:
        yield one


def add(client: httpx.Client, name: str, **fields: str) -> httpx.Response:
    said = {"name": name, "kind": "dead", "threshold": "3", "webhook": URL, **fields}
    return client.post("/alerts/+/add", data=said)


def shown(site: Site, name: str) -> dict[str, object]:
    found: dict[str, object] = site.queuectl("alert", "show", name, "--json", check=0).json
    return found


def test_an_alert_is_added_edited_paused_and_removed_by_forms(client: httpx.Client, site: Site) -> None:
    assert "Alert late added" in add(client, "late", kind="oldest", threshold="10m", queue="mail", repeat="1h").text
    page = client.get("/alerts/late").text
    assert "Oldest job waits 10m in mail" in page
    assert "a-secret-part" not in page
    # The redacted URL of the form keeps the URL; an empty field removes its value.
    (webhook,) = re.findall(r'name="webhook" value="([^"]*)"', page)
    said = {"kind": "oldest", "threshold": "20m", "queue": "", "for": "5m", "repeat": "1h", "webhook": webhook}
    assert "Alert late changed" in client.post("/alerts/late/edit", data=said).text
    found = shown(site, "late")
    assert [found[name] for name in ("threshold", "queue", "for", "repeat")] == [1200, None, 300, 3600]
    with closing(open_store(str(site.queuectl.home))) as store:
        assert store.alerts.get("late").url == URL
    assert "Alert late paused" in client.post("/alerts/late/pause").text
    assert shown(site, "late")["state"] == "paused"
    client.post("/alerts/late/resume")
    assert shown(site, "late")["state"] == "ok"
    assert "Remove alert late?" in client.post("/alerts/late/remove").text
    assert "Alert late removed" in client.post("/alerts/late/remove", data={"confirmed": "1"}).text
    assert client.get("/alerts/late").status_code == 404


def test_an_error_is_shown_at_its_field_and_the_form_keeps_its_values(client: httpx.Client) -> None:
    refused = add(client, "wrong", threshold="many", repeat="2h")
    assert refused.status_code == 422
    assert re.search(
        r'name="threshold" value="many"[^>]*aria-invalid="true" aria-describedby="error-threshold"', refused.text
    )
    assert 'id="error-threshold">Dead: expected a number of jobs' in refused.text
    assert 'name="repeat" value="2h"' in refused.text
    both = add(client, "wrong", webhook="")
    assert "Neither a webhook nor a command for an alert" in both.text


def test_a_command_is_refused_where_the_operator_has_not_allowed_it(client: httpx.Client) -> None:
    assert 'name="command"' not in client.get("/alerts").text
    assert "does not accept alert commands" in add(client, "shell", webhook="", command="true").text


def test_the_history_has_firings_and_their_delivery(client: httpx.Client, site: Site, worker: WorkerProcess) -> None:
    add(client, "deaths", threshold="1", queue="mail")
    site.queuectl("enqueue", "--queue", "mail", "--max-retries", "0", "exit 1", check=0)
    wait_until(lambda: "<tr>" in client.get("/alerts/deaths").text, what="the notification")
    history = client.get("/alerts").text.partition('id="alert-history"')[2]
    assert re.search(r'href="/alerts/deaths".*?>fired<.*?1 job of mail is dead.*?href="/jobs/\w+"', history, re.DOTALL)
    notifications = shown(site, "deaths")["notifications"]
    assert isinstance(notifications, list)
    assert [one["event"] for one in notifications] == ["firing"]


def test_a_test_is_sent_after_a_question(visit: Visit, client: httpx.Client) -> None:
    add(client, "ring", queue="quiet")
    page = visit("/alerts")
    page.get_by_role("button", name="Test ring").click()
    expect(page.locator("#dialog h1")).to_have_text("Test alert ring?")
    page.locator("#dialog").get_by_role("button", name="Test alert").click()
    expect(page.locator("#notice")).to_contain_text("127.0.0.1: cannot connect")


def test_a_read_only_token_is_offered_no_change_of_alerts(site: Site, client: httpx.Client) -> None:
    add(client, "seen", queue="quiet")
    headers = {"Authorization": f"Bearer {READER}", "Accept": "text/html"}
    for path in ("/alerts", "/alerts/seen"):
        page = httpx.get(site.url + path, headers=headers, trust_env=False).text
        assert re.findall(r'<form method="post" action="([^"]*)"', page) == ["/logout"]
