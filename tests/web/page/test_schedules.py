"""Schedules on a host whose time zone has no name."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pytest

from tests.program import Leftovers
from tests.web.page.site import TOKEN, Site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site"), env={"TZ": "CET-1CEST,M3.5.0,M10.5.0/3"})
    try:
        yield made.start()
    finally:
        made.stop()
        Leftovers(made.queuectl.home).end()


@pytest.fixture
def client(site: Site) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {TOKEN}", "Accept": "text/html", "Origin": site.url}
    with httpx.Client(base_url=site.url, headers=headers, timeout=20, trust_env=False) as one:
        yield one


def test_a_time_zone_is_required_without_a_local_one(client: httpx.Client) -> None:
    assert client.get("/cron").status_code == 200
    said = {"name": "nightly", "schedule": "0 2 * * *", "command": "true"}
    refused = client.post("/cron/+/add", data=said)
    assert refused.status_code == 422
    assert "is not the name of a time zone" in refused.text
    assert 'value="nightly"' in refused.text, "what was typed is still there"
    added = client.post("/cron/+/add", data={**said, "tz": "Asia/Tokyo"}, follow_redirects=True)
    assert "Schedule nightly added" in added.text


def test_the_next_times_are_in_the_time_zone_of_the_schedule(client: httpx.Client, site: Site) -> None:
    site.queuectl("cron", "add", "early", "30 4 * * *", "true", "--tz", "Asia/Tokyo", check=0)
    page = client.get("/cron").text
    panel = page[page.index('id="c-early"') :]
    assert len(re.findall(r"[A-Z][a-z]{2} \d{4}-\d\d-\d\d 04:30[ ,<]", panel)) == 5


def test_all_times_have_seconds_if_one_of_them_has(client: httpx.Client, site: Site) -> None:
    site.queuectl("cron", "add", "often", "every 20s", "true", "--tz", "UTC", check=0)
    page = client.get("/cron").text
    panel = page[page.index('id="c-often"') :].partition("</section>")[0]
    assert len(re.findall(r"[A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d:\d\d[ ,<]", panel)) == 5
