"""The page of the audit log."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pytest

from queuectl.jobs.audit import Act, Actor
from queuectl.store.open import open_store
from queuectl.web.pages.audit import Change, diff, target_url
from tests.web.page.site import TOKEN, Site


@pytest.fixture(scope="module")
def client(site: Site) -> Iterator[httpx.Client]:
    site.queuectl("enqueue", "--id", "one", "--delay", "1h", "true", check=0)
    site.queuectl("queue", "set", "mail", "--concurrency", "2", check=0)
    site.queuectl("queue", "set", "mail", "--concurrency", "5", check=0)
    site.queuectl("queue", "pause", "mail", check=0)
    site.queuectl("config", "set", "kill-grace", "3s", check=0)
    headers = {"Authorization": f"Bearer {TOKEN}", "Accept": "text/html", "Origin": site.url}
    with httpx.Client(base_url=site.url, headers=headers, timeout=20, trust_env=False) as one:
        one.post("/queues/mail/resume")
        yield one


def actions(page: str) -> list[str]:
    return re.findall(r'title="Only this action">([^<]+)<', page)


def test_changes_are_listed_with_the_values_before_and_after(client: httpx.Client) -> None:
    page = client.get("/audit").text
    assert actions(page) == ["queue resume", "config set", "queue pause", "queue set", "queue set", "enqueue"]
    assert re.search(r"concurrency</span> <del>2</del>.*?<ins>5</ins>", page)
    for url in ('href="/queues/mail"', 'href="/settings#s-kill-grace"', 'href="/jobs/one"'):
        assert url in page


@pytest.mark.parametrize(
    "filters, found",
    [
        ({"what": "queue"}, ["queue resume", "queue pause", "queue set", "queue set"]),
        ({"what": "queue pause"}, ["queue pause"]),
        ({"what": "%"}, []),
        ({"who": "tests"}, ["queue resume"]),
        ({"id": "kill-grace"}, ["config set"]),
        ({"who": "tests", "what": "enqueue"}, []),
        ({"since": "1d", "id": "one"}, ["enqueue"]),
    ],
)
def test_the_log_is_filtered_by_actor_action_target_and_time(
    client: httpx.Client, filters: dict[str, str], found: list[str]
) -> None:
    page = client.get("/audit", params=filters).text
    assert actions(page) == found
    assert ("No matching changes" in page) is not bool(found)


def test_an_actor_and_an_action_are_filters_when_clicked(client: httpx.Client) -> None:
    page = client.get("/audit").text
    (url,) = set(re.findall(r'href="(/audit\?who=[^"]*tests[^"]*)"', page))
    assert actions(client.get(url).text) == ["queue resume"]


def test_a_long_log_is_shown_page_by_page(client: httpx.Client, site: Site) -> None:
    store = open_store(str(site.queuectl.home))
    store.actor = Actor(1, "mallory", "box", "test")
    for number in range(60):
        store.audit.add(Act("worker stop", [f"w{number}"]))
    store.close()
    page = client.get("/audit", params={"who": "mallory"}).text
    assert len(actions(page)) == 50
    following = re.search(r'href="(/audit\?[^"]*cursor=[^"]+)" rel="next"', page)
    assert following is not None
    rest = client.get(following[1].replace("&amp;", "&")).text
    assert len(actions(rest)) == 10
    assert "First page" in rest


def test_a_diff_has_the_changed_values_of_nested_objects_only() -> None:
    before = {"name": "x", "state": "dead", "fields": {"command": "old", "queue": "mail"}, "timeout_ms": None}
    after = {"name": "x", "state": "dead", "fields": {"command": "new", "queue": "mail"}, "timeout_ms": 60_000}
    assert diff(before, after) == [Change("command", "old", "new"), Change("timeout", None, "1m")]
    assert diff(None, {"jobs": [{"command": "a"}], "limits": {"memory": 2**30}}) == [
        Change("command", None, "a"),
        Change("memory", None, "1GiB"),
    ]


def test_targets_link_to_their_pages() -> None:
    assert target_url("alert edit", "late") == "/alerts/late"
    assert target_url("cron change", "a") == "/cron/a"
    assert target_url("cron run", "a1b2c3") == "/jobs/a1b2c3"
    assert target_url("worker stop", "bee") == "/workers/bee"
    assert target_url("restore", "dump.db") is None
