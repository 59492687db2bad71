"""The cost of the audit log for a bulk enqueue: the same jobs with an actor and without one (SQLite)."""

from __future__ import annotations

import time
from contextlib import closing

from _bench import Figure, Lab, Report, main, median, paired, rounds

from queuectl.config import actor
from queuectl.jobs.spec import Defaults, NewJob, validate
from queuectl.store.open import open_store

JOBS = 50_000
ROUNDS, SECONDS = 7, 60.0
TARGET = 0.9

DEFAULTS = Defaults(0, 3, first_is_free=False, backoff_base=2.0, timeout_ms=None, cwd="/srv")


def audit(lab: Lab) -> Report:
    jobs = [validate({"command": f"convert image-{number}.png"}, DEFAULTS) for number in range(JOBS)]
    samples = rounds(
        {"recorded": lambda: add(lab, jobs, recorded=True), "not": lambda: add(lab, jobs, recorded=False)},
        count=ROUNDS,
        seconds=SECONDS,
    )
    report = Report(f"{JOBS:,} jobs at once")
    for name, words in {"not": "not recorded", "recorded": "recorded"}.items():
        seconds = median(samples[name])
        report.row(words, f"{JOBS / seconds:,.0f}/s", f"{seconds:.2f} s")
    report.figure(Figure("recorded / not recorded", paired(samples, "not", "recorded"), TARGET, more_is_better=True))
    return report


def add(lab: Lab, jobs: list[NewJob], *, recorded: bool) -> float:
    with closing(open_store(str(lab.new_home()))) as store:
        store.actor = actor() if recorded else None
        began = time.perf_counter()
        store.enqueue(jobs)
        return time.perf_counter() - began


if __name__ == "__main__":
    main(audit, __doc__)
