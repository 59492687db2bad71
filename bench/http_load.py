"""200 concurrent HTTP clients: enqueues per second and latency with both databases, compared with a bare endpoint.

Every acknowledged job must be stored."""

from __future__ import annotations

import asyncio
import sys

from _bench import Figure, Lab, Report, percentile
from _http import Load, crowd, serving
from _postgres import Server, main_with_server

from queuectl.store.open import open_reads
from queuectl.store.types import Filter

CLIENTS, EACH = 200, 5
P99_TARGET = 5000.0  # ms: no client starves

# The cost of the server libraries alone, with responses of about the same size.
BARE = """
import json, socket, sys, uvicorn
from starlette.responses import Response
from starlette.routing import Route, Router

answer = json.dumps({"id": "x" * 10, "rest": "x" * 900})

async def both(request):
    await request.body()
    return Response(answer, media_type="application/json")

wire = socket.create_server(("127.0.0.1", 0), backlog=1024)
print(json.dumps({"url": f"http://127.0.0.1:{wire.getsockname()[1]}/?token=none"}), flush=True)
routes = [Route("/api/v1/jobs", both, methods=["POST"]), Route("/api/v1/status", both)]
config = uvicorn.Config(Router(routes), http="h11", loop="asyncio", log_config=None, access_log=False, lifespan="off")
uvicorn.Server(config).run(sockets=[wire])
"""


def measure(lab: Lab, words: list[str]) -> Load:
    with serving(lab, words) as (port, token):
        return asyncio.run(crowd(port, token, clients=CLIENTS, each=EACH))


def stored(db: str) -> set[str]:
    store = open_reads("/nowhere", db)
    try:
        return {job.id for job in store.choose(Filter())}
    finally:
        store.close()


def http_load(lab: Lab, server: Server) -> Report:
    report = Report(f"{CLIENTS} clients at once, {EACH} enqueues and {EACH} looks at the status each")
    report.row("", "enqueues/s", "enqueue p50", "p99", "status p50", "p99", "answered", "stored", "failed")
    stores = {"SQLite": str(lab.path / "http.db"), "PostgreSQL": server.new_database()}
    measured = {"bare starlette": (measure(lab, [sys.executable, "-c", BARE]), None)}
    for name, db in stores.items():
        load = measure(lab, [*lab.queuectl, "dashboard", "--json", "--port", "0", "--db", db])
        measured[name] = (load, stored(db))
    for name, (load, there) in measured.items():
        times = [f"{percentile(load.took[what], part) * 1000:.0f} ms" for what in load.took for part in (0.5, 0.99)]
        counts = [f"{len(load.answered):,}", "" if there is None else f"{len(there):,}", str(len(load.failed))]
        report.row(name, f"{len(load.answered) / load.seconds:,.0f}", *times, *counts)
        if there is not None:
            lost = len(set(load.answered) ^ there) + len(load.failed)
            report.figure(Figure(f"{name}: lost, doubled or refused", lost, 0))
            worst = max(percentile(took, 0.99) for took in load.took.values()) * 1000
            report.figure(Figure(f"{name}: the slowest p99", worst, P99_TARGET, unit=" ms"))
    return report


if __name__ == "__main__":
    main_with_server(http_load, __doc__)
