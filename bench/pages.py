"""Response times of the dashboard pages with a million jobs, most of them finished."""

from __future__ import annotations

import http.client
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from _bench import Figure, Lab, Report, main, median, rounds
from _http import serving
from _million import filled

JOBS = 1_000_000
ROUNDS, SECONDS = 15, 60.0
TARGET = 150.0

PAGES = (
    "/",
    "/?span=day",
    "/?span=week&queue=mail",
    "/jobs",
    "/jobs?state=completed",
    "/jobs?state=pending&queue=mail",
    "/jobs?state=dead&sort=finished",
    "/jobs?since=1h",
    "/jobs?state=dead&sort=duration",
    "/jobs?state=completed&sort=duration",  # too many to sort: the page shows a notice
    "/jobs/{last}",
    "/queues",
    "/workers",
    "/dlq",
    "/cron",
    "/settings",
    "/batches",
    "/alerts",
    "/audit",
)
# These read all matching jobs. They are shown, but have no target.
LOOK_AT_ALL = ("/jobs?match=nothing-has-this", "/act?action=cancel&all=1&match=nothing-has-this")


def fetch(connection: http.client.HTTPConnection, token: str, path: str) -> float:
    headers = {"Authorization": f"Bearer {token}", "Accept": "text/html"}
    began = time.perf_counter()
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    answer.read()
    assert answer.status == 200, (path, answer.status)
    return time.perf_counter() - began


# As if a worker had run nine of ten jobs in the last 30 days, with one of five hundred dead. Running them would take an hour.
END_MOST = (
    """
    update jobs
       set state = case when seq % 500 = 0 then 'dead' else 'completed' end, ready = 0, runs = 1, worker = 'w', host = 'h',
           ending = case when seq % 500 = 0 then 'failed' else 'completed' end, exit_code = (seq % 500 = 0) * (seq % 7 + 1),
           error = case when seq % 500 = 0 then 'exit code ' || (seq % 7 + 1) end,
           last_output = case when seq % 500 = 0 then 'order ' || seq || ' failed' end,
           fingerprint = case when seq % 500 = 0 then printf('%012x', seq / 500 % 26) end,
           created_at = created_at - ago, started_at = created_at - ago, finished_at = created_at - ago + seq % 5000,
           updated_at = created_at - ago + seq % 5000, duration_ms = seq % 5000, wait_ms = seq % 300
      from (select seq as of, 30 * 86400000 / max(seq) over () * (max(seq) over () - seq) + 5000 as ago from jobs) as past
     where seq % 10 <> 1
       and seq = of
    """,
    "insert into moves select queue, 'pending', state, '', count(*) from jobs where state <> 'pending' group by queue, state",
)


def end_most(home: Path) -> None:
    with closing(sqlite3.connect(home / "queue.db")) as store, store:
        for statement in END_MOST:
            store.execute(statement)


def pages(lab: Lab) -> Report:
    home = lab.new_home()
    filled(home, JOBS).close()
    end_most(home)
    last = lab.run("list", "--limit", "1", "--quiet", home=home).decode().split()[0]
    with (
        serving(lab, [*lab.queuectl, "dashboard", "--json", "--port", "0"], home=home) as (port, token),
        closing(http.client.HTTPConnection("127.0.0.1", port)) as connection,
    ):
        contenders = {
            path: (lambda path=path: fetch(connection, token, path.format(last=last)))
            for path in (*PAGES, *LOOK_AT_ALL)
        }
        samples = rounds(contenders, count=ROUNDS, seconds=SECONDS)
    report = Report(f"pages of the dashboard at {JOBS:,} jobs")
    for path in (*PAGES, *LOOK_AT_ALL):
        report.row(path, f"{median(samples[path]) * 1000:.0f} ms", "")
    slowest = max(PAGES, key=lambda path: median(samples[path]))
    report.figure(Figure(f"the slowest, {slowest}", median(samples[slowest]) * 1000, TARGET, unit=" ms"))
    return report


if __name__ == "__main__":
    main(pages, __doc__)
