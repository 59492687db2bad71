"""Every page in light and dark mode and on a phone."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from starlette.routing import Route

from queuectl.web.pages import routes as served
from tests.needs import require
from tests.program import WorkerProcess
from tests.wait import wait_until
from tests.web.page.site import READER, Site, Visit

PAGES = {
    "overview": "/",
    "jobs": "/jobs",
    "jobs-dead": "/jobs?state=dead&sort=finished",
    "jobs-none": "/jobs?match=nothing-has-this",
    "jobs-wrong": "/jobs?state=wrong",
    "job-ended": "/jobs/lint",
    "job-graph": "/jobs/deploy",
    "job-running": "/jobs/talker",
    "job-dead": "/jobs/broken",
    "job-held": "/jobs/held",
    "job-long": f"/jobs/{'l' * 128}",
    "preview": "/act?action=cancel&all=1&queue=mail",
    "enqueue": "/enqueue",
    "enqueue-limits": "/enqueue?memory=2GiB",
    "queues": "/queues",
    "queue": "/queues/mail",
    "workers": "/workers",
    "worker": "/workers/bee",
    "dlq": "/dlq",
    "cron": "/cron",
    "schedule": "/cron/nightly",
    "settings": "/settings",
    "batches": "/batches",
    "batch": "/batches/thumbs",
    "alerts": "/alerts",
    "alert": "/alerts/deaths",
    "audit": "/audit",
}

# Where scripts/setup puts it.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path(os.environ.get("HOME") or "/tmp") / ".cache") / "queuectl"
PACKAGES = json.loads((Path(__file__).parents[2] / "package.json").read_text())["devDependencies"]
AXE = CACHE / f"axe-core-{PACKAGES['axe-core']}.js"

# What a machine can tell of whether everybody can use a page.
BASICS = """() => {
  const found = [];
  const say = (what, one) => found.push(`${what}: ${one.outerHTML.slice(0, 120)}`);
  const seen = (one) => one.checkVisibility?.() ?? true;
  const name = (one) => (one.getAttribute('aria-label') || one.textContent || '').trim() ||
    (one.labels && [...one.labels].some((label) => label.textContent.trim())) || one.getAttribute('aria-labelledby');
  for (const one of document.querySelectorAll('input:not([type=hidden]), select, textarea, button, a[href]:not([aria-hidden]), summary'))
    if (seen(one) && !name(one)) say('no name', one);
  for (const one of document.querySelectorAll('[role=img]')) if (!one.getAttribute('aria-label')) say('no words', one);
  for (const one of document.querySelectorAll('[style], [onclick], script:not([src])')) say('inline', one);
  for (const one of document.querySelectorAll('th')) if (!one.scope) say('no scope', one);
  for (const one of document.querySelectorAll('[id]'))
    if (document.querySelectorAll(`#${CSS.escape(one.id)}`).length > 1) say('id twice', one);
  for (const one of document.querySelectorAll('[aria-labelledby], label[for]')) {
    const id = one.getAttribute('aria-labelledby') ?? one.htmlFor;
    if (seen(one) && !document.getElementById(id)) say('label of nothing', one);
  }
  const levels = [...document.querySelectorAll('h1, h2, h3')].filter(seen).map((one) => Number(one.tagName[1]));
  if (levels.filter((level) => level === 1).length !== 1) found.push(`not one h1: ${levels}`);
  levels.forEach((level, at) => { if (at && level > levels[at - 1] + 1) found.push(`skips a level: ${levels}`); });
  for (const mark of ['header', 'nav', 'main', 'footer'])
    if (!document.querySelector(mark)) found.push(`no ${mark}`);
  if (!document.documentElement.lang) found.push('no language');
  const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  if (wide > 0) found.push(`${wide} pixels too wide`);
  return found;
}"""


@pytest.fixture(scope="module", autouse=True)
def filled(site: Site, worker: WorkerProcess) -> None:
    """A home with something of everything in it."""
    enqueue = lambda *words: site.queuectl("enqueue", *words, check=0)  # noqa: E731
    enqueue("--id", "build", "--tag", "ci", r"""printf 'building\n\033[32mok\033[0m \033[1;31mred\033[0m\n'""")
    enqueue("--id", "test", "--after", "build", "echo tested")
    enqueue("--id", "lint", "--after", "build", "echo linted")
    enqueue("--id", "deploy", "--after", "test", "--after", "lint", "--delay", "1h", "echo deployed")
    enqueue("--id", "talker", "for i in $(seq 1 20); do echo line $i; done; exec sleep 600")
    site.queuectl("queue", "set", "mail", "--memory", "1GiB", "--cpu-time", "1m", "--open-files", "256", check=0)
    enqueue("--id", "broken", "--max-retries", "2", "--queue", "mail", "--nice", "5", "echo sending; exit 3")
    enqueue("--id", "held", "--delay", "1h", "echo " + "a rather long command " * 12)
    site.queuectl("hold", "held", check=0)
    enqueue("--id", "l" * 128, "--queue", "q" * 64, "--tag", "t" * 60, "--delay", "1h", "echo " + "w" * 500)
    site.queuectl("queue", "pause", "paused", check=0)
    enqueue("--queue", "paused", "echo wait for me")
    site.queuectl("queue", "set", "mail", "--concurrency", "2", "--rate", "100/m", check=0)
    site.queuectl("cron", "add", "nightly", "0 2 * * *", "make backup", "--tz", "Europe/Berlin", check=0)
    site.queuectl("alert", "add", "deaths", "--dead", "99", "--webhook", "https://example.org/hook", check=0)
    lines = "\n".join(f"image {number}.png" for number in range(12))
    site.queuectl(
        "enqueue", "--for-each", "-", "--batch", "thumbs", "--queue", "images", "echo {}", input=lines, check=0
    )
    site.queuectl("wait", "lint", "broken", timeout=30)
    site.queuectl("wait", "--batch", "thumbs", timeout=30)
    wait_until(
        lambda: site.queuectl("status", "--json", check=0).json["states"]["processing"] == 1, what="the talker to run"
    )


@pytest.mark.parametrize("look", ["light", "dark", "phone"])
def test_every_page_is_accessible(visit: Visit, site: Site, screenshots: Path | None, look: str) -> None:
    page = visit("/", look=look)
    found = {}
    # In the dark only colours differ: test_contrast.py computes them, and the rest is for eyes.
    pages = PAGES if screenshots or look != "dark" else {"overview": "/"}
    for name, path in pages.items():
        page.goto(site.url + path)
        if faults := page.evaluate(BASICS):
            found[name] = faults
        if screenshots is not None:
            page.screenshot(path=screenshots / f"{name}-{look}.png", full_page=True)
    assert not found, found


def page_of(route: str) -> str:
    """The first page of these tests that a route serves. A new route needs one."""
    pattern = Route(route, lambda: None).path_regex
    return next(path for path in PAGES.values() if pattern.match(path.partition("?")[0]))


ROUTES = sorted(set(served.PAGES) - {"/find"})  # which redirects
DARK = ("/", "/jobs", "/jobs/{id}", "/dlq", "/queues", "/settings")  # only colors differ, of the same elements


# Only what is asked for: the whole result has a megabyte.
SERIOUS = """async rules => (await axe.run(document, {...rules, resultTypes: ["violations"]})).violations
  .filter((one) => ["serious", "critical"].includes(one.impact))
  .flatMap((one) => one.nodes.map((node) => `${one.id}: ${node.html.slice(0, 200)}`))"""


@pytest.mark.parametrize("look, routes", [("light", ROUTES), ("dark", DARK)], ids=["light", "dark"])
def test_axe_finds_nothing_serious_on_any_page(visit: Visit, site: Site, look: str, routes: Sequence[str]) -> None:
    require("axe-core", AXE.exists(), "scripts/setup fetches it with npm")
    page, source, found = visit("/", look=look), AXE.read_text("utf-8"), set()
    rules = {"runOnly": ["color-contrast"]} if look == "dark" else {}
    for path in [*map(page_of, routes), "/api/v1/docs"]:
        page.goto(site.url + path)
        page.evaluate(source)
        found |= {f"{path}: {one}" for one in page.evaluate(SERIOUS, rules)}
    assert not found, "\n".join(sorted(found))


def test_a_wide_graph_is_scrolled_to_the_job_of_the_page(visit: Visit) -> None:
    page = visit("/jobs/deploy", look="phone")
    # At one go: the drawing may be replaced by a newer one at any moment.
    left, right = page.evaluate("""() => {
      const { left, right } = document.querySelector('.graph .root').getBoundingClientRect();
      return [left, right];
    }""")
    assert 0 <= left <= right <= 360


def test_a_token_that_only_reads_is_offered_nothing_to_change(visit: Visit, site: Site) -> None:
    page = visit("/", token=READER)
    for path in PAGES.values():
        text = page.request.get(site.url + path).text()
        forms = re.findall(r'<form method="post" action="([^"]*)"', text)
        assert [action for action in forms if not action.endswith("/set")] == ["/logout"], path
        submits = re.findall(r'<button(?! type="button")[^>]*>([^<]*)<', text)
        assert set(submits) <= {"Sign out", "Apply", "Close"}, path


def test_a_user_without_a_token_can_sign_in(visit: Visit, site: Site) -> None:
    page = visit("/jobs", token=None)
    page.expected = ("401",)  # type: ignore[attr-defined]
    page.get_by_label("Token").fill("a-token-that-is-wrong")
    page.get_by_role("button", name="Sign in").click()
    assert "invalid or has expired" in page.inner_text("main")
    page.get_by_label("Token").fill("a-token-of-these-tests")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(site.url + "/")
    assert page.locator("nav").first.is_visible()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("Token").wait_for()


def test_a_missing_page_is_reported_on_a_page(visit: Visit) -> None:
    page = visit("/jobs/no-such-job")
    page.expected = ("404",)  # type: ignore[attr-defined]
    assert page.get_by_role("heading", name="Job not found").is_visible()
    assert "There is no job with the ID no-such-job. It may have been removed." in page.inner_text("main")
    assert page.get_by_role("link", name="All jobs").is_visible()
    assert page.get_by_role("link", name="Overview").is_visible()
