"""Frame times and transfer of an open dashboard page while a database of a million jobs changes 1,000 times a second."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from _bench import ROOT, Figure, Lab, Report, main
from _http import serving
from _million import filled

JOBS, A_SECOND, SECONDS = 1_000_000, 1_000, 15
PAGES = ("/", "/jobs", "/queues")
TARGET = 100.0  # ms between two frames: a longer delay is visible
MAX_KB = 10.0  # a second, of compressed responses
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync")

# Ten jobs at a time, a hundred times a second, while stdin is open.
WRITER = """
import select, sys, time
from queuectl import Queue
with Queue(home=sys.argv[1]) as queue:
    due = time.monotonic()
    while not select.select([sys.stdin], [], [], max(0, due - time.monotonic()))[0]:
        queue.enqueue_many([{"command": "true", "queue": "live"}] * 10)
        due = max(due + 0.01, time.monotonic() - 1)
"""

# The maximum and the 99th percentile of frame times, the number of page changes, and the final content.
WATCH = """
async seconds => {
  const gaps = []; let changes = 0;
  new MutationObserver(() => changes++).observe(document.body, {childList: true, subtree: true, characterData: true});
  const end = performance.now() + seconds * 1000; let last = performance.now();
  await new Promise(done => requestAnimationFrame(function next(now) {
    gaps.push(now - last); last = now; now < end ? requestAnimationFrame(next) : done();
  }));
  gaps.sort((a, b) => a - b);
  return [gaps[gaps.length - 1], gaps[Math.floor(gaps.length * 0.99)], changes];
}
"""


@contextmanager
def writing(lab: Lab, home: Path) -> Iterator[None]:
    words = [sys.executable, "-c", WRITER, str(home)]
    process = subprocess.Popen(
        words, env=lab.environment(home) | {"PYTHONPATH": str(ROOT / "src")}, stdin=subprocess.PIPE
    )
    try:
        yield
    finally:
        process.communicate(timeout=20)


def live(lab: Lab) -> Report:
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("bench: there is no chromium here")
    home = lab.new_home()
    filled(home, JOBS).close()
    report = Report(f"an open page, {JOBS:,} jobs, {A_SECOND:,} changes a second")
    report.row("", "longest", "99 of 100", "changed", "written", "transferred")
    slowest = heaviest = 0.0
    words = [*lab.queuectl, "dashboard", "--json", "--port", "0"]
    with serving(lab, words, home=home) as (port, token), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        page = browser.new_page()
        received: list[float] = []  # events are not among them: their responses do not end
        devtools = page.context.new_cdp_session(page)
        devtools.send("Network.enable")
        devtools.on("Network.loadingFinished", lambda event: received.append(event["encodedDataLength"]))
        page.goto("about:blank")
        for path in ("about:blank", *PAGES):
            if path != "about:blank":
                page.goto(f"http://127.0.0.1:{port}/?token={token}")
                page.goto(f"http://127.0.0.1:{port}{path}")
            before = _enqueued(lab, home)
            received.clear()
            with writing(lab, home):
                longest, most, changes = page.evaluate(WATCH, SECONDS)
            rate = (_enqueued(lab, home) - before) / SECONDS
            kilobytes = sum(received) / SECONDS / 1000
            row = (f"{longest:.0f} ms", f"{most:.0f} ms", f"{changes} times", f"{rate:,.0f}/s", f"{kilobytes:.1f} KB/s")
            report.row(path, *row)
            if path != "about:blank":
                assert changes, f"{path} did not follow"
                slowest, heaviest = max(slowest, most), max(heaviest, kilobytes)
        browser.close()
    report.figure(Figure("between two frames, 99 of 100, the slowest page", slowest, TARGET, unit=" ms"))
    report.figure(Figure("transferred to a watched page, the heaviest page", heaviest, MAX_KB, unit=" KB/s"))
    return report


def _enqueued(lab: Lab, home: Path) -> int:
    return int(lab.run("list", "--queue", "live", "--quiet", home=home).count(b"\n"))


if __name__ == "__main__":
    main(live, __doc__)
