"""Text of jobs is escaped, and secrets stay hidden."""

from __future__ import annotations

import json

import pytest

from tests.program import WorkerProcess
from tests.wait import wait_until
from tests.web.page.site import Site, Visit

EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>\"'><b class=evil>{{ 7*7 }}</b>"
SECRET = "the-value-of-a-variable"


@pytest.fixture(scope="module", autouse=True)
def evil(site: Site, worker: WorkerProcess) -> None:
    fields = {
        "id": "evil",
        "unique_key": EVIL,
        "key": EVIL,
        "env": {"PASSWORD": SECRET},
        "max_retries": 1,
    }
    command = f"cat <<'END'\n{EVIL}\n\x1b]0;title\x07\x1b[31m{EVIL}\x1b[0m\nEND\nexit 9"
    site.queuectl("enqueue", json.dumps({**fields, "command": command}), check=0)
    site.queuectl(
        "enqueue", json.dumps({"id": "evil-child", "command": EVIL, "depends_on": [{"id": "evil", "on": "ended"}]})
    )
    site.queuectl("enqueue", json.dumps({"id": "evil-words", "argv": [EVIL, EVIL], "delay": "1h"}), check=0)
    site.queuectl("enqueue", json.dumps({"id": "evil-error", "argv": ["/no/" + EVIL], "max_retries": 1}), check=0)
    site.queuectl("cron", "add", "evil-cron", "0 2 * * *", EVIL, check=0)
    wait_until(
        lambda: site.queuectl("status", "--json", check=0).json["states"]["dead"] >= 2, what="the evil ones to end"
    )


PLACES = ("/", "/jobs", "/jobs/evil", "/jobs/evil-words", "/jobs/evil-error", "/dlq", "/cron", "/queues", "/workers")
SAID = (
    "/jobs?match=%3Cb%20class%3Devil%3E&tag=%3Cb%20class%3Devil%3E&batch=%3Cb%20class%3Devil%3E&since=%3Cb%20class%3Devil%3E",
    "/jobs?q=%3Cb%20class%3Devil%3E%20queue%3A%3Cb&fingerprint=%3Cb%20class%3Devil%3E&sort=%3Cb%20class%3Devil%3E",
    "/jobs?q=%22%3E%3Cb%20class%3Devil%3E",
    "/enqueue?command=%3C/textarea%3E%3Cb%20class%3Devil%3E&queue=%22%3E%3Cb%20class%3Devil%3E",
    "/jobs/evil?find=%22%3E%3Cb%20class%3Devil%3E&run=1",
    "/act?action=cancel&all=1&match=%3Cb%20class%3Devil%3E&back=javascript:alert(1)",
    "/?span=%3Cb%20class%3Devil%3E&notice=%3Cb%20class%3Devil%3E",
)


def test_markup_in_any_field_of_a_job_is_shown_as_text(visit: Visit, site: Site) -> None:
    page = visit("/")
    for path in PLACES:
        page.goto(site.url + path)
        assert page.locator(".evil, main img, main script").count() == 0, path
        assert SECRET not in page.content(), path
    page.goto(f"{site.url}/jobs/evil")
    assert "<b class=evil>{{ 7*7 }}</b>" in page.inner_text(".log")
    assert "PASSWORD" in page.inner_text("#facts")


def test_markup_in_an_address_is_shown_as_text(visit: Visit, site: Site) -> None:
    page = visit("/")
    for path in SAID:
        page.goto(site.url + path)
        assert page.locator(".evil").count() == 0, path
    page.goto(site.url + next(path for path in SAID if path.startswith("/act")))
    assert page.get_by_role("link", name="Back").get_attribute("href") == "/jobs"


def test_a_form_never_leads_to_another_server(visit: Visit, site: Site) -> None:
    site.queuectl("enqueue", "--id", "away", "--delay", "1h", "true", check=0)
    page = visit("/jobs/away", script=False)
    form = page.locator("form[action$='/hold']")
    for wrong in ("//example.org/", "https://example.org/", "/\\example.org", "javascript:alert(1)"):
        answer = page.request.post(
            f"{site.url}/jobs/away/hold",
            form={"back": wrong},
            headers={"Origin": site.url},
            max_redirects=0,
        )
        assert answer.status == 303
        assert answer.headers["location"].startswith("/jobs/away?notice="), wrong
    assert form.count() == 1


def test_text_that_no_database_can_store_is_refused_with_an_error(visit: Visit, site: Site) -> None:
    page = visit("/jobs/a%00b")
    page.expected = ("422",)  # type: ignore[attr-defined]
    assert "contains a NUL" in page.inner_text("main")
