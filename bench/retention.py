"""How long other writers wait while a million old jobs are removed (SQLite).

The pruner syncs after it has released the lock. For comparison, the same number of bytes is synced to a separate file
as often, in the same run; no writer waits for these syncs. When the write-ahead log is long, SQLite
checkpoints it at the end of a commit, after it has released the lock: that is done and counted separately here.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from _bench import Figure, Lab, Report, main, percentile
from _million import filled

from queuectl.jobs.states import State
from queuectl.maintenance.pruner import MAX_ROWS, TASK_ROWS, Plan, Pruner
from queuectl.store.sqlite.connection import Connection

JOBS = 1_000_000
STEPS = {
    "a worker": (TASK_ROWS, 1500),
    "prune": (MAX_ROWS, 1500),
}  # rows per transaction, and transactions to measure
TARGET = 50.0
FOLD_EVERY = 10  # transactions between checkpoints, about as often as SQLite does it
FRAME = 4096 + 24  # of the write-ahead log

# As if each had completed long ago. A million real runs would take an hour.
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
        # Otherwise the first transaction would checkpoint the log of the setup, some hundred megabytes.
        with closing(sqlite3.connect(home / "queue.db")) as db:
            db.execute("pragma wal_checkpoint(truncate)")
        os.sync()
        plan = Plan({State.COMPLETED: store.now_ms()})
        with _measured(home) as seen:
            for who, (rows, steps) in STEPS.items():
                pruner = Pruner(store, home=str(home), writer=f"bench-{rows}", rows=rows)
                for _ in range(steps):
                    pruner.step(plan)
                _tell(report, f"{who}, {rows} rows at once", seen)
            while store.shrink():
                pass
            _tell(report, "giving the room back", seen)
    return report


def _tell(report: Report, what: str, seen: Seen) -> None:
    """Report the samples and clear them."""
    for name, times in (("held the lock", seen.held), ("of it the commit", seen.commits)):
        report.row(f"{what}: {name}", f"{len(times):,} transactions", _spread(times))
    report.row("a sync of as many bytes beside it", f"{len(seen.syncs):,} of {seen.size:,} bytes", _spread(seen.syncs))
    report.row("taking over the log, without the lock", f"{len(seen.folds):,} times", _spread(seen.folds))
    report.figure(Figure(f"longest hold, {what}", max(seen.held), TARGET, unit=" ms"))
    for times in (seen.held, seen.commits, seen.syncs, seen.folds):
        times.clear()


def _spread(times: list[float]) -> str:
    return f"p50 {percentile(times, 0.5):.1f} ms, p99 {percentile(times, 0.99):.1f} ms, longest {max(times):.1f} ms"


class Seen:
    """Samples, in milliseconds."""

    def __init__(self) -> None:
        self.held: list[float] = []  # per transaction, from the acquisition of the lock
        self.commits: list[float] = []
        self.syncs: list[float] = []
        self.folds: list[float] = []
        self.size = 0  # bytes of the last sync


@contextmanager
def _measured(home: Path) -> Iterator[Seen]:
    """Measure each transaction during the block."""
    seen = Seen()
    transaction = Connection.transaction

    @contextmanager
    def timed(self: Connection) -> Iterator[None]:
        self.execute("pragma wal_autocheckpoint = 0")
        with transaction(self):
            began = time.perf_counter()
            yield
            ready = time.perf_counter()
        ended = time.perf_counter()
        seen.held.append((ended - began) * 1000)
        seen.commits.append((ended - ready) * 1000)
        if len(seen.held) % FOLD_EVERY == 0:
            began = time.perf_counter()
            ((_, frames, _),) = self.all("pragma wal_checkpoint(passive)")
            seen.folds.append((time.perf_counter() - began) * 1000)
            seen.size = frames * FRAME // FOLD_EVERY
            seen.syncs += _syncs(home / "beside", seen.size)

    Connection.transaction = timed  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        Connection.transaction = transaction  # type: ignore[method-assign]


def _syncs(path: Path, size: int) -> Iterator[float]:
    """Sync `count` times, each time overwriting as many bytes as a commit, like a reused log."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    for number in range(FOLD_EVERY):
        began = time.perf_counter()
        os.pwrite(fd, bytes(size), number * size)
        os.fdatasync(fd)
        yield (time.perf_counter() - began) * 1000
    os.close(fd)


if __name__ == "__main__":
    main(retention, __doc__)
