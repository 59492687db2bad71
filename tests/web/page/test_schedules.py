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


def next_runs(page: str) -> list[str]:
    panel = page[page.index('id="cron-next"') :].partition("</section>")[0]
    return re.findall(r"<li><span>([^<]+)</span>", panel)


def test_the_next_times_are_in_the_time_zone_of_the_schedule(client: httpx.Client, site: Site) -> None:
    site.queuectl("cron", "add", "early", "30 4 * * 1-5", "true", "--tz", "Asia/Tokyo", check=0)
    page = client.get("/cron/early").text
    runs = next_runs(page)
    assert len(runs) == 10
    assert all(re.fullmatch(r"[A-Z][a-z]{2} \d{4}-\d\d-\d\d 04:30", run) for run in runs)
    assert "At 04:30 on Monday through Friday, Asia/Tokyo" in page
    assert 'title="At 04:30 on Monday through Friday, Asia/Tokyo (30 4 * * 1-5)"' in client.get("/cron").text


def test_all_times_have_seconds_if_one_of_them_has(client: httpx.Client, site: Site) -> None:
    site.queuectl("cron", "add", "often", "every 20s", "true", "--tz", "UTC", check=0)
    runs = next_runs(client.get("/cron/often").text)
    assert len([run for run in runs if re.search(r" \d\d:\d\d:\d\d$", run)]) == 10


def test_past_runs_are_dots_that_link_to_their_jobs(client: httpx.Client, site: Site) -> None:
    site.queuectl("cron", "add", "dots", "@yearly", "exit 1", "--tz", "UTC", "--overlap", "skip", check=0)
    jobs = [site.queuectl("cron", "run", "dots", "--json", check=0).json["id"] for _ in range(2)]
    page = client.get("/cron/dots").text
    assert re.findall(r'<a class="d-pending" href="/jobs/(\w+)"', page) == jobs, "the oldest first"
    assert page.count('<span class="tag">by hand</span>') == 2
    row = client.get("/cron").text.partition('id="c-dots"')[2].partition("</tr>")[0]
    assert 'aria-label="Last 2 runs: 2 pending"' in row
    assert client.get("/cron/none-such").status_code == 404


def test_a_schedule_is_edited_and_an_error_is_at_its_field(client: httpx.Client, site: Site) -> None:
    words = ("--tz", "UTC", "--jitter", "5m", "--until", "2099-01-01", "--env", "A=b", "--queue", "mail")
    site.queuectl("cron", "add", "changing", "0 2 * * *", "make backup", *words, check=0)
    site.queuectl("cron", "pause", "changing", check=0)
    page = client.get("/cron/changing").text
    for name, value in (("schedule", "0 2 * * *"), ("jitter", "5m"), ("until", "2099-01-01 00:00"), ("queue", "mail")):
        assert f'name="{name}" value="{value}"' in page
    form = {"schedule": "0 3 * * *", "tz": "UTC", "overlap": "allow", "catch_up": "all:3", "jitter": "", "until": ""}
    said = {**form, "command": "make all", "queue": "mail"}
    changed = client.post("/cron/changing/edit", data=said, follow_redirects=True)
    assert "Schedule changing changed" in changed.text
    found = site.queuectl("cron", "show", "changing", "--show-env", "--json", check=0).json
    names = ("schedule", "overlap", "catch_up", "jitter", "until", "command", "queue", "paused")
    assert [found[name] for name in names] == ["0 3 * * *", "allow", "all:3", 0, None, "make all", "mail", True]
    assert found["job"]["env"] == {"A": "b"}
    refused = client.post("/cron/changing/edit", data={**said, "schedule": "0 99 * * *"})
    assert refused.status_code == 422
    assert 'value="0 99 * * *"' in refused.text
    assert re.search(r'id="error-schedule">Schedule: [^<]*hour', refused.text)
