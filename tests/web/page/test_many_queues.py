"""Very many queues: the pages stay small, and every queue can be found."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from queuectl.store.open import open_store
from tests.factories import new_job
from tests.web.page.site import TOKEN, Site

QUEUES = 400


@pytest.fixture(scope="module")
def client(site: Site) -> Iterator[httpx.Client]:
    store = open_store(str(site.queuectl.home))
    store.enqueue([new_job(queue=f"customer-{number:04}") for number in range(QUEUES)])
    store.enqueue([new_job(queue="customer-0399") for _ in range(5)])
    store.close()
    headers = {"Authorization": f"Bearer {TOKEN}", "Accept": "text/html"}
    with httpx.Client(base_url=site.url, headers=headers, timeout=20, trust_env=False) as one:
        yield one


def test_the_first_queues_are_shown_and_the_others_found_by_name(client: httpx.Client) -> None:
    page = client.get("/queues").text
    assert page.count('<tr id="q-') == 100
    assert f"100 of {QUEUES} queues are shown" in page
    found = client.get("/queues", params={"name": "er-039"}).text
    assert found.count('<tr id="q-') == 10
    assert 'id="q-customer-0399"' in found
    assert "No matching queues" in client.get("/queues", params={"name": "<none>"}).text


def test_the_overview_shows_the_busiest_queues(client: httpx.Client) -> None:
    page = client.get("/").text
    assert page.count('href="/queues/customer-') == 15
    assert 'href="/queues/customer-0399"' in page
    assert f">All {QUEUES} queues</a>" in page
