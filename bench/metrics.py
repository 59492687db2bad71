"""`metrics --prometheus` at a million completed jobs, beyond the start-up time."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from _bench import Figure, Lab, Report, main, median, rounds
from _million import filled

from queuectl.clock import SystemClock
from queuectl.store.open import open_store

JOBS = 1_000_000
ROUNDS, SECONDS = 7, 40.0
TARGET = 150.0

# As if all jobs had run in the last month, with those of the last half minute not sampled yet.
COMPLETE = """
    update jobs
       set state = 'completed', ready = 0, runs = 1, ending = 'completed', exit_code = 0, worker = 'w', host = 'h',
           started_at = created_at, finished_at = :now - (:jobs - seq) * 2592, updated_at = :now,
           duration_ms = (seq * 7919) % 60000, wait_ms = (seq * 104729) % 5000
"""
MOVE = """
    insert into moves (queue, was, now, ending, jobs)
    select queue, 'pending', 'processing', '', count(*) from jobs group by queue
    union all
    select queue, 'processing', 'completed', 'completed', count(*) from jobs group by queue
"""
LOOKED = """
    insert into sampling (one, at, until, removals) values (1, :now - 60000, :now - 30000, 0)
"""


def metrics(lab: Lab) -> Report:
    home = lab.new_home()
    filled(home, JOBS).close()
    _complete(home)
    samples = rounds(
        {
            "start": lambda: lab.time("--version", home=home),
            "prometheus": lambda: lab.time("metrics", "--prometheus", home=home),
            "people": lambda: lab.time("metrics", home=home),
        },
        count=ROUNDS,
        seconds=SECONDS,
    )
    report = Report(f"metrics of {JOBS:,} completed jobs, beyond start-up")
    report.row("queuectl --version", f"{median(samples['start']) * 1000:.0f} ms", "")
    beyond = {
        name: median([taken - start for taken, start in zip(samples[name], samples["start"], strict=True)]) * 1000
        for name in ("prometheus", "people")
    }
    report.row("queuectl metrics --prometheus", "", f"+ {beyond['prometheus']:.0f} ms")
    report.row("queuectl metrics (exact percentiles)", "", f"+ {beyond['people']:.0f} ms")
    report.row("a look of a worker, once a minute", "", f"{_look(home) * 1000:.0f} ms")
    report.figure(Figure("metrics --prometheus beyond start-up", beyond["prometheus"], TARGET, unit=" ms"))
    return report


def _complete(home: Path) -> None:
    with closing(sqlite3.connect(home / "queue.db")) as db, db:
        db.execute("pragma synchronous = off")
        values = {"now": SystemClock().now_ms(), "jobs": JOBS}
        db.execute(COMPLETE, values)
        db.execute(MOVE)
        db.execute(LOOKED, values)
        db.execute(
            "insert into buckets select queue, what, bucket, 1000, 5000 from (select distinct queue from moves),"
            " (select 'run' as what union all select 'wait'), (select value as bucket from json_each('[0,1,2,3,4,5,6,7,8]'))"
        )


def _look(home: Path) -> float:
    clock = SystemClock()
    with closing(open_store(str(home))) as store:
        began = clock.monotonic()
        store.samples.record()
        return clock.monotonic() - began


if __name__ == "__main__":
    main(metrics, __doc__)
