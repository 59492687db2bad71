"""100,000 jobs from JSON lines, against raw `executemany` of ready rows into the same schema, each in one transaction."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import _peers as peers
from _bench import Figure, Lab, Report, main, median, paired, rounds

from queuectl.clock import SystemClock
from queuectl.jobs.priority import Strict
from queuectl.jobs.spec import Defaults
from queuectl.operations.enqueue import add, make_jobs, prepare
from queuectl.operations.job_input import parse_document
from queuectl.store.enqueue import new_job_ids, new_row
from queuectl.store.open import open_store
from queuectl.store.sqlite.connection import SQL

JOBS = 100_000
HUEY_JOBS = 5_000
ROUNDS, SECONDS = 7, 90.0
TARGET = 0.35

DEFAULTS = Defaults(0, 3, first_is_free=False, backoff_base=2.0, timeout_ms=None, cwd="/srv")


def write_lines(path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for number in range(JOBS):
            file.write(f'{{"command": "convert image-{number}.png thumb-{number}.png", "priority": {number % 10}}}\n')


def raw(lab: Lab, rows: list[tuple[object, ...]]) -> float:
    """Insert prepared rows with SQLite alone, without any checks."""
    home = lab.new_home()
    open_store(str(home)).close()
    db = sqlite3.connect(home / "queue.db", isolation_level=None)
    db.execute("pragma synchronous = full")
    began = time.perf_counter()
    db.execute("begin immediate")
    db.executemany(SQL["enqueue"], rows)
    db.execute("commit")
    seconds = time.perf_counter() - began
    assert db.execute("select count(*) from jobs").fetchone() == (JOBS,)
    db.close()
    return seconds


def ours(lab: Lab, lines: Path) -> float:
    """Do everything that `enqueue --file` does between reading the file and printing the IDs."""
    store = open_store(str(lab.new_home()))
    began = time.perf_counter()
    added = add(store, prepare(parse_document(lines.read_bytes(), None), DEFAULTS, flags={}))
    seconds = time.perf_counter() - began
    assert len(added.ids) == JOBS
    store.close()
    return seconds


def command(lab: Lab, lines: Path) -> float:
    """Run the whole command, and subtract the time to enqueue one job."""
    home = lab.new_home()
    lab.run("config", "set", "priority", "0", home=home)
    one = lab.path / "one"
    one.write_text('{"command": "true"}\n', encoding="utf-8")
    start_up = median([lab.time("enqueue", "--file", str(one), home=home) for _ in range(3)])
    return lab.time("enqueue", "--file", str(lines), home=home) - start_up


def finished_rows(lines: Path) -> list[tuple[object, ...]]:
    """Return the rows that the store would insert for the same jobs."""
    jobs = make_jobs(parse_document(lines.read_bytes(), None), DEFAULTS, flags={})
    ids = new_job_ids(len(jobs))
    now = SystemClock().now_ms()
    return [
        new_row(job, seq=seq, job_id=id_, now_ms=now, ageing=Strict())
        for seq, (job, id_) in enumerate(zip(jobs, ids, strict=True), 1)
    ]


def bulk_enqueue(lab: Lab) -> Report:
    lines = lab.path / "jobs.jsonl"
    write_lines(lines)
    rows = finished_rows(lines)
    samples = rounds(
        {
            "raw": lambda: raw(lab, rows),
            "inside": lambda: ours(lab, lines),
            "command": lambda: command(lab, lines),
        },
        count=ROUNDS,
        seconds=SECONDS,
    )
    report = Report(f"{JOBS:,} jobs from JSON lines")
    names = {
        "raw": "raw executemany",
        "inside": "read, validate, store (in this process)",
        "command": "queuectl enqueue --file, beyond start-up",
    }
    for name, words in names.items():
        rate = JOBS / median(samples[name])
        report.row(words, f"{rate:,.0f}/s", f"{paired(samples, 'raw', name):.2f}")
    if (python := peers.huey_python()) is not None:
        rate = median([peers.huey_enqueue(lab.new_home(), python, HUEY_JOBS) for _ in range(3)])
        report.row("huey on SQLite", f"{rate:,.0f}/s", f"{rate * median(samples['raw']) / JOBS:.2f}")
    figure = Figure("enqueue --file / raw", paired(samples, "raw", "command"), TARGET, more_is_better=True)
    report.figure(figure)
    return report


if __name__ == "__main__":
    main(bulk_enqueue, __doc__)
