"""Claiming and enqueuing on PostgreSQL at a million waiting jobs, compared with a thousand, with all kinds of limits.

BENCH_JOBS sets the larger number.
"""

from __future__ import annotations

import os

from _bench import Lab, Report
from _crowd import SLOTS
from _postgres import Server, main_with_server
from claim_flat import FEW, MANY, compare, in_use

JOBS = int(os.environ.get("BENCH_JOBS", str(MANY)))


def claim_flat(lab: Lab, server: Server) -> Report:
    report = Report(f"{SLOTS} claims, and one enqueue, each in a transaction that is on the disk")
    urls = {size: server.new_database(keep=True) for size in (FEW, JOBS)}
    workers = {size: in_use(lab, size, url) for size, url in urls.items()}
    for url in urls.values():
        with server.connect(url) as db:
            db.execute("vacuum analyze")  # autovacuum does this within a minute
    compare(report, ", all in use", workers)
    return report


if __name__ == "__main__":
    main_with_server(claim_flat, __doc__)
