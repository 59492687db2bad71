"""How long anybody who has something to write waits for whoever removes old jobs, at a million of them (SQLite).

Whoever removes them waits for the disk after it has let go of the lock. For comparison, the same bytes are synced to a file beside
the store, as often, in the same run: what the longest of these took, nobody has waited for. When the write-ahead log is long, SQLite
takes it over into the file at the end of a commit, but after it has let go of the lock: that is done, and counted, apart here.
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

from queuectl.job.lifecycle import State
from queuectl.store.sqlite.connection import Connection
from queuectl.upkeep.prune import DUTY_ROWS, ROWS_AT_ONCE, Plan, Pruner

JOBS = 1_000_000
STEPS = {"a worker": (DUTY_ROWS, 1500), "prune": (ROWS_AT_ONCE, 1500)}  # rows at once, and how many steps to look at
TARGET = 50.0
FOLD_EVERY = 10  # transactions: about as often as SQLite does it by itself
FRAME = 4096 + 24  # of the write-ahead log

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
        # Or the first to remove something would pay for our own log of some hundred megabytes.
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
    """And forget it."""
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
    """In milliseconds."""

    def __init__(self) -> None:
        self.held: list[float] = []  # by each transaction, from when it had the lock
        self.commits: list[float] = []
        self.syncs: list[float] = []
        self.folds: list[float] = []
        self.size = 0  # of what was last synced


@contextmanager
def _measured(home: Path) -> Iterator[Seen]:
    """What each transaction takes, from now on."""
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
    """As many as there were commits since, each of so many bytes in the place of others, as in a log that is used again."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    for number in range(FOLD_EVERY):
        began = time.perf_counter()
        os.pwrite(fd, bytes(size), number * size)
        os.fdatasync(fd)
        yield (time.perf_counter() - began) * 1000
    os.close(fd)


if __name__ == "__main__":
    main(retention, __doc__)
