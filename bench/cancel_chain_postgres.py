"""`queuectl cancel` of the first job of a chain of 20,000 on PostgreSQL, beside the same on SQLite."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from _bench import Figure, Lab, Report, median, rounds
from _postgres import Server, main_with_server

LENGTH = 20_000
ROUNDS, SECONDS = 5, 120.0
TARGET = 2.0


def cancel_chain(lab: Lab, db: str | None) -> float:
    """Return how long the cancellation took."""
    home, path = lab.new_home(), lab.path / "chain"
    jobs = ({"id": f"c{n}", "command": "true", "depends_on": [f"c{n - 1}"] if n else []} for n in range(LENGTH))
    path.write_text("".join(json.dumps(job) + "\n" for job in jobs), encoding="utf-8")
    store = () if db is None else ("--db", db)
    lab.run("enqueue", "--file", str(path), "--quiet", *store, home=home)
    began = time.perf_counter()
    lab.run("cancel", "c0", *store, home=home)
    seconds = time.perf_counter() - began
    states = json.loads(lab.run("status", "--json", *store, home=home))["states"]
    assert states["cancelled"] == LENGTH, states
    return seconds


def chain(lab: Lab, server: Server) -> Report:
    report = Report(f"cancel a chain of {LENGTH:,} jobs, {server.version()}")
    contenders: dict[str, Callable[[], float]] = {
        "SQLite": lambda: cancel_chain(lab, None),
        "PostgreSQL": lambda: cancel_chain(lab, server.new_database()),
    }
    samples = rounds(contenders, count=ROUNDS, seconds=SECONDS, warm_up=0)
    for name, values in samples.items():
        report.row(name, f"{median(values):.2f} s", f"longest {max(values):.2f} s")
    report.figure(Figure("on PostgreSQL", median(samples["PostgreSQL"]), TARGET, unit=" s"))
    return report


if __name__ == "__main__":
    main_with_server(chain, __doc__)
