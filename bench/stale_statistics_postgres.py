"""A claim on PostgreSQL after a burst, with stale statistics: with pinned plans, and with the choice of the planner.

Autovacuum analyzes a table some minutes after it has changed. Until then the planner assumes that no job is ready. BENCH_JOBS sets the number.
"""

from __future__ import annotations

import os
import time

from _bench import Figure, Lab, Report, median
from _million import new_job
from _postgres import Server, main_with_server

from queuectl.store.open import open_store
from queuectl.store.postgres.claims import claim_text
from queuectl.store.postgres.connection import SQL
from queuectl.store.types import NewWorker

JOBS = int(os.environ.get("BENCH_JOBS", "200000"))
BATCH, CLAIMS = 5_000, 15
TARGET = 0.2  # of the time with the choice of the planner
FREE = "select set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_custom_plan', true)"
COST = "explain (format json) "


def stale_statistics(lab: Lab, server: Server) -> Report:
    url, home = server.new_database(), lab.new_home()
    home.mkdir(exist_ok=True)
    store = open_store(str(home), url)
    store.claims.register(NewWorker("w", "host", 1, str(home), 10, None)).close()
    with server.connect(url) as db:
        db.execute("alter table queuectl.jobs set (autovacuum_enabled = false)")
        store.enqueue([new_job(0)] * 100)
        db.execute("update queuectl.jobs set state = 'completed', ready = false, finished_at = 1")
        db.execute("vacuum analyze queuectl.jobs")
        for _ in range(JOBS // BATCH):
            store.enqueue([new_job(0)] * BATCH)
        values = {"worker": "w", "host": "host", "logs": "/", "tokens": ["x"] * 10, "now": 2**41, "limit": 10}
        text = claim_text(SQL["candidates_any_queue"])
        with db.transaction(force_rollback=True):
            db.execute(SQL["enter"].encode(), {**_limits(), "plan_freely": "off"})
            ours, cost = _measure(db, text, values)
        with db.transaction(force_rollback=True):
            db.execute(FREE)
            free, free_cost = _measure(db, text, values)
    store.close()
    report = Report(
        f"a claim of 10 of {JOBS:,} jobs that became ready since the tables were analyzed, {server.version()}"
    )
    report.row("", "time", "estimated cost")
    report.row("our plan", f"{ours:.2f} ms", f"{cost:,.0f}")
    report.row("the planner's choice", f"{free:.2f} ms", f"{free_cost:,.0f}")
    report.figure(Figure("our plan / the planner's choice", ours / free, TARGET))
    return report


def _measure(db, text: str, values: dict) -> tuple[float, float]:  # type: ignore[no-untyped-def, type-arg]
    found = []
    for _ in range(CLAIMS):
        began = time.perf_counter()
        db.execute(text.encode(), values)
        found.append((time.perf_counter() - began) * 1000)
    ((plan,),) = db.execute(COST.encode() + text.encode(), values).fetchall()
    return median(found), plan[0]["Plan"]["Total Cost"]


def _limits() -> dict[str, str | None]:
    return {"statement_ms": "60000", "lock_ms": "60000", "transaction_ms": "0", "name": None}


if __name__ == "__main__":
    main_with_server(stale_statistics, __doc__)
