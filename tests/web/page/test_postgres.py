"""The same pages on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests import postgres
from tests.program import Leftovers, WorkerProcess
from tests.web.page.site import TOKEN, Site

PAGES = (
    "/",
    "/?span=week",
    "/jobs",
    "/jobs?state=dead&sort=finished&queue=a",
    "/jobs?q=exit+error:code+-tag:none&since=1h",
    "/jobs/child",
)
PAGES += ("/act?action=retry&all=1&match=exit", "/enqueue", "/queues", "/workers", "/dlq", "/cron", "/settings")


@pytest.fixture(scope="session", autouse=True)
def no_server_is_left() -> Iterator[None]:
    yield
    postgres.stop_server()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with postgres.server().store() as url:
        made = Site(tmp_path_factory.mktemp("site"), db=url)
        try:
            yield made.start()
        finally:
            made.stop()
            Leftovers(made.queuectl.home).end()


@pytest.fixture
def http(site: Site, worker: WorkerProcess) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {TOKEN}", "Accept": "text/html"}
    with httpx.Client(base_url=site.url, headers=headers, timeout=20, trust_env=False) as client:
        yield client


def test_every_page_works_on_postgresql(site: Site, http: httpx.Client) -> None:
    site.queuectl("enqueue", "--id", "parent", "--queue", "a", "--max-retries", "1", "exit 3", check=0)
    site.queuectl("enqueue", "--id", "child", "--after-any", "parent", "echo child", check=0)
    site.queuectl("cron", "add", "nightly", "0 2 * * *", "true", check=0)
    site.queuectl("wait", "child", timeout=30)
    found = {path: http.get(path).status_code for path in PAGES}
    assert set(found.values()) == {200}, found
    assert "exit code 3" in http.get("/dlq").text
    assert "child" in http.get("/jobs/child").text


def test_a_form_works_on_postgresql(site: Site, http: httpx.Client) -> None:
    site.queuectl("enqueue", "--id", "moody", "--delay", "1h", "true", check=0)
    answer = http.post("/jobs/moody/hold", headers={"Origin": site.url}, follow_redirects=True)
    assert "Job moody held" in answer.text
    assert site.queuectl("show", "moody", "--json", check=0).json["held"] is True
