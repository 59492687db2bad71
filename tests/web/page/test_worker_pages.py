"""The pages of workers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from queuectl.jobs.model import Worker
from queuectl.web.pages.workers import summarize
from tests.program import WorkerProcess
from tests.wait import wait_until
from tests.web.page.site import TOKEN, Site


@pytest.fixture(scope="module")
def client(site: Site) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {TOKEN}", "Accept": "text/html", "Origin": site.url}
    with httpx.Client(base_url=site.url, headers=headers, timeout=20, trust_env=False, follow_redirects=True) as one:
        yield one


def text(page: str, region: str) -> str:
    """The text of a section."""
    inside = page[page.index(f'id="{region}"') :].partition("</section>")[0]
    return " ".join(re.sub(r"<[^>]+>", " ", inside).split())


def test_a_worker_has_a_page_with_its_slots_and_its_latest_runs(
    client: httpx.Client, site: Site, worker: WorkerProcess
) -> None:
    site.queuectl("enqueue", "--id", "sleeper", "sleep 600", check=0)
    site.queuectl("enqueue", "--id", "failing", "--max-retries", "0", "exit 3", check=0)
    site.queuectl("wait", "failing", timeout=30)
    wait_until(lambda: "sleep 600" in client.get("/workers/bee").text, what="the job in a slot")
    page = client.get("/workers/bee").text
    assert "2 slots free" in text(page, "worker-slots")
    assert "sleeper sleep 600" in text(page, "worker-slots")
    assert re.search(r"dead failing exit 3 default cpu time", text(page, "worker-runs"))
    assert "sleeper" not in text(page, "worker-runs")
    assert "host" in text(page, "worker-facts")
    assert 'href="/workers/bee"' in client.get("/workers").text
    assert client.get("/workers/none-such").status_code == 404


def bee(**fields: Any) -> Worker:
    since = datetime(2026, 1, 1, tzinfo=UTC)
    plain = Worker("bee", "here", 1, "/", "running", 4, 2, None, since, since, 1, 0)
    return replace(plain, **fields)


@pytest.mark.parametrize(
    "workers, summary",
    [
        ([], ""),
        ([bee(), bee(slots=2, busy=0)], "2 of 6 slots busy"),
        ([bee(state="lost")], "1 worker lost, 2 jobs to be taken over"),
        ([bee(), bee(state="lost", busy=0)], "2 of 4 slots busy; 1 worker lost"),
    ],
)
def test_the_slots_of_a_lost_worker_are_not_counted(workers: list[Worker], summary: str) -> None:
    assert summarize(workers) == summary


def test_a_worker_is_restarted_after_a_question(client: httpx.Client, site: Site, tmp_path: Path) -> None:
    other = WorkerProcess(site.queuectl, tmp_path / "log", "--name", "wasp", "--queue", "quiet")
    try:
        other.wait_until_ready()
        asked = client.post("/workers/wasp/restart").text
        assert "Restart worker wasp?" in asked
        assert "Running jobs continue" in asked
        assert "Worker wasp is restarting" in client.post("/workers/wasp/restart", data={"confirmed": "1"}).text
        wait_until(lambda: other.output.count("serves queue") == 2, what="the restart")
    finally:
        other.end()
