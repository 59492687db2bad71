"""Wait reasons on the page of a job, without advice for the command line."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

import httpx
import pytest

from tests.program import WorkerProcess
from tests.wait import wait_until
from tests.web.page.site import READER, TOKEN, Site


@pytest.fixture(scope="module")
def client(site: Site) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {TOKEN}", "Accept": "text/html"}
    with httpx.Client(base_url=site.url, headers=headers, timeout=20, trust_env=False) as one:
        yield one


def why(client: httpx.Client, job_id: str, *, token: str = TOKEN) -> tuple[str, str]:
    """The words of it, and its markup."""
    text = client.get(f"/jobs/{job_id}", headers={"Authorization": f"Bearer {token}"}).text
    found = re.search(r'<div[^>]* id="why".*?</section>', text, re.DOTALL)
    assert found is not None
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", found[0])).split()), found[0]


def test_every_reason_is_shown_without_a_command_and_links_to_its_fix(site: Site, client: httpx.Client) -> None:
    enqueue = lambda *words: site.queuectl("enqueue", *words, check=0)  # noqa: E731
    enqueue("--id", "unserved", "true")
    words, markup = why(client, "unserved")
    assert "No worker is running" in words
    assert 'href="/workers"' in markup
    enqueue("--id", "held", "true")
    site.queuectl("hold", "held", check=0)
    assert "Release it to let it run." in why(client, "held")[0]
    site.queuectl("queue", "pause", "stopped", check=0)
    enqueue("--id", "paused", "--queue", "stopped", "true")
    assert 'action="/queues/stopped/resume"' in why(client, "paused")[1]
    assert "<form" not in why(client, "paused", token=READER)[1]
    enqueue("--id", "later", "--delay", "1h", "true")
    assert re.search(r"It is not due until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC ?, in 59m", why(client, "later")[0])
    enqueue("--id", "off", "--delay", "1h", "true")
    site.queuectl("cancel", "off", check=0)
    assert "Retry runs it again." in why(client, "off")[0]
    for one in ("unserved", "held", "paused", "later", "off"):
        assert "queuectl" not in why(client, one)[0]


def test_the_result_of_a_job_has_no_advice_for_the_command_line(
    site: Site, client: httpx.Client, worker: WorkerProcess
) -> None:
    for name, command in (("good", "echo"), ("bad", "exit 3")):
        site.queuectl("enqueue", "--id", name, "--max-retries", "0", command, check=0)
    site.queuectl("enqueue", "--id", "runs", "--timeout", "1h", "exec sleep 600", check=0)
    site.queuectl("wait", "good", "bad", timeout=30)
    wait_until(lambda: "Running for" in why(client, "runs")[0], what="it to run")
    assert "It is dead: 1 of 1 runs failed, the last with exit code 3." in why(client, "bad")[0]
    assert "Retry runs it again." in why(client, "bad")[0]
    for one in ("good", "bad", "runs"):
        assert "queuectl" not in why(client, one)[0]
    site.queuectl("cancel", "runs", check=0)
