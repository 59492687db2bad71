"""How long anybody who has something to write waits for whoever removes old jobs, at a million of them (SQLite)."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

from _bench import Figure, Lab, Report, main, percentile
from _million import filled

from queuectl.job.lifecycle import State
from queuectl.store.sqlite.connection import Connection
from queuectl.upkeep.prune import DUTY_ROWS, ROWS_AT_ONCE, Plan, Pruner

JOBS = 1_000_000
STEPS = {"a worker": (DUTY_ROWS, 1500), "prune": (ROWS_AT_ONCE, 1500)}  # rows at once, and how many steps to look at
TARGET = 50.0

# As if each had run and completed long ago: a million of real runs would take an hour.
END_ALL = (
    """
    update jobs
       set state = 'completed', ready = 0, ending = 'completed', exit_code = 0, runs = 1, worker = 'w', host = 'h',
           started_at = created_at, finished_at = created_at, duration_ms = 1, wait_ms = 0, updated_at = created_at
    """,
    "insert into moves select queue, 'pending', 'completed', '', count(*) from jobs group by queue",
)


def retention(lab: Lab) -> Report:
    home = lab.new_home()
    report = Report(f"the write lock, while {JOBS:,} jobs are removed")
    with closing(filled(home, JOBS)) as store:
        with closing(sqlite3.connect(home / "queue.db")) as db, db:
            for statement in END_ALL:
                db.execute(statement)
        plan = Plan({State.COMPLETED: store.now_ms()})
        with _held() as held:
            for who, (rows, steps) in STEPS.items():
                held.clear()
                pruner = Pruner(store, home=str(home), writer=f"bench-{rows}", rows=rows)
                for _ in range(steps):
                    pruner.step(plan)
                _tell(report, f"{who}, {rows} rows at once", held)
                report.figure(Figure(f"longest hold of {who}", max(held), TARGET, unit=" ms"))
            held.clear()
            while store.shrink():
                pass
            _tell(report, "giving the room back", held)
            report.figure(Figure("longest hold while the file shrinks", max(held), TARGET, unit=" ms"))
    return report


def _tell(report: Report, what: str, held: list[float]) -> None:
    spread = f"p50 {percentile(held, 0.5):.1f} ms, p99 {percentile(held, 0.99):.1f} ms"
    report.row(what, f"{len(held):,} transactions", f"{spread}, longest {max(held):.1f} ms")


@contextmanager
def _held() -> Iterator[list[float]]:
    """For how many milliseconds each transaction held the lock, from now on."""
    taken: list[float] = []
    transaction = Connection.transaction

    @contextmanager
    def timed(self: Connection) -> Iterator[None]:
        began = time.perf_counter()
        with transaction(self):
            yield
        taken.append((time.perf_counter() - began) * 1000)

    Connection.transaction = timed  # type: ignore[method-assign]
    try:
        yield taken
    finally:
        Connection.transaction = transaction  # type: ignore[method-assign]


if __name__ == "__main__":
    main(retention, __doc__)
